/**
 * NameQuery: the query with which the doctor resolves a name, as any program would, and what it reads of the reply.
 */
import { decode } from "dns-packet";

import { wireLabels } from "../dns/name.ts";
import { queryOf } from "../dns/query.ts";
import { TYPE } from "../dns/record-type.ts";

export type AddressType = "A" | "AAAA";

export function nameQuery(name: string, type: AddressType, id: number): Buffer {
  return queryOf({ labels: labelsOf(name), type: TYPE[type], id });
}

/**
 * The wire labels of a name as people write it; the root's for a name that no query can carry, and that cannot exist.
 */
export function labelsOf(name: string): Uint8Array {
  return wireLabels(name.replaceAll(/^\.|\.$/g, "")) ?? new Uint8Array(0);
}

/** A query for the root, which every server answers or refuses, whatever names it is for. */
export function rootQuery(id: number): Buffer {
  return queryOf({ labels: new Uint8Array(0), type: TYPE.SOA, id });
}

/** The response code as a word; undefined where it is not a reply to this id. */
export function replyCode(reply: Buffer, id: number): string | undefined {
  const answer = nameAnswer(reply, id);
  return typeof answer === "object" ? "NOERROR" : answer;
}

/** The addresses, or the response code where it is an error; undefined where it is not a reply to this id. */
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
