/**
 * ZoneLookup: what the names below a zone mean to one container, as SkyDNS and Kubernetes (DNS specification 1.1.0) have
 * them: SERVICE.PROJECT.svc, HOST.SERVICE.PROJECT.svc, _PORT._PROTOCOL.SERVICE.PROJECT.svc, the same below endpoints,
 * and A-B-C-D.PROJECT.pod. `*` and `any` match every label but svc, endpoints and pod.
 */
import { serviceData, textData } from "../../../base/dns/record-data.ts";
import { TYPE } from "../../../base/dns/record-type.ts";
import { LIMITS } from "../../../base/limits.ts";
import { addressBytes, reverseLabels } from "../../../base/model/address.ts";
import { hashOf } from "../../../base/model/label-table.ts";
import type { ServicePort } from "../../facts/service-port.ts";
import type { NameRecords, OwnedRecord } from "../../../base/model/visible-names.ts";
import {
  type Addresses,
  EVERY,
  type MemberPlace,
  type MemberSet,
  type OtherMachines,
  type ZoneMember,
  isAny,
} from "./member.ts";
import type { ReachableAddresses } from "./reachable-addresses.ts";
import type { DnsZone } from "../source/dns-zone.ts";

/** All endpoints of a service are equal. */
const EQUAL = { priority: 0, weight: 100 };
/** Members on another machine get these, and the nearest come first. */
const FARTHER = { priority: 10, weight: 100 };
/** Of the schema, as `dns-version` reports it. */
const SCHEMA_VERSION = "1.1.0";

interface ZoneFinding {
  readonly sets: NameRecords["sets"];
  readonly additional?: readonly OwnedRecord[];
  /** Addresses are answered in this order. */
  readonly isSorted?: boolean;
  /** Another machine has published some of it. */
  readonly isForeign?: boolean;
  /** explain shows it. */
  readonly why: string;
}

export interface LookupParts {
  readonly members: MemberSet;
  /** What other machines publish. */
  readonly remote: OtherMachines | undefined;
  readonly reachable: ReachableAddresses;
  /** The addresses at which dns11 answers the container. */
  readonly servers: readonly string[];
}

type Branch = "svc" | "endpoints";

const NO_RECORDS: NameRecords["sets"] = new Map();

export class ZoneLookup {
  readonly #members: MemberSet;
  readonly #remote: OtherMachines | undefined;
  readonly #reachable: ReachableAddresses;
  readonly #servers: Addresses;

  constructor({ members, remote, reachable, servers }: LookupParts) {
    this.#members = members;
    this.#remote = remote;
    this.#reachable = reachable;
    const bytes = servers.flatMap((each) => addressBytes(each) ?? []);
    this.#servers = { v4: bytes.filter(({ length }) => length === 4), v6: bytes.filter(({ length }) => length === 16) };
  }

  /** `path`: the labels before the zone, in lower case, the last one first. undefined: there is no such name. */
  find(zone: DnsZone, path: readonly string[], ttlSeconds: number): ZoneFinding | undefined {
    const [branch, project = "", ...rest] = path;
    if (branch === undefined) return this.#apex(zone, ttlSeconds);
    if (branch === "dns-version" && path.length === 1)
      return { sets: new Map([[TYPE.TXT, [textData(Buffer.from(SCHEMA_VERSION))]]]), why: "the version of the schema" };
    if (branch === "dns") return this.#server(path);
    if (branch === "machine") return this.#machine(path);
    if (branch !== "svc" && branch !== "endpoints" && branch !== "pod") return undefined;
    if (path.length === 1) return between("all projects");
    if (path.length === 2) return this.#hasAny(project) ? between("a project") : undefined;
    if (branch === "pod") return this.#pod(project, rest);
    return this.#service(zone, branch, project, rest);
  }

