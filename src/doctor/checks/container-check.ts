/**
 * Container check: everything that decides whether a container with Docker's resolver can resolve names, checked from inside
 * its network namespace, whether dns11 or Docker answers there.
 */
import { composeServiceOf } from "../../container/facts/compose.ts";
import { type Finding, finding } from "../../base/model/finding.ts";
import { DOCKER_RESOLVER } from "../../container/capture/capture.ts";
import { unlessLocked } from "../../container/namespace/rules-locked.ts";
import { parseResolvConf } from "../../container/watch/resolv-conf.ts";
import { readXtables, type Xtables } from "../../kernel/xtables.ts";
import { findCulprits } from "../../container/rules/culprit.ts";
import type { NetNamespace } from "../../kernel/net-namespace.ts";
import { chainsRedirecting, DOCKER_CHAIN, DOCKER_TABLE } from "../../container/rules/port-redirects.ts";
import { type InstalledRules, installedRules, installedMark } from "../../container/rules/installed-rules.ts";
import {
  conntrackFinding,
  listenerFinding,
  loopbackFinding,
  portFinding,
  staleFinding,
  staleTranslations,
} from "./namespace-check.ts";
import { queryOwnName } from "../../container/rules/own-name.ts";
import type { ContainerTarget, CheckTools } from "./container-target.ts";
import { resolvConfFindings } from "./resolv-conf-check.ts";
import { addressesOf, wildcardFinding } from "./upstream-check.ts";
import { type LegacyRule, legacyRules } from "../../kernel/legacy-rules.ts";
import { attributesIn, textOf } from "../../kernel/netlink-message.ts";
import type { NetlinkMemory } from "../../kernel/netlink-socket.ts";
import { visitFirst } from "../../kernel/nfnetlink.ts";
import * as nft from "../../kernel/nft-constants.ts";
import { libcOf } from "../../container/namespace/container-libc.ts";
import { readUnder } from "../../container/namespace/container-root.ts";
import { LIMITS } from "../../base/limits.ts";
import { mapConcurrent } from "../../base/lib/async.ts";
import { containerCalled } from "../../base/model/container-choice.ts";
import type { ContainerFact } from "../../container/facts/fact.ts";
import type { Engine } from "../../container/watch/engine.ts";
import { ImageConfigs } from "../../container/watch/image-configs.ts";
import { clientCause } from "../../control/causes/client-causes.ts";
import {
  type KnownContainer,
  runningContainer,
  stoppedContainer,
  fromInspect,
  KnownContainers,
} from "../../control/causes/known-container.ts";
import { causeFinding } from "./failing-names.ts";

const DNS_PORT = 53;

/** Nobody waits for an answer: as long as programs hold the lock while many containers start. */
const XTABLES_WAIT_MS = 5_000;

/**
 * The rules in a namespace, ours, Docker's and others', judged by a real query: another program's rule is not a
 * problem as long as queries get through.
 */
