/**
 * FixedVerdict: what the kernel does with a connection because of its address, by the rules that it is given.
 */
import { isInBlock } from "../../base/model/address-block.ts";
import type { Policy } from "../model/policy.ts";
import { fixedRules } from "./fixed-rules.ts";

export interface Destination {
  readonly address: Uint8Array;
  /** Undefined where the protocol has none. */
  readonly port: number | undefined;
  readonly protocol: string;
}

/** Undefined if no rule is about the address: then it depends on the names that were answered with it. */
export function fixedVerdict(
  policies: readonly Policy[],
  { address, port, protocol }: Destination,
): "allowed" | "denied" | undefined {
  const found = fixedRules(policies).find(
    (rule) =>
      isInBlock(address, rule.block) &&
      (rule.port === undefined || rule.port === port) &&
      (rule.protocol === undefined || rule.protocol === protocol),
  );
  return found && (found.isAllowed ? "allowed" : "denied");
}
