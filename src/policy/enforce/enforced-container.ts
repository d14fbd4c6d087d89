/**
 * EnforcedContainer: a container whose policies enforce addresses, as the kernel needs to know it.
 */
import type { AddressBlock } from "../../base/model/address-block.ts";
import { type Policy, decidingAmong } from "../model/policy.ts";
import type { PolicedContainer } from "../table/container-rules.ts";
import { type PolicedLink, isLinkLocal } from "../table/link-rules.ts";
import { fixedRules } from "./fixed-rules.ts";

export interface EnforcedLink {
  readonly index: number;
  readonly name: string;
  readonly mac: Uint8Array;
  readonly addresses: readonly Uint8Array[];
  readonly bridgeMac: Uint8Array | undefined;
}

export interface EnforcedContainer {
  readonly id: string;
  /** Those that enforce addresses: at least one. */
  readonly policies: readonly Policy[];
  readonly links: readonly EnforcedLink[];
  readonly subnets: readonly AddressBlock[];
  /** Otherwise some of its links are not known yet. */
  readonly isComplete: boolean;
  /** Why the kernel cannot hold it to them, in words; undefined if it can. */
  readonly hindrance: string | undefined;
}

/** The strictest of its policies applies. */
export function policedBy({ id, policies, links, subnets, isComplete }: EnforcedContainer): {
  readonly container: PolicedContainer;
  readonly links: readonly PolicedLink[];
} {
  const deciding = decidingAmong(policies, (policy) => policy);
  const isEnforced = deciding.some(({ mode }) => mode === "enforce");
  const reachesPeers = !isEnforced || deciding.every(({ peers }) => peers === "allow");
  const own = new Map(
    links
      .flatMap(({ addresses }) => addresses)
      .filter((address) => !isLinkLocal(address))
      .map((address) => [Buffer.from(address).toString("latin1"), address]),
  );
  return {
    container: {
      id,
      addresses: [...own.values()],
      isComplete,
      rules: fixedRules(deciding),
      subnets,
      reachesPeers,
      reachesHost: deciding.every(({ host }) => host === "allow"),
      isEnforced,
    },
    links: links.map(({ bridgeMac, ...link }) => ({ ...link, reachesPeers, ...(bridgeMac && { bridgeMac }) })),
  };
}
