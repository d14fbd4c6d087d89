/**
 * The message by which a namespace asks itself whether its queries arrive here: a TXT query, a type that no address
 * policy touches, for a name that holds a nonce. RFC 6761 keeps .invalid from leaving, so a probe that goes astray tells
 * nobody anything.
 */
import { decode, encode } from "dns-packet";

const SUFFIX = "dns11.invalid";

export function probeName(nonce: string): string {
  return `${nonce}.${SUFFIX}`;
}

export function probeQuery(nonce: string, id: number): Buffer {
  return encode({ type: "query", id, questions: [{ type: "TXT", name: probeName(nonce) }] });
}

/** The response code of the reply to a probe, as a word; undefined for what is no reply to it. */
export function probeOutcome(reply: Buffer, id: number): string | undefined {
  try {
    const packet = decode(reply);
    return packet.id === id && packet.type === "response" ? rcodeOf(packet) : undefined;
  } catch {
    return undefined;
  }
}

/** The package's types do not know of the word it puts there. */
function rcodeOf(packet: object): string {
  return "rcode" in packet && typeof packet.rcode === "string" ? packet.rcode : "";
}
