/**
 * ZoneNames: the zones as one container resolves them. They hold every name below them: what does not exist is denied
 * here, and never forwarded.
 */
import { LOCAL_SOURCE } from "../../../base/model/local-source.ts";
import { sameBytes } from "../../../base/dns/name.ts";
import { TYPE } from "../../../base/dns/record-type.ts";
import { reverseLabels } from "../../../base/model/address.ts";
import {
  MISS,
  type NameRecords,
  type NameSearch,
  type OwnName,
  type QuestionName,
  type ReverseName,
  type VisibleNames,
} from "../../../base/model/visible-names.ts";
import { ZoneLookup, hostName } from "./lookup.ts";
import type { ZoneMembers } from "./members.ts";
import type { Reach } from "./reach.ts";
import { type DnsZone, pathOf } from "../dns-zone.ts";
import { namesIn } from "./zone-list.ts";

const NO_SETS: NameRecords["sets"] = new Map();
/** `_PORT._PROTOCOL.SERVICE.PROJECT.svc` */
const PATH_LABELS_MAX = 5;

export class ZoneNames implements VisibleNames {
  readonly places: readonly string[] = [];
  readonly kind = LOCAL_SOURCE.zone;
  readonly #zones: readonly DnsZone[];
  readonly #members: ZoneMembers;
  readonly #reach: Reach;
  readonly #lookup: ZoneLookup;

  constructor(zones: readonly DnsZone[], members: ZoneMembers, reach: Reach, servers: readonly string[]) {
    this.#zones = zones;
    this.#members = members;
    this.#reach = reach;
    this.#lookup = new ZoneLookup({ members, reach, servers });
  }

  find(name: QuestionName, search: NameSearch): number {
    for (const zone of this.#zones) {
      const labels = name.labelCount - zone.labelCount;
      if (labels >= 0 && zone.isAfter(name, labels)) return this.#answer(zone, name, labels, search);
    }
    return MISS;
  }

  /** Addresses lead to the zone before they lead to a network: see `ZonePointers`. */
  pointer(): undefined {
    return undefined;
  }

  *list(): Iterable<OwnName> {
    for (const zone of this.#zones) yield* namesIn(zone, this.#members, this.#reach);
  }

  #answer(zone: DnsZone, name: QuestionName, labels: number, search: NameSearch): number {
    const { ttlSeconds } = search.behaviour;
    const found = labels > PATH_LABELS_MAX ? undefined : this.#lookup.find(zone, pathOf(name, labels), ttlSeconds);
    const { sets, why } = found ?? { sets: NO_SETS, why: "no such name" };
    search.trace?.record("names", `in zone "${zone.name}": ${why}`);
    return search.declared({
      ttlSeconds: undefined,
      sets,
      alias: undefined,
      containers: [],
      zone: zone.authority(ttlSeconds),
      isMissing: found === undefined,
      additional: (type) => (type === TYPE.SRV ? (found?.additional ?? []) : []),
    });
  }
}

/** The reverse names of containers in the first zone. They come before those of networks, and have no other names. */
export class ZonePointers implements VisibleNames {
  readonly places: readonly string[] = [];
  readonly kind = LOCAL_SOURCE.zone;
  readonly #zone: DnsZone;
  readonly #members: ZoneMembers;
  readonly #reach: Reach;

  constructor(zone: DnsZone, members: ZoneMembers, reach: Reach) {
    this.#zone = zone;
    this.#members = members;
    this.#reach = reach;
  }

  find(): number {
    return MISS;
  }

  pointer(labels: Uint8Array, length: number, hash: number): ReverseName | undefined {
    const isThis = (address: Uint8Array): boolean => {
      const own = reverseLabels(address);
      return own.length === length && sameBytes(own, 0, labels, 0, length);
    };
    for (const member of this.#members.withAddress(labels, length, hash)) {
      if (!member.isReady || !this.#reach.tells(member, isThis)) continue;
      const target = hostName(this.#zone, member);
      if (target !== undefined) return { target };
    }
    return undefined;
  }
}
