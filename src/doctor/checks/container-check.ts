/**
 * Examine: everything that decides whether a container with Docker's resolver finds names, looked at from inside its
 * network namespace, whoever answers there.
 */
import { randomBytes } from "node:crypto";

import { type Finding, finding } from "../../base/model/finding.ts";
import { DOCKER_RESOLVER } from "../../container/capture/capture.ts";
import { PASSTHROUGH_MARK } from "../../container/namespace/dial.ts";
import { parseResolvConf } from "../../container/watch/resolv-conf.ts";
import {
  conntrackFinding,
  listenerFinding,
  loopbackFinding,
  portFinding,
  staleFinding,
  staleTranslations,
} from "./namespace-check.ts";
import { queryOwnName } from "./own-name.ts";
import type { ContainerTarget, CheckTools } from "./container-target.ts";
import { resolvConfFindings } from "./resolv-conf-check.ts";
import { rulesFindings, readRuleSnapshot } from "./rules-check.ts";
import { addressesOf, wildcardFinding } from "./upstream-check.ts";

/** Of search domains, so many are asked below; more than that nobody has by intention. */
const DOMAINS_ASKED = 6;
const SEE_ABOVE = "Whatever else is found wrong here may be why.";

export async function checkContainer(patient: ContainerTarget, { runner, memory }: CheckTools): Promise<Finding[]> {
  const { fd, fact, resolvConf, isAnswered } = patient;
  const within = <T>(work: () => T): T => runner.within(fd, work);
  const { search } = parseResolvConf(resolvConf.text ?? "");
  const domains = search.filter((domain) => domain !== ".").slice(0, DOMAINS_ASKED);
  const person = { name: fact.name, addresses: addressesOf(fact) };
  const question = { code: "answers", servers: [DOCKER_RESOLVER], within, remedy: SEE_ABOVE } as const;
  const [answers, behind, swallow] = await Promise.all([
    queryOwnName(person, { ...question, client: "the container" }),
    isAnswered ? queryOwnName(person, { ...question, client: "whoever passes by dns11", mark: PASSTHROUGH_MARK }) : [],
    wildcardFinding(within, domains, `dns11-doctor-${randomBytes(8).toString("hex")}`),
  ]);
  const comesThrough = answers.every(({ state }) => state === "ok");
  return within(() => {
    const seen = readRuleSnapshot(memory);
    return [
      ...resolvConfFindings(resolvConf, true),
      ...(swallow === undefined ? [] : [swallow]),
      loopbackFinding(memory),
      ...rulesFindings(seen, patient, comesThrough),
      listenerFinding(patient),
      portFinding(),
      ...answers,
      ...((seen.docker?.length ?? 0) > 0 && comesThrough ? fallbackFindings(behind) : []),
      conntrackFinding(),
      staleFinding(staleTranslations(memory), isAnswered),
    ];
  });
}

/** The same of a KIND node, whose own queries and rules are looked at as its pods see them. */
export function checkNodeNamespace(patient: ContainerTarget, { runner, memory }: CheckTools): Finding[] {
  return runner.within(patient.fd, () => [
    loopbackFinding(memory),
    listenerFinding(patient),
    conntrackFinding(),
    staleFinding(staleTranslations(memory), patient.isAnswered),
  ]);
}

/** The same of a container without Docker's resolver: it asks the servers of its file by itself. */
export function checkUnservedContainer({ fd, resolvConf }: ContainerTarget, { runner, memory }: CheckTools): Finding[] {
  return [
    ...resolvConfFindings(resolvConf, false),
    ...runner.within(fd, () => [loopbackFinding(memory), conntrackFinding()]),
  ];
}

/** Docker's resolver behind us is who answers when we are gone. */
function fallbackFindings(behind: readonly Finding[]): Finding[] {
  const failed = behind.filter(({ state }) => state !== "ok");
  if (failed.length === 0) return [];
  const detail = `Docker's resolver, which answers when dns11 ends, does not: ${failed.map((each) => each.detail).join("; ")}`;
  return [finding("docker-rules", "warning", detail, "Start the container anew, and Docker sets it up again.")];
}
