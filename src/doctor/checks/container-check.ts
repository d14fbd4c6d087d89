/**
 * Container check: everything that decides whether a container with Docker's resolver can resolve names, checked from inside
 * its network namespace, whether dns11 or Docker answers there.
 */
import { type Finding, finding } from "../../base/model/finding.ts";
import { DOCKER_RESOLVER } from "../../container/capture/capture.ts";
import { PASSTHROUGH_MARK } from "../../container/namespace/dial.ts";
import { unlessLocked } from "../../container/namespace/rules-locked.ts";
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
import { capturedRulesFindings, rulesFindings, readRuleSnapshot } from "./rules-check.ts";
import { addressesOf, wildcardFinding } from "./upstream-check.ts";

/** How many search domains to query below. */
const DOMAINS_MAX = 6;
const FIX_OTHERS_FIRST = "Fix the other findings of this container first; they are the likely cause.";

/** What a query needs no server for, of a container that has no name. */
const LOCAL_NAME = "localhost";

export async function checkContainer(target: ContainerTarget, { runner, memory }: CheckTools): Promise<Finding[]> {
  const { fd, fact, resolvConf, isAnswered, announce } = target;
  const netns = runner.namespaceOf(fd, memory);
  const { within } = netns;
  const { search } = parseResolvConf(resolvConf.text ?? "");
  const domains = search.filter((domain) => domain !== ".").slice(0, DOMAINS_MAX);
  const ownName = target.isNamed
    ? { name: fact.name, addresses: addressesOf(fact) }
    : { name: LOCAL_NAME, addresses: [] };
  const query = { code: "answers", servers: [DOCKER_RESOLVER], within, remedy: FIX_OTHERS_FIRST } as const;
  const [answers, passthrough, wildcard] = await Promise.all([
    queryOwnName(ownName, { ...query, client: "the container", announce }),
    // What Docker has no name for, its resolver forwards.
    isAnswered && target.isNamed
      ? queryOwnName(ownName, { ...query, client: "the container past dns11", mark: PASSTHROUGH_MARK })
      : [],
    wildcardFinding(within, domains, announce),
  ]);
  const isResolving = answers.every(({ state }) => state === "ok");
  const rules = await unlessLocked(runner, netns, readRuleSnapshot);
  return within(() => [
    ...resolvConfFindings(resolvConf, true),
    ...(wildcard === undefined ? [] : [wildcard]),
    loopbackFinding(memory, fact.pid),
    ...rulesFindings(rules, target, isResolving),
    listenerFinding(target),
    portFinding(),
    ...answers,
    ...((rules.docker?.length ?? 0) > 0 && isResolving ? fallbackFindings(passthrough, fact.name) : []),
    conntrackFinding(),
    staleFinding(staleTranslations(memory), isAnswered),
  ]);
}

/** The checks of a KIND node's namespace; checkNode() covers its queries and rules. */
export function checkNodeNamespace(target: ContainerTarget, { runner, memory }: CheckTools): Finding[] {
  return runner.within(target.fd, () => [
    loopbackFinding(memory, target.fact.pid),
    listenerFinding(target),
    conntrackFinding(),
    staleFinding(staleTranslations(memory), target.isAnswered),
  ]);
}

/** The checks of a container on the default bridge that dns11 serves at the servers of its resolv.conf. */
export async function checkCapturedContainer(
  target: ContainerTarget,
  { runner, memory }: CheckTools,
): Promise<Finding[]> {
  const { fd, fact, resolvConf } = target;
  const netns = runner.namespaceOf(fd, memory);
  const { within } = netns;
  const servers = fact.nameservers.kind === "captured" ? fact.nameservers.servers : [];
  const ownName = { name: fact.name, addresses: addressesOf(fact) };
  const answers = await queryOwnName(ownName, {
    code: "answers",
    client: "the container",
    servers,
    within,
    remedy: FIX_OTHERS_FIRST,
  });
  const isResolving = answers.every(({ state }) => state === "ok");
  const rules = await unlessLocked(runner, netns, readRuleSnapshot);
  return within(() => [
    ...resolvConfFindings(resolvConf, false),
    loopbackFinding(memory, fact.pid),
    ...capturedRulesFindings(rules, target, isResolving),
    listenerFinding(target),
    ...answers,
    conntrackFinding(),
  ]);
}

/** The checks of a container without Docker's resolver, which queries the servers of its resolv.conf directly. */
export function checkUnservedContainer(
  { fact, fd, resolvConf }: ContainerTarget,
  { runner, memory }: CheckTools,
): Finding[] {
  return [
    ...resolvConfFindings(resolvConf, false),
    ...runner.within(fd, () => [loopbackFinding(memory, fact.pid), conntrackFinding()]),
  ];
}

/** Docker's resolver is the fallback when dns11 stops. */
function fallbackFindings(passthrough: readonly Finding[], name: string): Finding[] {
  const failed = passthrough.filter(({ state }) => state !== "ok");
  if (failed.length === 0) return [];
  const detail = `Docker's resolver, the fallback when dns11 stops, does not answer: ${failed.map((each) => each.detail).join("; ")}`;
  return [
    finding("docker-rules", "warning", detail, `Run docker restart ${name}: Docker then sets its resolver up again.`),
  ];
}
