/**
 * QuestionText: a question as people write it (a name or an address, and a type), and the query for it. An address
 * stands for its reverse name, as with `dig -x`.
 */
import { presentation, wireLabels } from "../dns/name.ts";
import { queryOf } from "../dns/query.ts";
import { TYPE, parseType, typeName } from "../dns/record-type.ts";
import { addressBytes, reverseLabels } from "./address.ts";

export interface ParsedQuestion {
  /** It has no trailing dot; "." is the root. */
  readonly name: string;
  /** Wire labels, without a terminating zero. */
  readonly labels: Uint8Array;
  readonly type: number;
  readonly typeName: string;
  /** Written with a trailing dot: no search list applies. */
  readonly isAbsolute: boolean;
}

/** Parses both; throws an Error with a sentence for users. */
export function parseQuestion(nameText: string, typeText: string | undefined): ParsedQuestion {
  const address = typeText === undefined ? addressBytes(nameText) : undefined;
  if (address !== undefined) {
    const tree = wireLabels(address.length === 4 ? "in-addr.arpa" : "ip6.arpa") as Uint8Array;
    return question(Buffer.concat([reverseLabels(address), tree]), TYPE.PTR, true);
  }
  const type = parseType(typeText ?? "A");
  const bare = nameText.replace(/\.$/, "");
  if (nameText === "" || (bare === "" && nameText !== ".")) throw new Error("a domain name is required");
  const labels = bare === "" ? new Uint8Array(0) : wireLabels(bare);
  if (labels === undefined) {
    throw new Error(
      `invalid domain name "${nameText}": use labels of 1 to 63 characters separated by dots, 253 in all; ` +
        "write an internationalized name in its xn-- form",
    );
  }
  return question(labels, type, nameText.endsWith("."));
}

function question(labels: Uint8Array, type: number, isAbsolute: boolean): ParsedQuestion {
  return { name: presentation(labels, 0, labels.length), labels, type, typeName: typeName(type), isAbsolute };
}

/** A query with EDNS and recursion desired, as dig's. */
export function questionQuery({ labels, type }: Pick<ParsedQuestion, "labels" | "type">, id: number): Buffer {
  return queryOf({ labels, type, id, hasOpt: true });
}
