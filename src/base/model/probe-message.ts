/**
 * ProbeMessage: the query with which dns11 checks that a namespace's queries arrive: TXT, a type that no address policy
 * affects, for a name with a nonce. RFC 6761 keeps .invalid local, so a stray probe reveals nothing.
 */
import { LIMITS } from "../limits.ts";
import { queryOf } from "../dns/query.ts";
import { TYPE } from "../dns/record-type.ts";
import { labelsOf, replyCode } from "./name-query.ts";

/** The names of all probes are below this one. */
export const PROBE_SUFFIX = "dns11.invalid";

export function probeName(nonce: string): string {
  return `${nonce}.${PROBE_SUFFIX}`;
}

export function probeQuery(nonce: string, id: number): Buffer {
  return queryOf({ labels: labelsOf(probeName(nonce)), type: TYPE.TXT, id, isRecursive: false });
}

/** The response code of the reply to a probe, as a word; undefined if it is not a reply to it. */
export function probeOutcome(reply: Buffer, id: number): string | undefined {
  return replyCode(reply, id);
}

/** The bytes of a nonce, which is written as hexadecimal text. */
export const NONCE_BYTES = 12;
/** The bytes of a probe's name in a message. */
export const PROBE_NAME_BYTES = probeName("xx".repeat(NONCE_BYTES)).length + 2;

/** The names of the last probes. A probe may arrive late, or at another client of its namespace, and is never a query of the container. */
class SentProbes {
  readonly #names = new Set<string>();

  add(nonce: string): void {
    this.#names.add(probeName(nonce));
    const [oldest = ""] = this.#names;
    if (this.#names.size > LIMITS.sentProbes) this.#names.delete(oldest);
  }

  has(name: string): boolean {
    return this.#names.has(name);
  }
}

export const sentProbes = new SentProbes();
