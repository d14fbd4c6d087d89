/**
 * Once: rules inside a KIND node that remain after the program exits, and their removal. They redirect the queries of
 * pods to Docker's own resolver.
 */
import { randomInt } from "node:crypto";

import { instanceFolder } from "../../api/state-paths.ts";
import type { RunSettings } from "../../config/settings.ts";
import { findDockerResolver } from "../../container/kind/docker-resolver.ts";
import { IN_NODE_FILES, IN_NODE_ID, dockerResolverSockets } from "../../container/kind/in-node.ts";
import { Journal } from "../../container/kind/journal.ts";
import { restoreNamespace, restoreResolvConf } from "../../container/kind/node-resolv-conf.ts";
import { NamespaceRunner, warmThreadPool } from "../../container/namespace/namespace-runner.ts";
import { randomMark } from "../../container/namespace/passages.ts";
import { checkCapabilities } from "../../container/preflight.ts";
import { installPermanentRules, removeUnownedRules } from "../../container/rules/orphaned-rules.ts";
import { type PlanInput, servingPlan } from "../../container/rules/plan.ts";
import { TRIAL_MARK } from "../../container/rules/probe.ts";
import { requireUnserved } from "../../container/rules/installed-rules.ts";
import { NetlinkMemory } from "../../kernel/netlink-socket.ts";
import { Fault, reasonOf } from "../../base/lib/fault.ts";
import type { KindPolicy } from "../../base/model/kind-policy.ts";
import type { Log } from "../../base/log/log.ts";
import { takeInstance } from "../instance.ts";
import { NODE_INSTANCE_ID, openNodeMode } from "./node-side.ts";

/** Returns what was done, and whether the node is served now. */
export async function serveOnce(
  { kind, stateDir }: RunSettings,
  log: Log,
): Promise<{ readonly lines: readonly string[]; readonly isServed: boolean }> {
  checkCapabilities();
  await warmThreadPool();
  const runner = new NamespaceRunner();
  const memory = new NetlinkMemory();
  const netns = runner.homeNamespace(memory);
  const journal = new Journal(instanceFolder(stateDir, NODE_INSTANCE_ID));
  try {
    try {
      await requireUnserved(netns);
    } catch (error) {
      return { lines: [`nothing done: ${reasonOf(error)}`], isServed: false };
    }
    const docker = dockerResolverSockets();
    // dns11 does not listen after it exits, so queries of pods are redirected to where Docker's resolver listens:
    // 127.0.0.11, IPv4 only.
    const policy: KindPolicy = { ...kind, mode: "loopback", families: "ipv4" };
    const mode = openNodeMode(policy, { runner, memory, log, journal }, () => undefined);
    mode.capture();
    // Where there are very many rules, only now is it known whether one of them is in the way.
    await mode.conflicts.read();
    const capture = mode.capture();
    const redirects = capture.redirects.filter(({ bind }) => bind === docker.address);
    const input: PlanInput = {
      capture: { ...capture, redirects },
      listening: redirects.map(() => docker),
      zone: randomInt(1, 0xffff),
      sparedPorts: [],
      passthroughMark: randomMark(),
      trialMark: TRIAL_MARK,
    };
    await installPermanentRules(netns, servingPlan(input));
    mode.advertise();
    const { advertised, reasons } = mode.report();
    const addresses = advertised.join(", ") || "no address";
    const target = `Docker's resolver (udp ${docker.udpPort}, tcp ${docker.tcpPort})`;
    return { lines: [`pods query ${addresses}, redirected to ${target}`, ...reasons], isServed: true };
  } finally {
    runner.close();
  }
}

/** Undoes `serveOnce`, or what a killed run inside the node left behind. */
export async function undoNodeSetup(stateDir: string): Promise<string[]> {
  checkCapabilities();
  const memory = new NetlinkMemory();
  const instance = takeInstance(stateDir, NODE_INSTANCE_ID);
  const journal = new Journal(instance.folder);
  const { record, damaged } = journal.read(IN_NODE_ID);
  if (damaged !== undefined) {
    instance.release();
    throw new Fault("JOURNAL", `What dns11 has changed in this node is not known: ${damaged}`, {
      remedy:
        "Restart the node, which undoes most of it, and remove that file; or undo it with the version that wrote it.",
    });
  }
  const netns = new NamespaceRunner().homeNamespace(memory);
  const lines = (await removeUnownedRules(netns)).map((title) => `removed ${title}`);
  if (record !== undefined) {
    const { reachableAt } = await findDockerResolver(netns);
    lines.push(
      ...restoreResolvConf(record, IN_NODE_FILES.openWritten, reachableAt),
      ...restoreNamespace(record, memory),
    );
    journal.remove(IN_NODE_ID);
  }
  instance.remove();
  return lines.length === 0 ? ["nothing to undo"] : lines;
}
