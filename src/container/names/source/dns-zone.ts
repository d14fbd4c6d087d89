/**
 * DnsZone: one domain with names of services and projects: its name on the wire, and its own records.
 */
import { sameBytes, wireLabels } from "../../../base/dns/name.ts";
import { setU32 } from "../../../base/dns/bytes.ts";
import { domainLabels } from "../../../base/model/server-text.ts";
import type { QuestionName, ZoneAuthority } from "../../../base/model/visible-names.ts";

/** Serial, refresh, retry, expire: for secondary servers, which there are none of. */
const SOA_NUMBERS = [1, 7_200, 1_800, 86_400] as const;
const U32_BYTES = 4;

export class DnsZone {
  readonly name: string;
  readonly labelCount: number;
  readonly #suffix: Uint8Array;
  readonly #authorities = new Map<number, ZoneAuthority>();
  /** Made once for each: what changes is another object. */
  readonly #names = new WeakMap<object, Uint8Array>();

  constructor(name: string) {
    this.name = name;
    this.labelCount = name.split(".").length;
    this.#suffix = domainLabels(name);
  }

  /** Whether the labels of a name after its first `labels` ones are this zone. */
  isAfter({ folded, foldedLength, lengthOf }: QuestionName, labels: number): boolean {
    const start = lengthOf[labels] as number;
    const length = this.#suffix.length;
    return foldedLength - start === length && sameBytes(folded, start, this.#suffix, 0, length);
  }

  /** A name below the zone in wire format, with the terminating zero; undefined if it is too long. */
  wireName(prefix: string): Uint8Array | undefined {
    const labels = wireLabels(prefix === "" ? this.name : `${prefix}.${this.name}`);
    return labels && Uint8Array.of(...labels, 0);
  }

  /** The name of something below the zone; undefined if it is too long. */
  nameOf<T extends object>(named: T, prefixOf: (named: T) => string): Uint8Array | undefined {
    const known = this.#names.get(named);
    if (known !== undefined) return known;
    const name = this.wireName(prefixOf(named));
    if (name !== undefined) this.#names.set(named, name);
    return name;
  }

  /** The name of its server. */
  get server(): Uint8Array {
    return this.wireName("ns.dns") as Uint8Array;
  }

  /** Negative answers are cached for as long as all others. */
  authority(ttlSeconds: number): ZoneAuthority {
    const known = this.#authorities.get(ttlSeconds);
    if (known !== undefined) return known;
    const numbers = new Uint8Array((SOA_NUMBERS.length + 1) * U32_BYTES);
    for (const [index, value] of [...SOA_NUMBERS, ttlSeconds].entries()) setU32(numbers, index * U32_BYTES, value);
    const authority = {
      origin: Uint8Array.of(...this.#suffix, 0),
      soa: Buffer.concat([this.server, this.wireName("hostmaster") as Uint8Array, numbers]),
    };
    this.#authorities.set(ttlSeconds, authority);
    return authority;
  }
}

/** The first labels of a name as text, the last of them first. */
export function pathOf({ folded, lengthOf }: QuestionName, labels: number): string[] {
  return Array.from({ length: labels }, (_, index) => {
    const at = labels - 1 - index;
    return Buffer.from(folded.subarray((lengthOf[at] as number) + 1, lengthOf[at + 1])).toString("latin1");
  });
}
