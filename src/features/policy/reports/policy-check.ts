/**
 * PolicyCheck: what the policies of a container say of a name or an address, by the code that decides about queries. No query is
 * sent.
 */
import type { PolicyCheck, PolicyCheckRequest } from "../../../api/policies.ts";
import { presentedLabels } from "../../../base/dns/name.ts";
import { TYPE, parseType, typeName } from "../../../base/dns/record-type.ts";
import { CLASS } from "../../../base/dns/record.ts";
import { commandOf } from "../../../base/lib/text.ts";
import { Fault, reasonOf } from "../../../base/lib/fault.ts";
import { addressText, blockText } from "../../../base/model/address.ts";
import { LOCAL_SOURCES } from "../../../base/model/local-source.ts";
import { StoredName } from "../../../base/model/label-table.ts";
import { ONLY_DOCKER, RECORDS, DENIED, MISS } from "../../../base/model/visible-names.ts";
import type { NameAddresses, NameRecords, QuestionName } from "../../../base/model/visible-names.ts";
import type { ContainerFact } from "../../../container/facts/fact.ts";
import type { PolicyBook } from "../book/policy-book.ts";
import type { JudgedQuestion, NamespacePolicy } from "../judge/namespace-policy.ts";
import { type Refusal, hasPort } from "../judge/refusal.ts";
import { fixedVerdict } from "../enforce/fixed-rules.ts";
import { type IsHosts, isLoopback } from "../judge/compiled-policy.ts";
import type { Policy } from "../model/policy.ts";
import type { PolicyRule } from "../model/policy-rule.ts";
import { type WrittenRule, readRule } from "../model/policy-rule.ts";
import { DockerAnswerMemory } from "../../../query/client/docker-answer-memory.ts";
import { LocalNames } from "../../../query/lookup/local-names.ts";
import { findContainer, namespaceOwner } from "../../../control/situation/find-container.ts";
import type { ControlPorts } from "../../../control/situation/ports.ts";

interface Ports extends Pick<ControlPorts, "containers" | "resolver"> {
  readonly policies: PolicyBook;
}

const ALLOW_FOR = "15m";

export function checkPolicy(ports: Ports, request: PolicyCheckRequest): PolicyCheck {
  const { containers, policies } = ports;
  const fact = findContainer(containers.facts.values(), request.container);
  const owner = namespaceOwner(containers.facts, fact);
  const { rule, type } = questionOf(request);
  const name = rule.pattern?.text ?? (rule.block === undefined ? request.name : blockText(rule.block));
  const asked = { container: fact.name, name, port: rule.port ?? null, type: typeName(type) };
  const judge = policies.judgeOf(owner.id);
  if (judge === undefined)
    return { ...asked, verdict: "no-policy", because: "no policy is for this container", notes: [], fix: null };
  const notes = notesOf(judge, rule.port !== undefined || rule.block !== undefined);
  if (rule.block !== undefined) {
    const { bytes } = rule.block;
    const ofHost = hostAddress(judge, policies.isHosts, rule);
    if (ofHost !== undefined) return { ...asked, ...ofHost, fix: null };
    const refusal = judge.unlistedAddress(bytes);
    const closed = refusal === undefined ? closedPortAt(judge, bytes, rule) : undefined;
    if (closed !== undefined) return { ...asked, verdict: "refused", because: closed, notes, fix: null };
    return { ...asked, ...verdictOf(refusal, `an address that ${judge.policies[0]?.name} allows`), notes, fix: null };
  }
  const labels = presentedLabels(name) ?? new Uint8Array(0);
  const question: JudgedQuestion = { ...new StoredName(labels), type, class: CLASS.IN };
  const { refusal, because, addresses } = judgedName(ports, owner, judge, question);
  const ofHost = refusal === undefined ? closedHost(judge, policies.isHosts, addresses, rule) : undefined;
  if (ofHost !== undefined && rule.port !== undefined)
    return { ...asked, verdict: "refused", because: ofHost, notes, fix: null };
  if (ofHost !== undefined) notes.push(ofHost);
  if (refusal === undefined && addresses === undefined) notes.push(...hostNotes(judge));
  const closed = refusal === undefined ? closedPort(judge, question, rule) : undefined;
  if (closed !== undefined) return { ...asked, verdict: "refused", because: closed, notes, fix: null };
  const fix =
    refusal === undefined ? null : commandOf("dns11", "policy", "allow", name, "--in", fact.name, "--for", ALLOW_FOR);
  return { ...asked, ...verdictOf(refusal, because), notes, fix };
}

