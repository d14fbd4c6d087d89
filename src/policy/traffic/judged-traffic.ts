/**
 * JudgedTraffic: what policies would have refused of recorded traffic, by the code that decides about queries.
 */
import type { EgressConnection } from "../../api/egress.ts";
import { CLASS } from "../../base/dns/record.ts";
import { parseType } from "../../base/dns/record-type.ts";
import { presentedLabels } from "../../base/dns/name.ts";
import { plain } from "../../base/model/address.ts";
import { FOREIGN_SOURCES, type LocalSource, localSourceOf } from "../../base/model/local-source.ts";
import { PatternIndex } from "../../base/model/pattern-index.ts";
import { StoredName } from "../../base/model/stored-name.ts";
import { CompiledPolicy } from "../judge/compiled-policy.ts";
import { type JudgedQuestion, NamespacePolicy } from "../judge/namespace-policy.ts";
import type { Refusal } from "../judge/refusal.ts";
import { isInBlock } from "../../base/model/address-block.ts";
import type { Policy } from "../model/policy.ts";
import type { PolicyRule } from "../model/policy-rule.ts";
import type { AskedName, ContainerTraffic } from "./traffic.ts";

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

export function judgedTraffic(traffic: ContainerTraffic, policies: readonly Policy[]): JudgedContainer {
  const { container, asked, connections } = traffic;
  if (policies.length === 0) return { refusals: [], passing: 0 };
  const judge = new NamespacePolicy(
    container,
    policies.map((policy) => new CompiledPolicy(policy)),
    { onRefusal: () => undefined, now: () => 0 },
  );
  const refusals = [...asked.values()].flatMap((each) => nameRefusals(container, judge, each));
  let passing = 0;
  for (const connection of connections) {
    const because = connectionRefusal(connection, policies);
    if (because === undefined) continue;
    const { address, port, protocol } = connection;
    if (policies.some(({ addresses }) => addresses === "enforce"))
      refusals.push({ container, what: `${address} ${port === null ? protocol : `${port}/${protocol}`}`, because });
    else passing++;
  }
  return { refusals, passing };
}

function nameRefusals(container: string, judge: NamespacePolicy, asked: AskedName): WouldRefuse[] {
  const { name, types, addresses } = asked;
  const refusals: WouldRefuse[] = [];
  const bytes = [...addresses].map((address) => plain(address)).filter((each) => each !== undefined);
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

/** Why a connection is none that the policies allow; undefined if they do. */
function connectionRefusal(connection: EgressConnection, policies: readonly Policy[]): string | undefined {
  const { address, owner } = connection;
  const bytes = plain(address);
  for (const policy of policies) {
    if (owner?.kind === "container" && policy.peers === "allow") continue;
    if (owner?.kind === "host" && policy.host === "allow") continue;
    const denied = policy.deny.find((rule) => isAbout(rule, connection, bytes));
    if (denied !== undefined) return `policy ${policy.name}: deny ${denied.text} (${policy.file}:${denied.line})`;
    if (policy.allow.some((rule) => isAbout(rule, connection, bytes))) continue;
    return `policy ${policy.name}: no rule allows it (${policy.where})`;
  }
  return undefined;
}

/** By the address, or by a name that was answered with it. */
function isAbout(
  { port, protocol, block, pattern }: PolicyRule,
  connection: EgressConnection,
  address: Uint8Array | undefined,
): boolean {
  if (port !== undefined && port !== connection.port) return false;
  if (protocol !== undefined && protocol !== connection.protocol) return false;
  if (block !== undefined) return address !== undefined && isInBlock(address, block);
  if (pattern === undefined) return false;
  const index = new PatternIndex<true>();
  index.add(pattern, true);
  return connection.names.some((name) => {
    const labels = presentedLabels(name);
    return labels !== undefined && index.find(new StoredName(labels)).length > 0;
  });
}
