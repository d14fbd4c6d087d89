/**
 * CompiledPolicy: a policy with its rules by name, shared by all containers that it is for. It decides by what a query says; what a
 * container has queried before is its own.
 */
import { FOREIGN_SOURCES, LOCAL_SOURCE, type LocalSource } from "../../../base/model/local-source.ts";
import { PatternIndex } from "../../../base/model/name-pattern.ts";
import type { QuestionName } from "../../../base/model/visible-names.ts";
import { type AddressBlock, isInBlock, readAddressBlock } from "../../../base/model/address.ts";
import type { Policy } from "../model/policy.ts";
import { type PolicyRule, isWildcard } from "../model/policy-rule.ts";
import { type Refusal, type RefusalReason, refusalOf, type Ports, portsOf } from "./refusal.ts";

interface BlockRule {
  readonly rule: PolicyRule;
  readonly block: AddressBlock;
}

/** Whether an address is one of the machine itself. */
export type IsHosts = (address: Uint8Array) => boolean;

/** What the machine itself, and whoever started the container, call by a name. */
const HOST_SOURCES: ReadonlySet<LocalSource> = new Set([LOCAL_SOURCE.engineHost, LOCAL_SOURCE.addHost]);

export class CompiledPolicy {
  readonly policy: Policy;
  readonly #allow = new PatternIndex<PolicyRule>();
  readonly #deny = new PatternIndex<PolicyRule>();
  readonly #denyPorts = new PatternIndex<PolicyRule>();
  readonly #allowBlocks: readonly BlockRule[];
  readonly #denyBlocks: readonly BlockRule[];
  readonly #refusals = new Map<string, Refusal>();
  /** It stands for one that is not defined. */
  readonly #isUndefined: boolean;

