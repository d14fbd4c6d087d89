/**
 * NameQuery: the query with which the doctor resolves a name, as any program would, and what it reads of the reply.
 */
import { decode } from "dns-packet";
import { wireLabels, presentation } from "../dns/name.ts";
import { queryOf } from "../dns/query.ts";
import { TYPE, parseType, typeName } from "../dns/record-type.ts";
import { addressBytes, reverseLabels } from "./address.ts";

export type AddressType = "A" | "AAAA";

export function nameQuery(name: string, type: AddressType, id: number): Buffer {
  return queryOf({ labels: labelsOf(name), type: TYPE[type], id });
}

/** The wire labels of a name as people write it. For a name that no query can carry, which cannot exist, they are those of the root. */
export function labelsOf(name: string): Uint8Array {
  return wireLabels(name.replaceAll(/^\.|\.$/g, "")) ?? new Uint8Array(0);
}

/** A query for the root, which every server answers or refuses, whatever names it is for. */
export function rootQuery(id: number): Buffer {
  return queryOf({ labels: new Uint8Array(0), type: TYPE.SOA, id });
}

/** The response code as a word; undefined if it is not a reply to this id. */
export function replyCode(reply: Buffer, id: number): string | undefined {
  const answer = nameAnswer(reply, id);
  return typeof answer === "object" ? "NOERROR" : answer;
}

/** The addresses, or the response code if it is an error; undefined if it is not a reply to this id. */
export function nameAnswer(reply: Buffer, id: number): readonly string[] | string | undefined {
  try {
    const packet = decode(reply);
    if (packet.id !== id || packet.type !== "response") return undefined;
    const rcode = "rcode" in packet && typeof packet.rcode === "string" ? packet.rcode : "";
    if (rcode !== "NOERROR") return rcode;
    return (packet.answers ?? []).flatMap((answer) =>
      answer.type === "A" || answer.type === "AAAA" ? [answer.data] : [],
    );
  } catch {
    return undefined;
  }
}

/**
 * A question as people write it (a name or an address, and a type), and the query for it. An address
 * stands for its reverse name, as with `dig -x`.
 */
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