  #apex(zone: DnsZone, ttlSeconds: number): ZoneFinding {
    const sets = new Map([
      [TYPE.SOA, [zone.authority(ttlSeconds).soa]],
      [TYPE.NS, [zone.server]],
    ]);
    return { sets, why: "the zone itself" };
  }

  #server(path: readonly string[]): ZoneFinding | undefined {
    if (path.length === 1) return between("the zone's server");
    return path.length === 2 && path[1] === "ns"
      ? { sets: addressSets([this.#servers]), why: "the zone's server, which is dns11" }
      : undefined;
  }

  #service(zone: DnsZone, branch: Branch, project: string, rest: readonly string[]): ZoneFinding | undefined {
    const [service = "", host, port] = rest;
    const place = { project, service, host: host === undefined || host.startsWith("_") ? EVERY : host };
    const members = this.#visible(branch, place, LIMITS.zoneAnswerMembers);
    if (rest.length > 3 || members.length === 0) return undefined;
    if (port !== undefined) return this.#ports(zone, members, String(host), port);
    if (host?.startsWith("_") === true)
      return members.some(({ ports }) => ports.some((each) => isProtocol(each, host)))
        ? between("a protocol")
        : undefined;
    // The address of a machine is no way to a service whose ports are other ones there.
    const isOfAll = branch === "svc" && (host === undefined || isAny(host));
    const addressed = isOfAll ? members.filter(({ remote }) => remote?.reach !== "ports") : members;
    const isSorted = this.#remote?.isNearestFirst === true;
    const addresses = (isSorted ? nearestFirst(addressed) : addressed).map((each) =>
      branch === "svc" ? this.#reachable.first(each) : this.#reachable.all(each),
    );
    // Several members may have the address of one machine.
    const isShared = addressed.some(({ remote }) => remote?.reach === "machine");
    const sets = addressSets(isShared ? distinct(addresses) : addresses);
    return { sets, isSorted, isForeign: isAnyForeign(members), why: membersText(members, branch, host) };
  }

  /** MACHINE.machine: the addresses of a machine that publishes. */
  #machine([, machine, more]: readonly string[]): ZoneFinding | undefined {
    if (this.#remote === undefined) return undefined;
    if (machine === undefined) return between("all machines");
    const host = more === undefined ? this.#remote.hostOf(machine) : undefined;
    return host && { sets: addressSets([host]), isForeign: true, why: "a machine that publishes its containers" };
  }

  /** Finds those that count and that the container gets an address of, among the first ones. */
  #visible(branch: Branch, place: MemberPlace, max: number): ZoneMember[] {
    const found: ZoneMember[] = [];
    const foundOn = new Map<string, number>();
    for (const member of firstIn(this.#members.groups(place))) {
      const { remote } = member;
      // A host name that a member of this machine has is not that of another.
      if (remote !== undefined && found[0]?.remote === undefined && found.length > 0 && !isAny(place.host)) break;
      if (branch === "svc" && !member.isReady) continue;
      if (!this.#reachable.sees(member)) continue;
      if (remote !== undefined) {
        const count = foundOn.get(remote.machine) ?? 0;
        if (count === LIMITS.machineAnswerMembers) continue;
        foundOn.set(remote.machine, count + 1);
      }
      found.push(member);
      if (found.length === max) break;
    }
    return found;
  }

  #ports(zone: DnsZone, members: readonly ZoneMember[], protocol: string, name: string): ZoneFinding | undefined {
    const records: Uint8Array[] = [];
    const additional: OwnedRecord[] = [];
    for (const member of members) {
      const ports = member.ports.filter(
        (each) => isProtocol(each, protocol) && (isAny(name) || name === `_${each.name}`),
      );
      const target = ports.length === 0 ? undefined : hostName(zone, member);
      if (target === undefined) continue;
      const rank = this.#remote?.isNearestFirst === true && member.remote !== undefined ? FARTHER : EQUAL;
      for (const { number } of ports) records.push(serviceData({ ...rank, port: number, target }));
      const sets = addressSets([this.#reachable.first(member)]);
      for (const [type, all] of sets) additional.push(...all.map((data) => ({ owner: target, type, data })));
    }
    if (records.length === 0) return undefined;
    const sets = new Map([[TYPE.SRV, records]]);
    return { sets, additional, isForeign: isAnyForeign(members), why: `a port of ${counted(members.length)}` };
  }

  /** The address itself, with dashes for dots or colons. */
  #pod(project: string, rest: readonly string[]): ZoneFinding | undefined {
    const [dashed = ""] = rest;
    const bytes = addressBytes(dashed.replaceAll("-", ".")) ?? addressBytes(dashed.replaceAll("-", ":"));
    if (bytes === undefined || rest.length > 1) return undefined;
    const key = reverseLabels(bytes);
    const holders = this.#members.withAddress(key, key.length, hashOf(key));
    const told = holders.filter(
      (holder) => (isAny(project) || holder.member.project === project) && this.#reachable.has(holder),
    );
    if (told.length === 0) return undefined;
    const sets = new Map([[bytes.length === 4 ? TYPE.A : TYPE.AAAA, [bytes]]]);
    const isForeign = isAnyForeign(told.map(({ member }) => member));
    return { sets, isForeign, why: "the address of a container of the project" };
  }

  #hasAny(project: string): boolean {
    return this.#visible("endpoints", { project, service: EVERY, host: EVERY }, 1).length > 0;
  }
}

