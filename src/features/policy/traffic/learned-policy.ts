/**
 * LearnedPolicy: the settings file with a policy that allows what was used, and nothing else. Names are the containers' own words, so
 * only plain ones become rules: a name that was asked as `*.com` is none.
 */
import { type EgressConnection, isUnasked } from "../../../api/egress.ts";
import { parseType } from "../../../base/dns/record-type.ts";
import { unmappedBytesOf } from "../../../base/model/address.ts";
import { FOREIGN_SOURCES, type LocalSourceKey, localSourceOf } from "../../../base/model/local-source.ts";
import { isLiteralName, readPattern } from "../../../base/model/name-pattern.ts";
import { isPrivate } from "../judge/compiled-policy.ts";
import { POLICY_DEFAULTS } from "../model/policy.ts";
import { readRule } from "../model/policy-rule.ts";
import { sharedBelow } from "../model/policy-warnings.ts";
import type { ContainerTraffic, Traffic } from "./traffic.ts";
import { POLICY_LIMITS } from "../model/limits.ts";

/** A domain like co.uk, of which the list of shared domains does not have all. */
const REGISTRY = /^(?:ac|co|com|edu|gob|gov|gv|info|ltd|mil|name|ne|net|nom|or|org|plc|sch)\.[a-z]{2}$/;

/** Whom the policy is for. */
export interface LearnedFor {
  readonly name: string;
  /** As in the settings: project=NAME; undefined where a label is to choose it. */
  readonly scope: string | undefined;
  /** Whether many names right below one domain may become a wildcard. */
  readonly wildcards?: boolean;
}

interface LearnedPolicy {
  /** The text of a settings file. */
  readonly text: string;
  readonly rules: number;
  /** For the operator to know: what was left out, what was generalised. */
  readonly notes: readonly string[];
}

/** A name that needs a rule: for which types it was asked, by which containers. */
interface OutsideName {
  readonly types: ReadonlySet<string>;
  readonly by: ReadonlySet<string>;
}

interface Rule {
  readonly text: string;
  readonly why: string;
}

const REVERSE = /\.(?:in-addr|ip6)\.arpa$/;
/** So many names right below one domain become a wildcard. */
const WILDCARD_FROM = 5;
const SHOWN_MAX = 3;
const HOST_SOURCES: ReadonlySet<string> = new Set(["add-host", "engine-host"]);
const PORTS = new Set(["tcp", "udp"]);

export function learnedPolicy(
  traffic: Traffic,
  { name, scope, wildcards = false }: LearnedFor,
  when: string,
): LearnedPolicy {
  const notes: string[] = [];
  const all = [...traffic.containers.values()];
  const connections = all.flatMap((each) => each.connections);
  const { names, odd } = outsideNames(all);
  const named = nameRules(names, connections, wildcards, notes);
  const addressed = addressRules(all);
  const rules = [...named, ...addressed].slice(0, POLICY_LIMITS.rules);
  const usesHost =
    all.some(({ asked }) => [...asked.values()].some(({ types }) => [...types.values()].some(isOfHost))) ||
    connections.some(({ owner }) => owner?.kind === "host");
  if (odd > 0) notes.push(`${odd} names are left out, because they are none of a host`);
  if (traffic.hidden > 0) notes.push("names are hidden (queries.names), so their rules are missing");
  if (named.length + addressed.length > rules.length)
    notes.push(
      `${named.length + addressed.length - rules.length} rules are left out: a policy has at most ${rules.length}`,
    );
  const unasked = connections.filter(isUnasked).length;
  if (unasked > 0)
    notes.push(`${unasked} connections went to addresses that nobody had asked for: see whether they should`);
  const text = [
    `# Learned ${when} from ${all.length} ${all.length === 1 ? "container" : "containers"}: what they asked and connected to.`,
    "# Read it: a program that was already misused has taught it what it did.",
    ...notes.map((note) => `# ${note}.`),
    "version: 1",
    "policies:",
    `  ${name}:`,
    scope === undefined
      ? `    # Containers choose it by the label io.dns11.policy=${name}.`
      : `    for: [${JSON.stringify(scope)}]`,
    "    # audit refuses nothing and records what enforce would refuse.",
    "    mode: audit",
    ...(usesHost ? ["    # They used the machine itself.", "    host: allow"] : []),
    rules.length === 0 ? "    allow: []" : "    allow:",
    ...rules.map((rule) => `      - ${JSON.stringify(rule.text)} # ${rule.why}`),
  ];
  return { text: `${text.join("\n")}\n`, rules: rules.length, notes };
}

function isOfHost(source: string | null): boolean {
  return source !== null && HOST_SOURCES.has(source);
}

/** It was forwarded, or others decide what it means. */
function isOutside(source: LocalSourceKey | null): boolean {
  return source === null || FOREIGN_SOURCES.has(localSourceOf(source));
}

