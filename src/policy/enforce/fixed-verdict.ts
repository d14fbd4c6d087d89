/**
 * FixedVerdict: what the kernel does with a connection because of its address, by the rules that it is given.
 */
import { type AddressBlock, isInBlock } from "../../base/model/address-block.ts";
import type { Policy } from "../model/policy.ts";
import { fixedRules } from "./fixed-rules.ts";

export interface Destination {
  readonly address: Uint8Array;
  /** Undefined where the protocol has none. */
  readonly port: number | undefined;
  readonly protocol: string;
}

/** Undefined if no rule is about the address: then it depends on the names that were answered with it. */
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
