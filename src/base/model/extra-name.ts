/**
 * ExtraName: which names can be given to a container, or another target, that does not have that name in Docker: by a record, by a label,
 * or by a network alias that is a wildcard.
 */
import { wireLabels } from "../dns/name.ts";
import { addressBytes } from "./address.ts";

/** What a wildcard begins with (RFC 4592). */
export const WILDCARD = "*.";
/** Every length that wildcards have is looked up for each query, so the longest is limited. */
const WILDCARD_LABELS_MAX = 16;
/** Domains of one label that never exist in public DNS, so that a wildcard may cover all of one. */
const PRIVATE = new Set(
  "test example invalid localhost local internal lan home corp intranet private onion alt".split(" "),
);

/** Lower case, without a final dot. */
export function normalName(text: string): string {
  return text.replace(/\.$/, "").toLowerCase();
}

/** Why a normal name cannot be given, with what to use instead; undefined if it can. */
export function problemOf(name: string): string | undefined {
  const bare = name.startsWith(WILDCARD) ? name.slice(WILDCARD.length) : name;
  if (addressBytes(name) !== undefined)
    return "it is an address: use a name, such as db.shop.test, or its reverse name";
  if (name === "*") return 'a wildcard for every name is not possible: use one below a domain, such as "*.shop.test"';
  if (bare.includes("*") || wireLabels(name) === undefined) {
    return "use labels of at most 63 characters with dots between them, such as db.shop.test";
  }
  if (bare === name) return undefined;
  const labels = bare.split(".").length;
  if (labels === 1 && !PRIVATE.has(bare)) {
    return `it covers a whole top-level domain: use a wildcard below a longer domain, such as "*.shop.${bare}"`;
  }
  return labels > WILDCARD_LABELS_MAX ? `use a wildcard below at most ${WILDCARD_LABELS_MAX} labels` : undefined;
}
