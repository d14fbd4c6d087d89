/**
 * ZoneMembers: the containers that have names in zones, by project, service and host name, and by address. A change touches
 * one container only.
 */
import { LIMITS } from "../../../base/limits.ts";
import { addressBytes, reverseLabels } from "../../../base/model/address.ts";
import type { LabelPolicy } from "../../../base/model/name-choices.ts";
import { LabelTable } from "../../../base/model/label-table.ts";
import { MultiMap } from "../../../base/lib/multi-map.ts";
import type { ContainerFact, EndpointFact } from "../../facts/fact.ts";
import { servicePlace } from "../../facts/label-service.ts";
import {
  type AddressHolder,
  EVERY,
  type MemberEndpoint,
  type MemberPlace,
  type MemberSet,
  type ZoneMember,
  isAny,
} from "./member.ts";

const THIS_MACHINE = "";

/** By service, and by host name; all members of a service under the wildcard. */
type Services = Map<string, Map<string, MachineMembers>>;

const NO_HOLDERS: readonly AddressHolder[] = [];
/** What a service without the host name has. */
const NO_GROUPS: Iterable<Iterable<ZoneMember>> = [[]];

export class ZoneMembers implements MemberSet {
  readonly #byId = new Map<string, ZoneMember>();
  readonly #projects = new Map<string, Services>();
  readonly #byAddress = new LabelTable<readonly AddressHolder[]>();

  /** Replaces what is known of a container. */
  put(fact: ContainerFact, policy: LabelPolicy): void {
    const member = memberOf(fact, policy);
    if (member === undefined) this.remove(fact.id);
    else this.add(member);
  }

  add(member: ZoneMember): void {
    this.remove(member.id);
    this.#byId.set(member.id, member);
    const services: Services = this.#projects.get(member.project) ?? new Map();
    const hosts = services.get(member.service) ?? new Map<string, MachineMembers>();
    for (const host of hostsOf(member)) {
      const others = hosts.get(host) ?? new MachineMembers();
      others.add(member);
      hosts.set(host, others);
    }
    this.#projects.set(member.project, services.set(member.service, hosts));
    for (const holder of holdersIn(member)) {
      const key = reverseLabels(holder.address);
      const known = this.#byAddress.get(key) ?? NO_HOLDERS;
      if (known.length < LIMITS.zoneAddressMembers) this.#byAddress.set(key, [...known, holder]);
    }
  }

  remove(id: string): void {
    const member = this.#byId.get(id);
    if (member === undefined) return;
    this.#byId.delete(id);
    const services = this.#projects.get(member.project);
    const hosts = services?.get(member.service);
    for (const host of hostsOf(member)) {
      hosts?.get(host)?.remove(member);
      if (hosts?.get(host)?.isEmpty === true) hosts.delete(host);
    }
    if (hosts?.size === 0) services?.delete(member.service);
    if (services?.size === 0) this.#projects.delete(member.project);
    for (const { address } of holdersIn(member)) {
      const key = reverseLabels(address);
      const remaining = (this.#byAddress.get(key) ?? []).filter((each) => each.member.id !== id);
      if (remaining.length === 0) this.#byAddress.delete(key);
      else this.#byAddress.set(key, remaining);
    }
  }

  *groups({ project, service, host }: MemberPlace): Iterable<Iterable<ZoneMember>> {
    const key = isAny(host) ? EVERY : host;
    for (const services of matches(this.#projects, project)) {
      for (const hosts of matches(services, service)) yield* hosts.get(key)?.groups() ?? NO_GROUPS;
    }
  }

  /** The containers of each service. */
  *services(): Iterable<readonly ZoneMember[]> {
    for (const services of this.#projects.values()) {
      for (const hosts of services.values())
        yield [...(hosts.get(EVERY)?.groups() ?? [])].flatMap((group) => [...group]);
    }
  }

  /** Finds those that have the address of which these are the labels below in-addr.arpa or ip6.arpa. */
  withAddress(labels: Uint8Array, length: number, hash: number): readonly AddressHolder[] {
    return this.#byAddress.find(labels, length, hash) ?? NO_HOLDERS;
  }
}

function matches<V>(all: ReadonlyMap<string, V>, label: string): Iterable<V> {
  if (isAny(label)) return all.values();
  const one = all.get(label);
  return one === undefined ? [] : [one];
}

function hostsOf({ hosts }: ZoneMember): Iterable<string> {
  return new Set([EVERY, ...hosts]);
}

function memberOf(fact: ContainerFact, policy: LabelPolicy): ZoneMember | undefined {
  const place = servicePlace(fact, policy);
  if (place === undefined) return undefined;
  const isReady = !fact.isPaused && (fact.health === undefined || fact.health === "healthy");
  return { ...place, id: fact.id, isReady, endpoints: fact.endpoints.flatMap((each) => memberEndpoint(each)) };
}

function memberEndpoint({ networkId, ipv4, ipv6 }: EndpointFact): MemberEndpoint[] {
  const v4 = bytesOf(ipv4);
  const v6 = bytesOf(ipv6);
  return v4.length + v6.length === 0 ? [] : [{ networkId, v4, v6 }];
}

function bytesOf(text: string | undefined): Uint8Array[] {
  const bytes = text === undefined ? undefined : addressBytes(text);
  return bytes === undefined ? [] : [bytes];
}

/** Many members may have the address of a machine: it is that of none. */
function holdersIn(member: ZoneMember): AddressHolder[] {
  if (member.remote !== undefined && member.remote.reach !== "container") return [];
  return member.endpoints.flatMap((endpoint) =>
    [...endpoint.v4, ...endpoint.v6].map((address) => ({ member, endpoint, address })),
  );
}

/**
 * Members by the machine that they are on, so that those of one can be passed over. Most host names have one
 * member, which takes no table.
 */
class MachineMembers {
  #only: ZoneMember | undefined;
  #table: MultiMap<ZoneMember> | undefined;

  get isEmpty(): boolean {
    return this.#only === undefined && this.#table?.isEmpty !== false;
  }

  /** Those of each machine. */
  groups(): Iterable<Iterable<ZoneMember>> {
    if (this.#table !== undefined) return this.#table.groups();
    return this.#only === undefined ? [] : [[this.#only]];
  }

  add(member: ZoneMember): void {
    if (this.isEmpty) {
      this.#only = member;
      this.#table = undefined;
      return;
    }
    this.#table ??= new MultiMap();
    for (const each of this.#only === undefined ? [member] : [this.#only, member])
      this.#table.add(machineOf(each), each);
    this.#only = undefined;
  }

  remove(member: ZoneMember): void {
    if (this.#only === member) this.#only = undefined;
    this.#table?.delete(machineOf(member), member);
  }
}

function machineOf({ remote }: ZoneMember): string {
  return remote?.machine ?? THIS_MACHINE;
}