interface Judged {
  readonly refusal: Refusal | undefined;
  readonly because: string;
  /** Those of a name of this machine; undefined if others answer it. */
  readonly addresses?: readonly Uint8Array[];
}

/** In the order in which a query meets these. */
function judgedName(ports: Ports, owner: ContainerFact, judge: NamespacePolicy, question: JudgedQuestion): Judged {
  const grant = judge.grantFor(question);
  if (grant !== undefined) return { refusal: undefined, because: grant.text };
  const denied = judge.name(question);
  if (denied !== undefined && denied.isEnforced) return { refusal: denied, because: "" };
  const names = new LocalNames(ports.resolver().behaviour);
  names.begin(ports.containers.clients.of(owner.id)?.dockerAnswers ?? new DockerAnswerMemory());
  const found = names.find(question, ports.containers.viewOf(owner));
  if (found !== MISS && found !== DENIED && found !== ONLY_DOCKER) {
    const { title } = LOCAL_SOURCES[names.source];
    const [policy] = judge.policies;
    const because = `it is answered on this machine (${title}), which policy ${policy?.name} lets be (${policy?.where})`;
    return {
      refusal: judge.local(question, names.source) ?? denied,
      because,
      addresses: addressesOf(found === RECORDS ? names.search.records : names.search.addresses),
    };
  }
  const refusal = judge.forward(question, true) ?? denied;
  return { refusal, because: refusal === undefined ? allowText(judge, judge.ruleFor(question)) : "" };
}

function addressesOf(found: NameAddresses | NameRecords | undefined): Uint8Array[] {
  if (found === undefined) return [];
  if ("sets" in found) return [TYPE.A, TYPE.AAAA].flatMap((type) => found.sets.get(type) ?? []);
  return ([4, 16] as const).flatMap((length) => {
    const all = length === 4 ? found.v4 : found.v6;
    return Array.from({ length: all.length / length }, (_, index) =>
      Uint8Array.from(all.subarray(index * length, (index + 1) * length)),
    );
  });
}

/** What becomes of a connection to an address of the host; undefined if it is none, or a rule of the policy is about it. */
function hostAddress(
  judge: NamespacePolicy,
  isHosts: IsHosts,
  { block, ...port }: WrittenRule,
): Pick<PolicyCheck, "verdict" | "because" | "notes"> | undefined {
  if (block === undefined || block.prefix < block.bytes.length * 8) return undefined;
  const refusal = judge.unlistedAddress(block.bytes);
  const enforced = enforcedAmong(judge.policies);
  const [first] = enforced;
  if (first === undefined || refusal?.reason !== "not-allowed") return undefined;
  const closed = closedHost(judge, isHosts, [block.bytes], port);
  if (closed !== undefined) return { verdict: "refused", because: closed, notes: [] };
  if (!isHosts(block.bytes)) return undefined;
  const because = `an address of this machine, which policy ${first.name} opens (host: allow, ${first.where})`;
  const note = "a published port of it opens once the container is answered with this address";
  return { verdict: "allowed", because, notes: [note] };
}

/** Why nothing connects to the host by its addresses among these; undefined if something does, or there is none. */
function closedHost(
  judge: NamespacePolicy,
  isHosts: IsHosts,
  addresses: readonly Uint8Array[] | undefined,
  { port, protocol = "tcp" }: PortAsked,
): string | undefined {
  const enforced = enforcedAmong(judge.policies);
  const closing = enforced.find(({ host }) => host === "deny");
  const own = (addresses ?? []).filter((address) => !isLoopback(address) && isHosts(address));
  const [first] = own;
  if (closing === undefined || first === undefined) return undefined;
  if (own.some((address) => fixedVerdict(enforced, { address, port, protocol }) === "allowed")) return undefined;
  const rule = ruleText(first, port);
  return `policy ${closing.name} closes the addresses of this machine and its published ports to connections (host: deny, ${closing.where}): allow ${rule} opens this one`;
}