/** HOST.SERVICE.PROJECT.svc, with the host by which the container is called; undefined if that is too long. */
export function hostName(zone: DnsZone, member: ZoneMember): Uint8Array | undefined {
  return zone.nameOf(member, ({ hosts, service, project }) => `${hosts[0] ?? ""}.${service}.${project}.svc`);
}

/** Those that a query may visit. No other machine takes all of it with the members of one service. */
function* firstIn(groups: Iterable<Iterable<ZoneMember>>): Iterable<ZoneMember> {
  let left = LIMITS.zoneVisits;
  for (const group of groups) {
    let leftInGroup = LIMITS.machineVisits;
    left--;
    for (const member of group) {
      if (member.remote !== undefined && leftInGroup-- === 0) break;
      if (left-- <= 0) return;
      yield member;
    }
    if (left <= 0) return;
  }
}

function isAnyForeign(members: readonly ZoneMember[]): boolean {
  return members.some(({ remote }) => remote !== undefined);
}

/** A name without records, above others that have some. */
function between(what: string): ZoneFinding {
  return { sets: NO_RECORDS, why: `${what}, with names below` };
}

function isProtocol({ protocol }: ServicePort, label: string): boolean {
  return isAny(label) || label === `_${protocol}`;
}

/** Without those that an earlier one has. */
function distinct(all: readonly Addresses[]): Addresses[] {
  const seen = new Set<string>();
  const isNew = (address: Uint8Array): boolean => {
    const key = address.join();
    if (seen.has(key)) return false;
    seen.add(key);
    return true;
  };
  return all.map(({ v4, v6 }) => ({ v4: v4.filter(isNew), v6: v6.filter(isNew) }));
}

function addressSets(all: readonly Addresses[]): Map<number, Uint8Array[]> {
  const sets = new Map<number, Uint8Array[]>();
  const v4 = all.flatMap((each) => each.v4);
  const v6 = all.flatMap((each) => each.v6);
  if (v4.length > 0) sets.set(TYPE.A, v4);
  if (v6.length > 0) sets.set(TYPE.AAAA, v6);
  return sets;
}

function membersText(members: readonly ZoneMember[], branch: Branch, host: string | undefined): string {
  const ready = branch === "svc" ? " ready" : "";
  const machines = [...new Set(members.flatMap(({ remote }) => remote?.machine ?? []))];
  const shown = machines.slice(0, MACHINES_SHOWN).join(", ");
  const more = machines.length > MACHINES_SHOWN ? ` and ${machines.length - MACHINES_SHOWN} more` : "";
  const elsewhere = machines.length === 0 ? "" : `, some on ${shown}${more}`;
  return `${host === undefined ? "a service with" : "a host name of"} ${counted(members.length, ready)}${elsewhere}`;
}

const MACHINES_SHOWN = 3;

/** Those of this machine, then all others, each in random order. */
function nearestFirst(members: readonly ZoneMember[]): ZoneMember[] {
  const shuffled = members.map((member) => ({ member, at: Math.random() + (member.remote === undefined ? 0 : 1) }));
  return shuffled.toSorted((a, b) => a.at - b.at).map(({ member }) => member);
}

function counted(count: number, ready = " ready"): string {
  return `${count}${ready} container${count === 1 ? "" : "s"}`;
}