/** Names that need a rule, each once, and how many of them cannot be written. */
function outsideNames(all: readonly ContainerTraffic[]): {
  readonly names: Map<string, OutsideName>;
  readonly odd: number;
} {
  const names = new Map<string, OutsideName>();
  const odd = new Set<string>();
  for (const { container, asked } of all) {
    for (const { name, types } of asked.values()) {
      const outside = [...types].filter(([, source]) => isOutside(source)).map(([type]) => type);
      // The reverse name of an address that was given is allowed with it.
      if (outside.length === 0 || REVERSE.test(name)) continue;
      const { types: before = [], by = [] } = names.get(name) ?? {};
      if (!isLiteralName(name) || readRule(name).pattern?.before !== "none") odd.add(name);
      else names.set(name, { types: new Set([...before, ...outside]), by: new Set([...by, container]) });
    }
  }
  return { names, odd: odd.size };
}

function nameRules(
  names: ReadonlyMap<string, OutsideName>,
  connections: readonly EgressConnection[],
  wildcards: boolean,
  notes: string[],
): Rule[] {
  const rules: Rule[] = [];
  /** Names with the same domain and the same ports. */
  const groups = new Map<
    string,
    { readonly domain: string; readonly ports: readonly string[]; readonly names: string[] }
  >();
  for (const [name, { types }] of [...names].toSorted(([a], [b]) => byDomain(a, b))) {
    const ports = portsOf(name, connections);
    const domain = name.slice(name.indexOf(".") + 1);
    const isUsual = [...types].every((type) => POLICY_DEFAULTS.types.has(parseType(type)));
    const key = isUsual && name.includes(".") ? `${domain} ${ports.join()}` : name;
    const group = groups.get(key) ?? { domain, ports, names: [] };
    group.names.push(name);
    groups.set(key, group);
  }
  for (const { domain, ports, names: own } of groups.values()) {
    const wildcard = own.length < WILDCARD_FROM ? undefined : safeWildcard(domain);
    const what = `${own.length} names, such as ${own.slice(0, SHOWN_MAX).join(", ")}`;
    if (wildcard !== undefined && wildcards) {
      notes.push(`${wildcard} stands for ${what}`);
      rules.push(...withPorts(wildcard, ports, what));
      continue;
    }
    if (wildcard !== undefined) notes.push(`--wildcards would write ${wildcard} for ${what}`);
    for (const name of own) {
      const by = `asked by ${listed(names.get(name)?.by ?? [])}`;
      rules.push(...withPorts(name, ports, ports.length === 0 ? `${by}; no connection seen` : by));
    }
  }
  return rules;
}

/** The names of some containers, and how many more there are. */
function listed(containers: Iterable<string>): string {
  const all = [...containers].toSorted().map((each) => each.replaceAll(/[^\w.-]/g, "?"));
  const more = all.length > SHOWN_MAX ? ` and ${all.length - SHOWN_MAX} more` : "";
  return `${all.slice(0, SHOWN_MAX).join(", ")}${more}`;
}

function withPorts(subject: string, ports: readonly string[], why: string): Rule[] {
  return ports.length === 0 ? [{ text: subject, why }] : ports.map((port) => ({ text: `${subject}:${port}`, why }));
}

/** As in 443/tcp. */
function portsOf(name: string, connections: readonly EgressConnection[]): string[] {
  const own = connections.filter(
    ({ names, port, protocol }) => names.includes(name) && port !== null && PORTS.has(protocol),
  );
  return [...new Set(own.map(({ port, protocol }) => `${port}/${protocol}`))].toSorted();
}

/** Addresses that nobody had asked for, and those of names that are not public: answers with these need a rule of their own. */
function addressRules(all: readonly ContainerTraffic[]): Rule[] {
  const found = new Map<string, { readonly why: string; readonly by: Set<string> }>();
  for (const { container, connections } of all) {
    for (const { address, port, protocol, names, owner } of connections) {
      if (owner !== null) continue;
      const bytes = unmappedBytesOf(address);
      if (names.length > 0 && (bytes === undefined || !isPrivate(bytes))) continue;
      const bracketed = address.includes(":") ? `[${address}]` : address;
      const text = port === null || !PORTS.has(protocol) ? address : `${bracketed}:${port}/${protocol}`;
      const plainNames = names.filter((name) => isLiteralName(name));
      const why = names.length === 0 ? "never asked" : `not public; ${plainNames.slice(0, SHOWN_MAX).join(", ")}`;
      const known = found.get(text) ?? { why, by: new Set() };
      known.by.add(container);
      found.set(text, known);
    }
  }
  return [...found].map(([text, { why, by }]) => ({ text, why: `${why}, by ${listed(by)}` }));
}

/** Those of one domain stand together. */
function byDomain(a: string, b: string): number {
  const [left, right] = [a, b].map((each) => each.split(".").toReversed().join("."));
  return (left ?? "") < (right ?? "") ? -1 : 1;
}

/**
 * Where a wildcard stands for names of one owner. Below a domain in which strangers have names, at whatever depth, it
 * could allow theirs, so the names stay as they are.
 *
 * The wildcard for the names right below a domain; undefined where strangers may have some.
 */
export function safeWildcard(domain: string): string | undefined {
  const labels = domain.split(".");
  if (labels.length < 2 || REGISTRY.test(domain)) return undefined;
  for (let at = 0; at < labels.length - 1; at++) {
    if (sharedBelow(readPattern(`*.${labels.slice(at).join(".")}`)) !== undefined) return undefined;
  }
  return `*.${domain}`;
}
