/**
 * OwnerName: validates the names of records: those that are declared, and those that records point to.
 */
import { wireLabels } from "../../base/dns/name.ts";
import { addressBytes } from "../../base/model/address.ts";
import { quoteValue } from "../readers.ts";

const WILDCARD = "*.";
/** Domains of one label that never exist in public DNS, so that a wildcard may cover all of one. */
const PRIVATE = new Set(
  "test example invalid localhost local internal lan home corp intranet private onion alt".split(" "),
);

/** A declared name in lower case, without a final dot. Throws an Error with what to use instead. */
export function readOwner(text: string): string {
  const name = text.replace(/\.$/, "").toLowerCase();
  const bare = name.startsWith(WILDCARD) ? name.slice(WILDCARD.length) : name;
  if (addressBytes(name) !== undefined) {
    throw new Error(`${quoteValue(text)} is an address: use a name, such as db.shop.test, or its reverse name`);
  }
  if (name === "*") throw new Error('a wildcard for every name is not possible: use one below a domain, "*.shop.test"');
  if (bare.includes("*") || wireLabels(name) === undefined) throw invalidName(text);
  if (bare !== name && !bare.includes(".") && !PRIVATE.has(bare)) {
    throw new Error(`covers a whole top-level domain: use a wildcard below a longer domain, such as "*.shop.${bare}"`);
  }
  return name;
}

/** A name that a record points to: wire labels with the terminating zero. "." is the root. */
export function readTarget(text: string): Uint8Array {
  const labels = text === "." ? new Uint8Array(0) : wireLabels(text.replace(/\.$/, ""));
  if (labels === undefined || addressBytes(text) !== undefined || text.includes("*")) throw invalidName(text);
  return Uint8Array.of(...labels, 0);
}

function invalidName(text: string): Error {
  return new Error(
    `invalid name ${quoteValue(text)}: use labels of at most 63 characters with dots between them, such as db.shop.test`,
  );
}
