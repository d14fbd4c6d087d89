/**
 * ZoneNames: the zones as one container resolves them. They hold every name below them: what does not exist is denied
 * here, and never forwarded.
 */
import { TYPE } from "../../../base/dns/record-type.ts";
import { LOCAL_SOURCE } from "../../../base/model/local-source.ts";
import {
  MISS,
  type NameRecords,
  type NameSearch,
  type OwnName,
  type QuestionName,
  type ReverseName,
  type VisibleNames,
} from "../../../base/model/visible-names.ts";
import { type LookupParts, ZoneLookup, hostName } from "./lookup.ts";
import type { AddressHolder, MemberSet } from "./member.ts";
import type { ReachableAddresses } from "./reachable-addresses.ts";
import { type DnsZone, pathOf } from "../source/dns-zone.ts";
import { namesIn } from "./zone-list.ts";

const NO_SETS: NameRecords["sets"] = new Map();
/** `_PORT._PROTOCOL.SERVICE.PROJECT.svc` */
const PATH_LABELS_MAX = 5;

export class ZoneNames implements VisibleNames {
  readonly places: readonly string[] = [];
  readonly kind = LOCAL_SOURCE.zone;
  readonly zones: readonly string[];
  readonly #zones: readonly DnsZone[];
  readonly #parts: LookupParts;
  readonly #lookup: ZoneLookup;

  constructor(zones: readonly DnsZone[], parts: LookupParts) {
    this.zones = zones.map(({ name }) => name);
    this.#zones = zones;
    this.#parts = parts;
    this.#lookup = new ZoneLookup(parts);
  }

  find(name: QuestionName, search: NameSearch): number {
    for (const zone of this.#zones) {
      const labels = name.labelCount - zone.labelCount;
      if (labels >= 0 && zone.isAfter(name, labels)) return this.#answer(zone, name, labels, search);
    }
    return MISS;
  }

  /**
   * Addresses of this machine's containers lead to the zone before they lead to a network: see `ZonePointers`. Those of
   * other machines come after all names of Docker.
   */
  pointer(labels: Uint8Array, length: number, hash: number): ReverseName | undefined {
    const { remote, reachable } = this.#parts;
    const [zone] = this.#zones;
    if (remote === undefined || zone === undefined) return undefined;
    const found = pointerTo(zone, remote.members.withAddress(labels, length, hash), reachable);
    return found && { ...found, isTimed: true };
  }

  *list(): Iterable<OwnName> {
    const { members, reachable } = this.#parts;
    for (const zone of this.#zones) yield* namesIn(zone, members, reachable);
  }

  #answer(zone: DnsZone, name: QuestionName, labels: number, search: NameSearch): number {
    const { ttlSeconds } = search.behaviour;
    const found = labels > PATH_LABELS_MAX ? undefined : this.#lookup.find(zone, pathOf(name, labels), ttlSeconds);
    const isUnknown = found === undefined && this.#isUnknown(labels > PATH_LABELS_MAX);
    const {
      sets,
      why,
      isSorted = false,
      isForeign = false,
    } = found ?? { sets: NO_SETS, why: isUnknown ? this.#whyUnknown : "no such name" };
    search.trace?.record("names", `in zone "${zone.name}": ${why}`);
    const records: NameRecords = {
      ttlSeconds: undefined,
      sets,
      alias: undefined,
      containers: [],
      zone: zone.authority(ttlSeconds),
      isMissing: found === undefined,
      isUnavailable: isUnknown,
      isSorted,
      isForeign,
      additional: (type) => (type === TYPE.SRV ? (found?.additional ?? []) : []),
    };
    // What other machines publish ends with their leases, and while they cannot be reached it ends by itself.
    return search.declared(records, this.#parts.remote !== undefined);
  }

  get #whyUnknown(): string {
    return `none on this machine, and ${this.#parts.remote?.store ?? "what knows the others"} cannot be reached`;
  }

  /** Another machine may have what this one does not. */
  #isUnknown(isTooLong: boolean): boolean {
    const { remote } = this.#parts;
    return remote !== undefined && !remote.isUsable && !isTooLong;
  }
}

/** The reverse names of containers in the first zone. They come before those of networks, and have no other names. */
export class ZonePointers implements VisibleNames {
  readonly places: readonly string[] = [];
  readonly kind = LOCAL_SOURCE.zone;
  readonly #zone: DnsZone;
  readonly #members: MemberSet;
  readonly #reachable: ReachableAddresses;

  constructor(zone: DnsZone, members: MemberSet, reachable: ReachableAddresses) {
    this.#zone = zone;
    this.#members = members;
    this.#reachable = reachable;
  }

  find(): number {
    return MISS;
  }

  pointer(labels: Uint8Array, length: number, hash: number): ReverseName | undefined {
    return pointerTo(this.#zone, this.#members.withAddress(labels, length, hash), this.#reachable);
  }
}

function pointerTo(
  zone: DnsZone,
  holders: readonly AddressHolder[],
  reachable: ReachableAddresses,
): ReverseName | undefined {
  for (const holder of holders) {
    const { member } = holder;
    if (!member.isReady || !reachable.has(holder)) continue;
    const target = hostName(zone, member);
    if (target !== undefined) return { target };
  }
  return undefined;
}
