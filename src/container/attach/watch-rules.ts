/**
 * watchRules: reports changes of others to the rules of the thread's namespace. Without nf_tables the kernel reports none; the
 * verification timer is shorter then.
 */
import { NftWatch } from "../../kernel/nft-watch.ts";
import type { AttachmentParts } from "./attachment-parts.ts";

/** `ownPorts`: netlink ports under which the kernel reports our own changes. */
export function watchRules(
  ownPorts: ReadonlySet<number>,
  { ruleBackend, onForeignChange }: Pick<AttachmentParts, "ruleBackend" | "onForeignChange">,
  onChange: () => void,
): NftWatch | undefined {
  try {
    return new NftWatch(ownPorts, () => {
      onChange();
      onForeignChange();
    });
  } catch (error) {
    if (ruleBackend.backend === "iptables-legacy") return undefined;
    throw error;
  }
}
