/**
 * The message by which a namespace asks itself whether its queries arrive here: a TXT query, a type that no address
 * policy touches, for a name that holds a nonce. RFC 6761 keeps .invalid from leaving, so a probe that goes astray tells
 * nobody anything.
 */
import { queryOf } from "../dns/query.ts";
import { TYPE } from "../dns/record-type.ts";
import { labelsOf, replyCode } from "./name-query.ts";

const SUFFIX = "dns11.invalid";

export function probeName(nonce: string): string {
  return `${nonce}.${SUFFIX}`;
}

export function probeQuery(nonce: string, id: number): Buffer {
  return queryOf({ labels: labelsOf(probeName(nonce)), type: TYPE.TXT, id, isRecursive: false });
}

/** The response code of the reply to a probe, as a word; undefined for what is no reply to it. */
export function probeOutcome(reply: Buffer, id: number): string | undefined {
  return replyCode(reply, id);
}