function ruleText(address: Uint8Array, port: number | undefined): string {
  const text = addressText(address);
  if (port === undefined) return text;
  return address.length === 4 ? `${text}:${port}` : `[${text}]:${port}`;
}

/** Nobody is asked, so nobody knows what the answer would be. */
function hostNotes({ policies }: NamespacePolicy): string[] {
  const closing = policies.find(({ host, mode }) => host === "deny" && mode === "enforce");
  return closing === undefined
    ? []
    : [`an answer with an address of this machine is refused (host: deny, ${closing.where})`];
}

function allowText(judge: NamespacePolicy, rule: PolicyRule | undefined): string {
  const [policy] = judge.policies;
  return rule === undefined
    ? `policy ${policy?.name} lets it be (${policy?.where})`
    : `policy ${policy?.name}: allow ${rule.text} (${policy?.file}:${rule.line})`;
}

function verdictOf(refusal: Refusal | undefined, because: string): Pick<PolicyCheck, "verdict" | "because"> {
  if (refusal === undefined) return { verdict: "allowed", because };
  return { verdict: refusal.isEnforced ? "refused" : "would-refuse", because: refusal.text };
}

/** A name may be allowed, and a connection to its addresses with this port not. */
function closedPort(judge: NamespacePolicy, name: QuestionName, { port, protocol }: PortAsked): string | undefined {
  const [policy] = enforcedAmong(judge.policies);
  if (port === undefined || policy === undefined || judge.grantedMs([name]) !== undefined) return undefined;
  const ports = judge.portsOf([name]);
  if (ports === "all" || hasPort(ports, port, protocol ?? "tcp")) return undefined;
  const open = ports.map((each) => `${each.port}/${each.protocol}`).join(", ");
  return `policy ${policy.name} allows the name, but not ${portText({ port, protocol })}: it opens ${open || "none"} (${policy.where})`;
}

/** The same of an address. */
function closedPortAt(judge: NamespacePolicy, address: Uint8Array, { port, protocol }: PortAsked): string | undefined {
  const enforced = enforcedAmong(judge.policies);
  const [first] = enforced;
  if (port === undefined || first === undefined) return undefined;
  const verdictOn = (policies: readonly Policy[]): ReturnType<typeof fixedVerdict> =>
    fixedVerdict(policies, { address, port, protocol: protocol ?? "tcp" });
  if (verdictOn(enforced) === "allowed") return undefined;
  const policy = enforced.find((each) => verdictOn([each]) !== "allowed") ?? first;
  return `policy ${policy.name} allows the address, but not ${portText({ port, protocol })} (${policy.where})`;
}

type PortAsked = Pick<PolicyRule, "port" | "protocol">;

/** Those that the kernel holds connections to. */
function enforcedAmong(policies: readonly Policy[]): readonly Policy[] {
  return policies.filter(({ addresses, mode }) => addresses === "enforce" && mode === "enforce");
}

function portText({ port, protocol }: PortAsked): string {
  return protocol === undefined ? `port ${port}` : `port ${port}/${protocol}`;
}

function notesOf(judge: NamespacePolicy, hasAddress: boolean): string[] {
  const names = judge.policies.filter(({ addresses }) => addresses === "names");
  return hasAddress && names.length > 0
    ? ["addresses and ports are not filtered: the policy has addresses: names"]
    : [];
}

function questionOf({ name, type = "A" }: PolicyCheckRequest): {
  readonly rule: ReturnType<typeof readRule>;
  readonly type: number;
} {
  try {
    const rule = readRule(name);
    if (rule.pattern !== undefined && rule.pattern.before !== "none") throw new Error("use a name, not a pattern");
    if (rule.block !== undefined && rule.block.prefix < rule.block.bytes.length * 8)
      throw new Error("use an address, not a block of them");
    return { rule, type: parseType(type) };
  } catch (error) {
    throw new Fault("BAD_QUERY", `Invalid question: ${reasonOf(error)}`);
  }
}