interface RuleSnapshot {
  readonly own: readonly InstalledRules[];
  /** undefined if there are too many rules to read. */
  readonly docker: readonly DockerRules[] | undefined;
  readonly foreign: readonly string[];
}

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
  const mark = within(() => installedMark(memory));
  const [answers, passthrough, wildcard] = await Promise.all([
    queryOwnName(ownName, { ...query, client: "the container", announce }),
    // What Docker has no name for, its resolver forwards.
    isAnswered && target.isNamed && mark !== undefined
      ? queryOwnName(ownName, { ...query, client: "the container past dns11", mark })
      : [],
    wildcardFinding(within, domains, announce),
  ]);
  const isResolving = answers.every(({ state }) => state === "ok");
  const rules = await unlessLocked(runner, netns, readRuleSnapshot);
  return within(() => [
    ...resolvConfFindings(resolvConf, true, composeServiceOf(fact)),
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

/** The checks of a namespace whose queries and rules a feature checks. */
export function checkBesides(target: ContainerTarget, { runner, memory }: CheckTools): Finding[] {
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
    ...resolvConfFindings(resolvConf, false, composeServiceOf(fact)),
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
    ...resolvConfFindings(resolvConf, false, composeServiceOf(fact)),
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

async function readRuleSnapshot(netns: NetNamespace): Promise<RuleSnapshot> {
  const { memory } = netns;
  const tables = await readXtables(netns.within, XTABLES_WAIT_MS);
  const legacy = legacyRuleCulprits(tables);
  const [redirecting, docker] = await netns.read(() => [
    chainsRedirecting(memory, DNS_PORT).map((chain) => `chain ${chain} redirects port 53`),
    dockerRules(memory, tables),
  ]);
  // legacyRuleCulprits() reports the rules of iptables-legacy one by one, so a list of its tables adds nothing.
  const others = (await findCulprits(netns)).filter((sentence) => !sentence.startsWith("iptables-legacy has rules"));
  return { own: await installedRules(netns), docker, foreign: [...redirecting, ...others, ...legacy] };
}

/** `isResolving`: the container's test queries got their answers. */
function rulesFindings(
  rules: RuleSnapshot,
  { fact, served, isAnswered }: ContainerTarget,
  isResolving: boolean,
): Finding[] {
  return [
    ownRulesFinding(rules.own, served !== undefined),
    dockerRulesFinding(rules.docker, isAnswered, fact.name),
    foreignRulesFinding(rules.foreign, isResolving, fact.pid),
  ];
}

/** The same where Docker has no resolver, and so no rules. */
function capturedRulesFindings(
  { own, foreign }: RuleSnapshot,
  { fact, served }: ContainerTarget,
  isResolving: boolean,
): Finding[] {
  return [ownRulesFinding(own, served !== undefined), foreignRulesFinding(foreign, isResolving, fact.pid)];
}

function ownRulesFinding(installed: readonly InstalledRules[], isServed: boolean): Finding {
  const titles = (owner: InstalledRules["owner"]): string =>
    installed
      .filter((one) => one.owner === owner)
      .map(({ title }) => title)
      .join(", ");
  const [owned, left, permanent] = [titles("instance"), titles("orphaned"), titles("permanent")];
  if (left !== "") {
    const detail = `${left}, left by a killed dns11, redirects queries to a port where nothing listens`;
    return finding("rules", "problem", detail, "Run `dns11 doctor --fix` or `dns11 cleanup` to remove it.");
  }
  if (owned !== "") return finding("rules", "ok", `${owned}, owned by a running process`);
  if (permanent !== "") return finding("rules", "ok", `${permanent}, permanent, made in the node`);
  if (!isServed) return finding("rules", "ok", "none");
  return finding(
    "rules",
    "problem",
    "dns11 serves the container, but its rules are missing",
    "Run `dns11 doctor --fix` to install them again.",
  );
}

function dockerRulesFinding(docker: readonly DockerRules[] | undefined, isAnswered: boolean, name: string): Finding {
  if (docker === undefined) {
    return finding(
      "docker-rules",
      "unknown",
      "the nat table of iptables-legacy is too large to read, changes too often, or is locked by other programs",
    );
  }
  if (docker.length > 0) return finding("docker-rules", "ok", docker.join(", "));
  const remedy = `Run docker restart ${name}, or disconnect its network and connect it again: Docker then writes them again.`;
  const cause = "another program (such as a firewall or a VPN client) flushed them, or Docker never wrote them";
  if (isAnswered) {
    const detail = `none: ${cause}; the container will have no DNS when dns11 stops`;
    return finding("docker-rules", "warning", detail, remedy);
  }
  return finding("docker-rules", "problem", `none: ${cause}; queries do not reach Docker's resolver`, remedy);
}

function foreignRulesFinding(foreign: readonly string[], isResolving: boolean, pid: number): Finding {
  if (foreign.length === 0) return finding("foreign-rules", "ok", "none that redirect or drop DNS queries");
  const text = foreign.join("; ");
  if (isResolving) return finding("foreign-rules", "warning", `${text}; queries get through nevertheless`);
  const list = text.includes("iptables-legacy") ? "iptables-legacy-save" : "nft -a list ruleset";
  const remedy = `Change or remove these rules. To list them, run: nsenter -t ${pid} -n ${list}`;
  return finding("foreign-rules", "problem", `${text}; queries do not get through`, remedy);
}

/**
 * Docker rules: whether the rules that redirect 127.0.0.11 to Docker's resolver still exist, in whichever of the three forms the
 * engine wrote them; and which iptables-legacy rules redirect or drop packets to port 53.
 */
type DockerRules = "iptables (nft)" | "iptables-legacy" | "nftables";

const TRANSLATING = new Set(["DNAT", "REDIRECT"]);
const DROPPING = new Set(["DROP", "REJECT"]);

/**
 * Call inside the namespace; `tables` are its IPv4 tables of iptables-legacy. undefined if there are too many rules to read.
 */
export function dockerRules(memory: NetlinkMemory, tables: Xtables | undefined): readonly DockerRules[] | undefined {
  const found = new Set<DockerRules>();
  const isComplete = visitFirst(memory, { command: nft.NFT_MSG_GETRULE, family: 0 }, (_, bytes) => {
    const attributes = attributesIn(bytes);
    if (textOf(attributes.get(nft.NFTA_RULE_TABLE)) === DOCKER_TABLE) found.add("nftables");
    if (textOf(attributes.get(nft.NFTA_RULE_CHAIN)) === DOCKER_CHAIN) found.add("iptables (nft)");
  });
  const legacy = legacyRules(tables, "nat");
  if (legacy?.some(({ chain, target }) => chain === DOCKER_CHAIN && target === "DNAT") === true) {
    found.add("iptables-legacy");
  }
  return found.size === 0 && (legacy === undefined || !isComplete) ? undefined : [...found];
}

/** Sentences about iptables-legacy. */
export function legacyRuleCulprits(tables: Xtables | undefined): readonly string[] {
  const rulesOf = (table: string): readonly LegacyRule[] => legacyRules(tables, table) ?? [];
  const redirected = rulesOf("nat").filter(
    (rule) => TRANSLATING.has(rule.target) && isForeign(rule) && isAboutDns(rule),
  );
  const dropped = [...(tables?.keys() ?? [])]
    .flatMap((table) => rulesOf(table).map((rule) => ({ ...rule, table })))
    .filter((rule) => DROPPING.has(rule.target) && rule.chain !== "FORWARD" && isForeign(rule) && isAboutDns(rule));
  return [
    ...unique(redirected.map(({ chain }) => `chain "${chain}" of iptables-legacy table nat redirects port 53`)),
    ...unique(dropped.map(({ chain, table }) => `chain "${chain}" of iptables-legacy table ${table} drops packets`)),
  ];
}

function isForeign({ chain }: LegacyRule): boolean {
  return chain !== DOCKER_CHAIN;
}

function isAboutDns({ portFrom, portTo }: LegacyRule): boolean {
  return portFrom <= DNS_PORT && DNS_PORT <= portTo;
}

function unique(sentences: readonly string[]): string[] {
  return [...new Set(sentences)];
}

/** The first musl that retries truncated replies over TCP. */
const MUSL_WITH_TCP = [1, 2, 4];

/**
 * Libc check: which C library resolves names in a container, found in its files. musl and glibc read the same reply
 * differently, and the limits of musl before 1.2.4 explain many names that resolve in some images only.
 * `root`: the container's root directory; `resolvConf`: the text of its file.
 */
export function libcFinding(root: number, resolvConf: string | undefined): Finding {
  const libc = libcOf((path, bytesMax) => readUnder(root, path, bytesMax));
  if (libc === undefined) {
    return finding("libc", "ok", "no glibc or musl found; programs use their own resolver");
  }
  const name = `${libc.kind} ${libc.version ?? "(unknown version)"}`;
  if (libc.kind === "glibc") {
    const detail = `${name}: queries the nameservers one after the other, 5 s each, and retries truncated replies over TCP`;
    return finding("libc", "ok", detail);
  }
  const others = parseResolvConf(resolvConf ?? "").nameservers.filter((server) => server !== DOCKER_RESOLVER);
  const hints = [
    ...(isBefore(libc.version, MUSL_WITH_TCP)
      ? [
          "no TCP support before 1.2.4, so of an answer over 512 bytes it gets the addresses that fit, and of other types nothing",
        ]
      : []),
    ...(others.length > 0 ? [`queries ${others.join(", ")} at the same time and uses the first reply`] : []),
  ];
  const always = "takes an NXDOMAIN for AAAA as an answer for the whole name";
  if (hints.length === 0) return finding("libc", "ok", `${name}: queries all nameservers at once, and ${always}`);
  const remedy = "Use an image with musl 1.2.4 (Alpine 3.18) or later, and name only 127.0.0.11 in resolv.conf.";
  return finding("libc", "warning", `${name}: ${[...hints, always].join("; ")}`, remedy);
}

function isBefore(version: string | undefined, wanted: readonly number[]): boolean {
  if (version === undefined) return false;
  const parts = version.split(".").map(Number);
  const at = wanted.findIndex((number, index) => parts[index] !== number);
  return at !== -1 && (parts[at] ?? 0) < (wanted[at] ?? 0);
}

/** Of more containers that do not run, the newest. */
const ENDED_MAX = 64;

/**
 * Container state: containers whose programs resolve nothing, whatever they look up, because they end over and over, or because the
 * container whose network they use has been made again. Those need the doctor most, and some of them are not running just now.
 * The containers that do not run, the newest first.
 */
export async function endedContainers(engine: Engine): Promise<readonly KnownContainer[]> {
  const images = new ImageConfigs(engine);
  const listed = (await engine.notRunningContainers()).slice(0, ENDED_MAX);
  const all = await mapConcurrent(listed, LIMITS.inspectsAtOnce, async (each) => {
    const json = await engine.container(each.Id);
    return json === undefined ? undefined : stoppedContainer(fromInspect(each, json, await images.split(json)));
  });
  return all.filter((each) => each !== undefined && each.ended?.state !== "running") as KnownContainer[];
}

/** Those that the word stands for, or that end over and over where there is none. */
export function chosenEnded(
  ended: readonly KnownContainer[],
  word: string | undefined,
  project: string | undefined,
): readonly KnownContainer[] {
  const own = ended.filter(({ compose }) => project === undefined || compose?.project === project);
  if (word === undefined) return own.filter((each) => each.ended?.state === "restarting");
  const named = own.map((each) => ({
    id: each.id,
    name: each.name,
    project: each.compose?.project ?? null,
    service: each.compose?.service ?? null,
    each,
  }));
  return [containerCalled(named, word).each];
}

/** What keeps each of them from resolving anything. */
export class ContainerStates {
  readonly #known: KnownContainers;

  constructor(running: readonly ContainerFact[], ended: readonly KnownContainer[]) {
    this.#known = new KnownContainers([...running.map((fact) => runningContainer(fact)), ...ended]);
  }

  findings(id: string): Finding[] {
    const container = this.#known.byId(id);
    const cause = container === undefined ? undefined : clientCause(container, this.#known, Date.now());
    if (cause === undefined) return [];
    return [causeFinding("container-state", "problem", cause.sentence, cause)];
  }
}