  constructor(policy: Policy, isUndefined = false) {
    this.policy = policy;
    this.#isUndefined = isUndefined;
    for (const rule of policy.allow) if (rule.pattern !== undefined) this.#allow.add(rule.pattern, rule);
    // A name whose port is denied still has others.
    for (const rule of policy.deny)
      if (rule.pattern !== undefined) (rule.port === undefined ? this.#deny : this.#denyPorts).add(rule.pattern, rule);
    this.#allowBlocks = blocksOf(policy.allow);
    this.#denyBlocks = blocksOf(policy.deny).filter(({ rule }) => rule.port === undefined);
  }

  /** Whether a rule of `deny` is about the name. */
  denied(name: QuestionName): Refusal | undefined {
    const [rule] = this.#deny.find(name);
    return rule === undefined ? undefined : this.refusal("denied", rule);
  }

  /** The rules of `allow` that are about the name. */
  rulesFor(name: QuestionName): readonly PolicyRule[] {
    return this.#allow.find(name);
  }

  /** With which ports connections to what these names were answered with are allowed. */
  portsOf(names: readonly QuestionName[]): Ports {
    const allowed = names.flatMap((name) => this.rulesFor(name));
    return portsOf(
      allowed,
      names.flatMap((name) => this.#denyPorts.find(name)),
    );
  }

  /** What becomes of a name that is answered by such a source. */
  local(name: QuestionName, source: LocalSource): Refusal | undefined {
    // A special name: its answer is a rule of DNS.
    if (source === LOCAL_SOURCE.rule || this.rulesFor(name).length > 0) return undefined;
    const { peers, host } = this.policy;
    if (HOST_SOURCES.has(source)) return host === "allow" ? undefined : this.refusal("host");
    if (FOREIGN_SOURCES.has(source)) return this.#unlisted();
    return peers === "deny" ? this.refusal("peers") : undefined;
  }

  /** What becomes of a name that no rule allows. */
  unlisted(): Refusal {
    return this.#unlisted();
  }

  /** The rule of `allow` for an address; one with a port is for connections, and so is the address. */
  blockFor(address: Uint8Array): PolicyRule | undefined {
    return this.#allowBlocks.find(({ block }) => isInBlock(address, block))?.rule;
  }

  deniedAddress(address: Uint8Array): Refusal | undefined {
    const inner = embedded(address);
    const found = this.#denyBlocks.find(
      ({ block }) => isInBlock(address, block) || (inner !== undefined && isInBlock(inner, block)),
    );
    return found === undefined ? undefined : this.refusal("denied", found.rule);
  }

  /** What becomes of an answer with the address, of a name that is not the machine's own. */
  address(address: Uint8Array, isHosts: IsHosts): Refusal | undefined {
    const denied = this.deniedAddress(address);
    if (denied !== undefined || this.blockFor(address) !== undefined) return denied;
    if (this.policy.private === "deny" && isPrivate(address)) return this.refusal("private");
    return this.policy.host === "deny" && leadsToHost(address, isHosts) ? this.refusal("host-address") : undefined;
  }

  refusal(reason: Exclude<RefusalReason, "not-enforceable">, rule?: PolicyRule): Refusal {
    const key = rule === undefined ? reason : `${reason} ${rule.line} ${rule.text}`;
    const known = this.#refusals.get(key);
    if (known !== undefined) return known;
    const refusal = refusalOf(this.policy, reason, rule);
    this.#refusals.set(key, refusal);
    return refusal;
  }

  #unlisted(): Refusal {
    return this.refusal(this.#isUndefined ? "undefined-policy" : "not-allowed");
  }
}

/** Whether a wildcard allows what stands for it: the rest of the name, in bytes. */
export const WILDCARD_BYTES_MAX = 100;

/** A rule that allows a name for what it is: no wildcard stands for anything. */
export function isExact(rule: PolicyRule): boolean {
  return !isWildcard(rule);
}

/** A container's own loopback leads nowhere else. */
function leadsToHost(address: Uint8Array, isHosts: IsHosts): boolean {
  if (isLoopback(address)) return false;
  const inner = embedded(address);
  return isHosts(address) || (inner !== undefined && isHosts(inner));
}

function blocksOf(rules: readonly PolicyRule[]): readonly BlockRule[] {
  return rules.flatMap((rule) => (rule.block === undefined ? [] : [{ rule, block: rule.block }]));
}

const BLOCKS: readonly AddressBlock[] = [
  ...["0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12"],
  // Oracle's metadata service is among the protocol assignments. In Azure one public address is the machine's own agent.
  ...["168.63.129.16/32", "192.0.0.0/24", "192.168.0.0/16", "198.18.0.0/15", "224.0.0.0/4", "240.0.0.0/4"],
  // Unspecified, loopback and IPv4-compatible; IPv4-translated; discard-only; local NAT64; Teredo.
  ...["::/96", "::ffff:0:0:0/96", "100::/64", "64:ff9b:1::/48", "2001::/32"],
  ...["fc00::/7", "fe80::/10", "fec0::/10", "ff00::/8"],
].map(blockOf);

/** Addresses of these hold an IPv4 address, at that offset. */
const TRANSLATED: readonly { readonly block: AddressBlock; readonly at: number }[] = [
  { block: blockOf("64:ff9b::/96"), at: 12 },
  { block: blockOf("2002::/16"), at: 2 },
];

const LOOPBACK: readonly AddressBlock[] = ["127.0.0.0/8", "::1/128"].map(blockOf);

/**
 * Which addresses are not those of public servers: private, loopback, link-local, shared by carriers, multicast and
 * reserved ones, the services of clouds for their machines, and IPv6 addresses that stand for such an IPv4 address. An allowed name that
 * leads there would reach what the policy never meant.
 */
export function isLoopback(address: Uint8Array): boolean {
  return LOOPBACK.some((each) => isInBlock(address, each));
}

/** `address` has four or sixteen bytes, those of the IPv4 address where one is mapped. */
export function isPrivate(address: Uint8Array): boolean {
  if (BLOCKS.some((each) => isInBlock(address, each))) return true;
  const inner = embedded(address);
  return inner !== undefined && isPrivate(inner);
}

/** The IPv4 address that a translated address leads to. */
function embedded(address: Uint8Array): Uint8Array | undefined {
  const found = TRANSLATED.find(({ block: prefix }) => isInBlock(address, prefix));
  return found === undefined ? undefined : address.subarray(found.at, found.at + 4);
}

function blockOf(text: string): AddressBlock {
  return readAddressBlock(text) as AddressBlock;
}
