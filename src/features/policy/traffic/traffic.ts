/**
 * Traffic: what containers asked and where they connected to, as a running dns11 has recorded it: the input of a learned policy,
 * and of what a changed one would refuse.
 */
import type { EgressConnection, EgressReport } from "../../../api/egress.ts";
import type { QueryReport } from "../../../api/queries.ts";
import {
  type LocalSourceKey,
  FOREIGN_SOURCES,
  type LocalSource,
  localSourceOf,
} from "../../../base/model/local-source.ts";
import { CLASS } from "../../../base/dns/record.ts";
import { parseType } from "../../../base/dns/record-type.ts";
import { presentedLabels } from "../../../base/dns/name.ts";
import { unmappedBytesOf } from "../../../base/model/address.ts";
import { StoredName } from "../../../base/model/label-table.ts";
import { CompiledPolicy } from "../judge/compiled-policy.ts";
import { type JudgedQuestion, NamespacePolicy } from "../judge/namespace-policy.ts";
import { type Refusal, commonPorts, hasPort } from "../judge/refusal.ts";
import { type Policy, decidingAmong } from "../model/policy.ts";
import { type Destination, fixedVerdict, isAbout } from "../enforce/fixed-rules.ts";

/** A name that a container asked and got an answer for. */
interface AskedName {
  readonly name: string;
  /** By type: who answered it on this machine; null if it was forwarded, or answered from what was. */
  readonly types: Map<string, LocalSourceKey | null>;
  /** The first addresses of its answers. */
  readonly addresses: Set<string>;
  count: number;
}

export interface ContainerTraffic {
  readonly container: string;
  readonly asked: Map<string, AskedName>;
  connections: readonly EgressConnection[];
}

const NOERROR = "NOERROR";

export class Traffic {
  readonly containers = new Map<string, ContainerTraffic>();
  /** Names that are hidden. */
  hidden = 0;

  /** A query whose answer says something: what fails is not missed. */
  addQuery({ container, name, type, rcode, answers, source, addresses }: QueryReport): void {
    if (rcode !== NOERROR || answers === 0 || type === null) return;
    if (name === null) {
      this.hidden++;
      return;
    }
    const lower = name.toLowerCase();
    const { asked } = this.of(container);
    const known = asked.get(lower) ?? { name: lower, types: new Map(), addresses: new Set(), count: 0 };
    asked.set(lower, known);
    known.types.set(type, source);
    known.count++;
    for (const address of addresses) known.addresses.add(address);
  }

  /** The connections since then. */
  addConnections({ containers }: EgressReport, sinceMs: number): void {
    for (const { container, connections } of containers) {
      const used = connections.filter(({ last }) => Date.parse(last) >= sinceMs);
      if (used.length > 0) this.of(container).connections = used;
    }
  }

  of(container: string): ContainerTraffic {
    const known = this.containers.get(container) ?? { container, asked: new Map(), connections: [] };
    this.containers.set(container, known);
    return known;
  }
}

interface WouldRefuse {
  readonly container: string;
  /** A name with its type, or an address with its port. */
  readonly what: string;
  readonly because: string;
}

export interface JudgedContainer {
  readonly refusals: readonly WouldRefuse[];
  /** Connections that no rule allows, and that pass because the policies filter only names. */
  readonly passing: number;
}

/** What policies would have refused of recorded traffic, by the code that decides about queries. */
export function judgedTraffic(traffic: ContainerTraffic, policies: readonly Policy[]): JudgedContainer {
  const { container, asked, connections } = traffic;
  if (policies.length === 0) return { refusals: [], passing: 0 };
  const compiled = policies.map((policy) => new CompiledPolicy(policy));
  const judge = new NamespacePolicy(container, compiled, { onRefusal: () => undefined, now: () => 0 });
  const refusals = [...asked.values()].flatMap((each) => nameRefusals(container, judge, each));
  const enforcing = compiled.filter(({ policy }) => policy.addresses === "enforce");
  const deciding = decidingAmong(enforcing.length > 0 ? enforcing : compiled, ({ policy }) => policy);
  let passing = 0;
  for (const connection of connections) {
    const because = connectionRefusal(connection, deciding);
    if (because === undefined) continue;
    if (enforcing.length > 0)
      refusals.push({ container, what: `${connection.address} ${portText(connection)}`, because });
    else passing++;
  }
  return { refusals, passing };
}

