/**
 * Once: rules inside a KIND node that stay when the program that made them is gone, and the way back from them. They lead
 * pods to Docker's own resolver.
 */
import { randomInt } from "node:crypto";

import { instanceFolder } from "../../api/place.ts";
import type { RunSettings } from "../../config/settings.ts";
import { dockerResolver } from "../../container/kind/docker-resolver.ts";
import { FILES_HERE, NODE_HERE, dockerListening } from "../../container/kind/here.ts";
import { Journal } from "../../container/kind/journal.ts";
import { undoIn, undoResolvConf } from "../../container/kind/undo.ts";
import { Bracket, warmThreadPool } from "../../container/namespace/bracket.ts";
import { PASSTHROUGH_MARK } from "../../container/namespace/dial.ts";
import { checkCapabilities } from "../../container/preflight.ts";
import { makeLasting, removeLasting } from "../../container/rules/install.ts";
import { type PlanInput, servingPlan } from "../../container/rules/plan.ts";
import { TRIAL_MARK } from "../../container/rules/probe.ts";
import { refuseServed } from "../../container/rules/standing.ts";
import { NetlinkMemory } from "../../kernel/netlink-socket.ts";
import { reasonOf } from "../../base/lib/fault.ts";
import type { KindPolicy } from "../../base/model/kind-policy.ts";
import type { Log } from "../../base/log/log.ts";
import { takeInstance } from "../instance.ts";
import { INSTANCE, modeHere } from "./here.ts";

/** Returns what was done, and whether there was anything to do. */
export async function serveOnce(
  { kind, stateDir }: RunSettings,
  log: Log,
): Promise<{ readonly lines: readonly string[]; readonly isServed: boolean }> {
  checkCapabilities();
  await warmThreadPool();
  const bracket = new Bracket();
  const memory = new NetlinkMemory();
  const journal = new Journal(instanceFolder(stateDir, INSTANCE));
  try {
    try {
      refuseServed(memory);
    } catch (error) {
      return { lines: [`nothing done: ${reasonOf(error)}`], isServed: false };
    }
    const docker = dockerListening();
    // Nobody of ours listens once we are gone, so pods are led to where Docker's resolver does: 127.0.0.11, IPv4 alone.
    const policy: KindPolicy = { ...kind, mode: "loopback", families: "ipv4" };
    const mode = modeHere(policy, { bracket, memory, log, journal }, () => undefined);
    const capture = mode.capture();
    const leads = capture.leads.filter(({ bind }) => bind === docker.address);
    const input: PlanInput = {
      capture: { ...capture, leads },
      listening: leads.map(() => docker),
      zone: randomInt(1, 0xffff),
      spared: [],
      passthroughMark: PASSTHROUGH_MARK,
      trialMark: TRIAL_MARK,
    };
    makeLasting(memory, servingPlan(input));
    mode.publish();
    const { published, reasons } = mode.report();
    const whom = published.join(", ") || "nobody";
    const target = `Docker's resolver (udp ${docker.udpPort}, tcp ${docker.tcpPort})`;
    return { lines: [`pods ask ${whom}, led to ${target}`, ...reasons], isServed: true };
  } finally {
    bracket.close();
  }
}

/** Takes back what `serveOnce` made, or what was left behind by one that stayed and was killed. */
export function undoInNode(stateDir: string): string[] {
  checkCapabilities();
  const memory = new NetlinkMemory();
  const instance = takeInstance(stateDir, INSTANCE);
  const lines = removeLasting(memory).map((title) => `removed ${title}`);
  const journal = new Journal(instance.folder);
  const { record } = journal.read(NODE_HERE);
  if (record !== undefined) {
    const { answering } = dockerResolver(memory);
    lines.push(...undoResolvConf(record, FILES_HERE.openWritten, answering), ...undoIn(record, memory));
    journal.remove(NODE_HERE);
  }
  instance.remove();
  return lines.length === 0 ? ["there was nothing to undo"] : lines;
}
