/**
 * FixedRules: what policies say of addresses themselves, as rules for the kernel. Of several policies each must allow an
 * address, and any may deny it.
 */
import { type AddressBlock, isBlockIn, isInBlock } from "../../../base/model/address.ts";
import type { PolicyRule } from "../model/policy-rule.ts";
import type { Policy } from "../model/policy.ts";
import type { FixedRule } from "../table/container-rules.ts";

interface BlockRule extends PolicyRule {
  readonly block: AddressBlock;
}

export function fixedRules(policies: readonly Policy[]): FixedRule[] {
  const denied = policies.flatMap(({ deny }) => deny.filter(hasBlock)).map((rule) => fixedRule(rule, false));
  const allowed = policies.flatMap((policy) =>
    policy.allow
      .filter(hasBlock)
      .filter((rule) => policies.every((other) => other === policy || isCovered(rule, other)))
      .map((rule) => fixedRule(rule, true)),
  );
  return [...denied, ...allowed];
}

function hasBlock(rule: PolicyRule): rule is BlockRule {
  return rule.block !== undefined;
}

/** A port without a protocol is one of TCP where it is allowed, and of both where it is denied. */
function fixedRule({ block, port, protocol }: BlockRule, isAllowed: boolean): FixedRule {
  const meant = protocol ?? (isAllowed && port !== undefined ? "tcp" : undefined);
  return {
    isAllowed,
    block,
    ...(meant !== undefined && { protocol: meant }),
    ...(port !== undefined && { port }),
  };
}

function isCovered(rule: BlockRule, { allow }: Policy): boolean {
  return allow
    .filter(hasBlock)
    .some(
      (other) =>
        isBlockIn(rule.block, other.block) &&
        (other.port === undefined ||
          (other.port === rule.port && (other.protocol ?? "tcp") === (rule.protocol ?? "tcp"))),
    );
}

export interface Destination {
  readonly address: Uint8Array;
  /** Undefined where the protocol has none. */
  readonly port: number | undefined;
  readonly protocol: string;
}

/**
 * What the kernel does with a connection because of its address, by the rules that it is given; undefined if no rule is about the
 * address: then it depends on the names that were answered with it.
 */
export function fixedVerdict(policies: readonly Policy[], destination: Destination): "allowed" | "denied" | undefined {
  const found = fixedRules(policies).find((rule) => isAbout(rule, destination));
  return found && (found.isAllowed ? "allowed" : "denied");
}

interface AddressRule {
  readonly block?: AddressBlock | undefined;
  readonly port?: number | undefined;
  readonly protocol?: string | undefined;
}

/** Whether a rule is about the address, and about all ports and protocols or this one. */
export function isAbout(rule: AddressRule, { address, port, protocol }: Destination): boolean {
  return (
    rule.block !== undefined &&
    isInBlock(address, rule.block) &&
    (rule.port === undefined || rule.port === port) &&
    (rule.protocol === undefined || rule.protocol === protocol)
  );
}