function nameRefusals(container: string, judge: NamespacePolicy, asked: AskedName): WouldRefuse[] {
  const { name, types, addresses } = asked;
  const refusals: WouldRefuse[] = [];
  const bytes = [...addresses].map((address) => unmappedBytesOf(address)).filter((each) => each !== undefined);
  for (const [type, source] of types) {
    const question = questionOf(name, type);
    if (question === undefined) continue;
    const local = source === null ? undefined : localSourceOf(source);
    const refusal = ofName(judge, question, local) ?? ofAnswer(judge, bytes, local);
    if (refusal !== undefined) refusals.push({ container, what: `${name} ${type}`, because: refusal.text });
  }
  return refusals;
}

function ofName(
  judge: NamespacePolicy,
  question: JudgedQuestion,
  source: LocalSource | undefined,
): Refusal | undefined {
  const denied = judge.name(question);
  return denied ?? (source === undefined ? judge.forward(question, true) : judge.local(question, source));
}

function ofAnswer(
  judge: NamespacePolicy,
  addresses: readonly Uint8Array[],
  source: LocalSource | undefined,
): Refusal | undefined {
  const isLocal = source !== undefined && !FOREIGN_SOURCES.has(source);
  for (const address of addresses) {
    const refusal = judge.address(address, isLocal);
    if (refusal !== undefined) return refusal;
  }
  return undefined;
}

function questionOf(name: string, type: string): JudgedQuestion | undefined {
  const labels = presentedLabels(name);
  return labels && { ...new StoredName(labels), type: parseType(type), class: CLASS.IN };
}

/** Why a connection is none that the kernel would let pass under these policies together; undefined if it is one. */
function connectionRefusal(connection: EgressConnection, deciding: readonly CompiledPolicy[]): string | undefined {
  const { owner, protocol } = connection;
  const policies = deciding.map(({ policy }) => policy);
  if (owner?.kind === "container" && policies.every(({ peers }) => peers === "allow")) return undefined;
  if (owner?.kind === "host" && policies.every(({ host }) => host === "allow")) return undefined;
  const port = connection.port ?? undefined;
  const address = unmappedBytesOf(connection.address);
  if (address !== undefined) {
    const destination = { address, port, protocol };
    const verdict = fixedVerdict(policies, destination);
    if (verdict === "allowed") return undefined;
    if (verdict === "denied") return deniedText(policies, destination);
  }
  // No name opens the machine.
  const closed = owner?.kind === "host" ? policies.find(({ host }) => host === "deny") : undefined;
  if (closed !== undefined) return `policy ${closed.name}: host: deny (${closed.where})`;
  const names = connection.names.map((name) => presentedLabels(name)).filter((labels) => labels !== undefined);
  const stored = names.map((labels) => new StoredName(labels));
  const denied = stored.flatMap((name) => deciding.flatMap((each) => each.denied(name) ?? []));
  const allowed = stored.filter((name) => deciding.every((each) => each.denied(name) === undefined));
  const isOpen = (name: StoredName): boolean =>
    hasPort(commonPorts(deciding.map((each) => each.portsOf([name]))), port, protocol);
  if (allowed.some(isOpen)) return undefined;
  const closing = deciding.find((each) => !allowed.some((name) => hasPort(each.portsOf([name]), port, protocol)));
  const { name, where } = (closing ?? deciding[0])?.policy ?? {};
  const isNamed = closing !== undefined && allowed.some((each) => closing.rulesFor(each).length > 0);
  if (isNamed) return `policy ${name} allows the name, but not ${portText(connection)} (${where})`;
  return denied[0]?.text ?? `policy ${name}: no rule allows it (${where})`;
}

function deniedText(policies: readonly Policy[], destination: Destination): string {
  for (const { name, file, deny } of policies) {
    const rule = deny.find((each) => isAbout(each, destination));
    if (rule !== undefined) return `policy ${name}: deny ${rule.text} (${file}:${rule.line})`;
  }
  return "a rule denies the address";
}

function portText({ port, protocol }: EgressConnection): string {
  return port === null ? protocol : `${port}/${protocol}`;
}
