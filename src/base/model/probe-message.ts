/**
 * ProbeMessage: the query with which dns11 checks that a namespace's queries arrive: TXT, a type that no address policy
 * affects, for a name with a nonce. RFC 6761 keeps .invalid local, so a stray probe reveals nothing.
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

/** The response code of the reply to a probe, as a word; undefined where it is not a reply to it. */
export function probeOutcome(reply: Buffer, id: number): string | undefined {
  return replyCode(reply, id);
}
