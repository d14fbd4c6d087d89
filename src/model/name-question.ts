/**
 * The message by which the doctor asks for a name's addresses, as any program would, and what it reads of the answer.
 */
import { decode, encode } from "dns-packet";

export type AddressType = "A" | "AAAA";

export function nameQuery(name: string, type: AddressType, id: number): Buffer {
  return encode({ type: "query", id, flags: 0x0100, questions: [{ type, name }] });
}

/** What every server knows, or refuses, whichever names it is for: the root. */
export function rootQuery(id: number): Buffer {
  return encode({ type: "query", id, flags: 0x0100, questions: [{ type: "SOA", name: "." }] });
}

/** The response code as a word; undefined for what is no reply to this id. */
export function replyCode(reply: Buffer, id: number): string | undefined {
  const answer = nameAnswer(reply, id);
  return typeof answer === "object" ? "NOERROR" : answer;
}

/** The addresses, or the response code where it is no good one; undefined for what is no reply to this id. */
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
