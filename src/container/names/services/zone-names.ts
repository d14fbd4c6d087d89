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
import type { AddressHolder, Addresses, MemberSet, ZoneMember } from "./member.ts";
import type { ReachableAddresses } from "./reachable-addresses.ts";
import { type DnsZone, pathOf } from "../source/dns-zone.ts";

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
   * Addresses of this machine's containers lead to the zone before they lead to a network, in a source of their own. Those of
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
    return search.withRecords(records, this.#parts.remote !== undefined);
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

/** The name of the first of these that can be reached. */
export function pointerTo(
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

/** The names in a zone that one container resolves, without those of single addresses: one service after the other, so that the reader can stop. */
function* namesIn(zone: DnsZone, members: MemberSet, reachable: ReachableAddresses): Iterable<OwnName> {
  for (const service of members.services()) {
    const visible = service.filter((each) => reachable.sees(each));
    const ready = visible.filter(({ isReady }) => isReady);
    const [one] = visible;
    if (one === undefined) continue;
    const place = `${one.service}.${one.project}`;
    const list = (prefix: string, holders: readonly ZoneMember[], of: (each: ZoneMember) => Addresses): OwnName => ({
      name: `${prefix}.${zone.name}`,
      source: `zone ${zone.name}${machinesText(holders)}`,
      holders: holders.filter(({ remote }) => remote === undefined).map(({ id }) => id),
      ...joined(holders.map((each) => of(each))),
    });
    const first = (each: ZoneMember): Addresses => reachable.first(each);
    if (ready.length > 0) yield list(`${place}.svc`, ready, first);
    yield list(`${place}.endpoints`, visible, (each) => reachable.all(each));
    for (const host of new Set(ready.flatMap(({ hosts }) => hosts)))
      yield list(
        `${host}.${place}.svc`,
        ready.filter(({ hosts }) => hosts.includes(host)),
        first,
      );
    for (const port of new Set(ready.flatMap(portNames)))
      yield list(
        `${port}.${place}.svc`,
        ready.filter((each) => portNames(each).includes(port)),
        () => NO_ADDRESSES,
      );
  }
}

/** The other machines that have some of them. */
function machinesText(members: readonly ZoneMember[]): string {
  const machines = new Set(members.flatMap(({ remote }) => remote?.machine ?? []));
  const [first] = machines;
  if (first === undefined) return "";
  return machines.size === 1 ? `, machine ${first}` : `, ${machines.size} machines`;
}

const NO_ADDRESSES: Addresses = { v4: [], v6: [] };

function portNames({ ports }: ZoneMember): string[] {
  return ports.map(({ name, protocol }) => `_${name}._${protocol}`);
}

function joined(all: readonly Addresses[]): Pick<OwnName, "v4" | "v6"> {
  return { v4: Buffer.concat(all.flatMap(({ v4 }) => v4)), v6: Buffer.concat(all.flatMap(({ v6 }) => v6)) };
}
