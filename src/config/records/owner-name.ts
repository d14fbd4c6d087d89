/**
 * OwnerName: validates the names of records: those that are declared, and those that records point to.
 */
import { wireLabels } from "../../base/dns/name.ts";
import { addressBytes } from "../../base/model/address.ts";
import { normalName, problemOf } from "../../base/model/extra-name.ts";
import { quoteValue } from "../kinds.ts";

/** A declared name in lower case, without a final dot. Throws an Error with what to use instead. */
export function readOwner(text: string): string {
  const name = normalName(text);
  const problem = problemOf(name);
  if (problem !== undefined) throw new Error(`invalid name ${quoteValue(text)}: ${problem}`);
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
