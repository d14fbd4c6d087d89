/**
 * FittingAnswers: as many records as the smallest UDP answer holds, the first of them at random. A truncated answer would
 * make the program ask again over TCP, where the rules cannot see a name: that query goes to a server that does not know it.
 */
import { HEADER_BYTES, UDP_BYTES_MIN } from "../../../base/dns/header.ts";
import { POINTER_BYTES } from "../../../base/dns/name.ts";
import { OPT_BYTES } from "../../../base/dns/opt.ts";
import { RECORD_FIXED_BYTES } from "../../../base/dns/record.ts";
import {
  RECORDS,
  type NameAddresses,
  type NameRecords,
  type NameSearch,
  type OwnName,
  type QuestionName,
  type ReverseName,
  type VisibleNames,
} from "../../../base/model/visible-names.ts";
import type { Behaviour } from "../../../base/model/behaviour.ts";
import type { LocalSource } from "../../../base/model/local-source.ts";

/** The type and class of the question, and the final zero of its name. */
const AFTER_NAME_BYTES = 5;
const BEFORE_DATA = POINTER_BYTES + RECORD_FIXED_BYTES;

/** `nameBytes`: of the queried name. */
export function fittingAddresses({ v4, v6 }: NameAddresses, nameBytes: number): NameAddresses {
  const room = roomFor(nameBytes);
  return { v4: someOf(v4, 4, room), v6: someOf(v6, 16, room) };
}

/** A source of names with records whose answers all fit. */
export class FittingNames implements VisibleNames {
  readonly places: readonly string[];
  readonly kind: LocalSource;
  readonly #names: VisibleNames;

  constructor(names: VisibleNames) {
    this.#names = names;
    this.places = names.places;
    this.kind = names.kind;
  }

  find(name: QuestionName, search: NameSearch): number {
    const found = this.#names.find(name, search);
    if (found === RECORDS && search.records !== undefined)
      search.records = fittingRecords(search.records, name.foldedLength);
    return found;
  }

  pointer(labels: Uint8Array, length: number, hash: number, behaviour: Behaviour): ReverseName | undefined {
    return this.#names.pointer(labels, length, hash, behaviour);
  }

  *list(): Iterable<OwnName> {
    yield* this.#names.list?.() ?? [];
  }
}

function fittingRecords(records: NameRecords, nameBytes: number): NameRecords {
  const room = roomFor(nameBytes);
  const sets = [...records.sets].map(([type, data]) => [type, fittingSet(data, room)] as const);
  return { ...records, sets: new Map(sets) };
}

function fittingSet(data: readonly Uint8Array[], room: number): readonly Uint8Array[] {
  const bytes = data.reduce((sum, each) => sum + BEFORE_DATA + each.length, 0);
  if (bytes <= room) return data;
  const first = Math.floor(Math.random() * data.length);
  const rotated = [...data.slice(first), ...data.slice(0, first)];
  let left = room;
  return rotated.filter(({ length }, index) => (left -= BEFORE_DATA + length) >= 0 || index === 0);
}

function someOf(addresses: Uint8Array, size: number, room: number): Uint8Array {
  const max = Math.max(1, Math.floor(room / (BEFORE_DATA + size)));
  const count = addresses.length / size;
  if (count <= max) return addresses;
  const first = Math.floor(Math.random() * count) * size;
  const rotated = Buffer.concat([addresses.subarray(first), addresses.subarray(0, first)]);
  return rotated.subarray(0, max * size);
}

function roomFor(nameBytes: number): number {
  return UDP_BYTES_MIN - HEADER_BYTES - nameBytes - AFTER_NAME_BYTES - OPT_BYTES;
}
