import { LIMITS } from "../../base/limits.ts";
import { addressText, isHostScoped, unmappedBytesOf } from "../../base/model/address.ts";
import { namedPort, type ServicePort } from "../../container/facts/service-port.ts";
import { type KeyProblem, KeyProblems, Freshness, jsonObject } from "../../container/names/source/store.ts";
import {
  type Addresses,
  EVERYWHERE,
  MEMBER_REACHES,
  type MemberEndpoint,
  type MemberReach,
  type OtherMachines,
  type ZoneMember,
} from "../../container/names/services/member.ts";
import { ZoneMembers } from "../../container/names/services/members.ts";
import {
  type InsideSwarm,
  type PublishedMember,
  SWARM_NETWORKS_MAX,
} from "../../container/names/services/published-member.ts";
import { endOf, nextKey, type StoredKeys } from "./client/keys.ts";
import type { StoredKey } from "./client/messages.ts";
import { ETCD_LIMITS } from "./limits.ts";

/** A label of a name, without wildcards. */
const LABEL = /^(?!any$)[a-z0-9]([a-z0-9_-]{0,61}[a-z0-9])?$/;
const ID = /^[0-9a-f]{12}$/;
const NETWORK = /^[a-z0-9]{1,64}$/;
const HOSTS_MAX = 4;
const TEXT_CHARS = 300;
const LABEL_CHARS = 63;

/** Those that are ready are below `svc`, as in names. */
const BRANCHES = ["svc", "endpoints"] as const;
const PATH_LABELS = 4;

/** The key of a container below that of its machine. Throws an Error if it cannot be one. */
export function keyOf({ project, service, id, isReady }: PublishedMember): string {
  const path = [isReady ? "svc" : "endpoints", project, service, id];
  checkPath(path);
  return path.join("/");
}

/**
 * A container as its machine writes it to etcd for all others. It is a record of SkyDNS's schema, with more fields, so that other
 * readers have its address and port.
 */
export function valueOf(member: PublishedMember, machine: string, ttlSeconds: number): string {
  const addresses = [...member.v4, ...member.v6].map((each) => addressText(each));
  const { hosts, ports, reach, inside } = member;
  const [first] = ports;
  return JSON.stringify({
    host: addresses[0],
    ...(first !== undefined && { port: first.number }),
    ttl: ttlSeconds,
    machine,
    reach,
    addresses,
    hosts: hosts.slice(0, HOSTS_MAX),
    ports: ports.map((port) => portText(port)),
    ...(inside !== undefined && { inside: insideFields(inside) }),
  });
}

function insideFields({ ports, networks }: InsideSwarm): object {
  const addresses = ({ v4, v6 }: Addresses): string[] => [...v4, ...v6].map((each) => addressText(each));
  return {
    ports: ports.map((port) => portText(port)),
    networks: Object.fromEntries(networks.map((each) => [each.networkId, addresses(each)])),
  };
}

/** What a container is called on other machines: members on several may be number 1 of their service. */
export function hostOnMachine({ hosts: [host], id }: Pick<PublishedMember, "hosts" | "id">, machine: string): string {
  const name = `${host ?? id}-${machine}`;
  return name.length > LABEL_CHARS ? id : name;
}

/** Writes a port as labels do. */
export function portText({ name, protocol, number }: ServicePort): string {
  return `${name}=${number}/${protocol}`;
}

/** Reads what a machine has written. `path`: its key below that of the machine. Throws an Error with the reason. */
function readMember(path: readonly string[], value: Buffer | undefined): PublishedMember {
  checkPath(path);
  const [branch, project = "", service = "", id = ""] = path;
  const fields = readFields(value);
  const addresses = addressesIn(fields, "addresses");
  const reach = MEMBER_REACHES.find((each) => each === fields["reach"]);
  if (reach === undefined) throw new Error(`its reach is not one of ${MEMBER_REACHES.join(", ")}`);
  const inside = fields["inside"] === undefined ? undefined : insideIn(fieldsIn(fields, "inside"));
  if (reach === "swarm" && inside === undefined) throw new Error("it is on no swarm network");
  return {
    project,
    service,
    id,
    isReady: branch === "svc",
    hosts: listIn(fields, "hosts", HOSTS_MAX).map((text) => labelIn(text)),
    ports: listIn(fields, "ports", LIMITS.labelPorts).map((text) => portIn(text)),
    reach,
    inside,
    ...addresses,
  };
}

function insideIn(fields: Fields): InsideSwarm {
  const networks = fieldsIn(fields, "networks");
  const ids = Object.keys(networks);
  if (ids.length === 0 || ids.length > SWARM_NETWORKS_MAX || !ids.every((id) => NETWORK.test(id)))
    throw new Error(`its networks are not the ids of at most ${SWARM_NETWORKS_MAX}`);
  return {
    ports: listIn(fields, "ports", LIMITS.labelPorts).map((text) => portIn(text)),
    networks: ids.map((networkId) => ({ networkId, ...addressesIn(networks, networkId) })),
  };
}

/** The record of the machine itself. */
function readMachine(value: Buffer | undefined): Addresses {
  const addresses = listIn(readFields(value), "addresses", 2).map((text) => addressIn(text));
  return { v4: addresses.filter(({ length }) => length === 4), v6: addresses.filter(({ length }) => length === 16) };
}

function isMachineName(text: string): boolean {
  return LABEL.test(text);
}

function checkPath(path: readonly string[]): void {
  const [branch, project = "", service = "", id = ""] = path;
  const isPath = path.length === PATH_LABELS && BRANCHES.some((each) => each === branch);
  if (!isPath || !LABEL.test(project) || !LABEL.test(service) || !ID.test(id))
    throw new Error("its key is not svc or endpoints, a project, a service and an id");
}

type Fields = Readonly<Record<string, unknown>>;

function readFields(value: Buffer | undefined): Fields {
  if (value === undefined || value.length > ETCD_LIMITS.memberBytes)
    throw new Error(`the value has more than ${ETCD_LIMITS.memberBytes} bytes`);
  return jsonObject(value);
}

function listIn(fields: Fields, key: string, max: number): readonly string[] {
  const field = fields[key] ?? [];
  const isList = Array.isArray(field) && field.length <= max;
  if (isList && field.every((each) => typeof each === "string" && each.length <= TEXT_CHARS)) return field as string[];
  throw new Error(`its ${key} are not a list of at most ${max} strings`);
}

function fieldsIn(fields: Fields, key: string): Fields {
  const field = fields[key];
  if (typeof field === "object" && field !== null && !Array.isArray(field)) return field as Fields;
  throw new Error(`its ${key} is not a JSON object`);
}

/** One of a family, and one at least. */
function addressesIn(fields: Fields, key: string): Addresses {
  const addresses = listIn(fields, key, 2).map((text) => addressIn(text));
  const v4 = addresses.filter(({ length }) => length === 4);
  const v6 = addresses.filter(({ length }) => length === 16);
  if (addresses.length === 0 || v4.length > 1 || v6.length > 1) throw new Error("it has not one address of a family");
  return { v4, v6 };
}

function addressIn(text: string): Uint8Array {
  const bytes = unmappedBytesOf(text);
  if (bytes === undefined || text.includes("%") || isHostScoped(text))
    throw new Error("an address of it is none that means one machine");
  return bytes;
}

function labelIn(text: string): string {
  if (LABEL.test(text)) return text;
  throw new Error("a host name of it is no label of a name");
}

function portIn(text: string): ServicePort {
  const port = namedPort(text);
  if (port !== undefined) return port;
  throw new Error("a port of it is not NAME=PORT/PROTOCOL");
}

interface RemoteMembersOptions {
  /** The first part of all keys, without a slash at its end. */
  readonly prefix: string;
  readonly zone: string;
  /** This machine. */
  readonly machine: string;
  readonly isNearestFirst: boolean;
  readonly staleSecondsMax: number;
  readonly now?: (() => number) | undefined;
}

/** What is known, and how well. */
interface RemoteReport {
  readonly machines: number;
  readonly members: number;
  /** Left out because a machine, or all together, have too many. */
  readonly refused: number;
  /** The machines of which not all keys were read. */
  readonly cut: readonly string[];
  readonly skipped: number;
  readonly problems: readonly KeyProblem[];
}

/** The records of one machine. */
interface Machine {
  readonly keys: Set<string>;
  /** How many keys of it were read, valid or not. */
  read: number;
  host: Addresses | undefined;
}

/** Everything that a list brings. */
class Known {
  readonly members = new ZoneMembers();
  readonly machines = new Map<string, Machine>();
  readonly problems = new KeyProblems();
  readonly cut = new Set<string>();
  size = 0;
  read = 0;
  refused = 0;
}

/** The key of a machine's own record, below its name. */
export const MACHINE_KEY = "host";
const MACHINES_REPORTED = 20;
/** All that it may publish, and its own record. */
const MACHINE_KEYS = ETCD_LIMITS.machineMembers + 1;
/** Stands in the place of a machine's name where a problem concerns all machines. */
const ALL_MACHINES = "*";
const PATH_READ = 7;

/** The part of all keys that machines publish in a zone, with a slash at its end. */
export function machinesPrefix(prefix: string, zone: string): string {
  return `${prefix}/${zone.split(".").toReversed().join("/")}/machine/`;
}

/**
 * The containers that other machines publish in etcd, as members of services. Each machine has the keys
 * below its own name and a share of all members. What is not valid is left out and named; the records of this machine
 * are left out, too, because its containers are known first hand.
 */
export class RemoteMembers implements StoredKeys, OtherMachines {
  readonly store = "etcd";
  readonly isNearestFirst: boolean;
  readonly prefix: string;
  readonly #options: RemoteMembersOptions;
  readonly #freshness: Freshness;
  #known = new Known();
  /** What a list has brought so far. */
  #listed: Known | undefined;

  constructor(options: RemoteMembersOptions) {
    this.#options = options;
    this.#freshness = new Freshness(options.staleSecondsMax, options.now);
    this.isNearestFirst = options.isNearestFirst;
    this.prefix = machinesPrefix(options.prefix, options.zone);
  }

  /** There are none after etcd was away for too long. */
  get members(): ZoneMembers {
    return this.isUsable ? this.#known.members : NONE;
  }

  /** Whether other members than those of this machine are known: if not, nothing can be denied. */
  get isUsable(): boolean {
    return this.#freshness.isUsable;
  }

  get isStale(): boolean {
    return this.#freshness.isStale;
  }

  get report(): RemoteReport {
    const { machines, size, refused, cut, problems } = this.#known;
    const others = [...machines].filter(([name, { keys }]) => name !== this.#options.machine && keys.size > 0);
    return {
      machines: others.length,
      members: size,
      refused,
      cut: [...cut].slice(0, MACHINES_REPORTED),
      skipped: problems.count,
      problems: problems.first,
    };
  }

  /** Whether a key is one that machines publish, and not a name. */
  takes(key: string): boolean {
    return key.startsWith(this.prefix);
  }

  isOwn(key: string): boolean {
    return key.startsWith(`${this.prefix}${this.#options.machine}/`);
  }

  /** The addresses of a machine, as it has published them. */
  hostOf(machine: string): Addresses | undefined {
    return this.isUsable ? this.#known.machines.get(machine)?.host : undefined;
  }

  /** Whether etcd confirms what is known. */
  setCurrent(isCurrent: boolean): void {
    this.#freshness.setCurrent(isCurrent);
  }

  /** Each machine has its share of the keys that are read; then the list goes on with the next machine. */
  after(key: string): string | undefined {
    const known = this.#listed ?? this.#known;
    const [name = ""] = this.#pathOf(key);
    const isAllFull = known.read >= ETCD_LIMITS.records;
    if (!isAllFull && (known.machines.get(name)?.read ?? 0) < MACHINE_KEYS) return nextKey(key);
    known.cut.add(isAllFull ? ALL_MACHINES : name);
    return isAllFull ? endOf(this.prefix) : endOf(`${this.prefix}${name}/`);
  }

  begin(): void {
    this.#listed = new Known();
  }

  commit(): void {
    this.#known = this.#listed ?? this.#known;
    this.#listed = undefined;
    this.#freshness.setListed();
  }

  put({ key, value }: StoredKey): void {
    const known = this.#listed ?? this.#known;
    this.#forget(known, key);
    const [name = "", ...path] = this.#pathOf(key);
    known.read++;
    try {
      const machine = this.#machineOf(known, name);
      machine.read++;
      if (path.length === 1 && path[0] === MACHINE_KEY) return void (machine.host = readMachine(value));
      if (name === this.#options.machine) return;
      const members = remoteMembers(key, name, readMember(path, value));
      if (machine.keys.size >= ETCD_LIMITS.machineMembers || known.size >= ETCD_LIMITS.records) {
        known.refused++;
        return;
      }
      machine.keys.add(key);
      known.size++;
      for (const member of members) known.members.add(member);
    } catch (error) {
      known.problems.note(key, error);
    }
  }

  remove(key: string): void {
    const known = this.#listed ?? this.#known;
    this.#forget(known, key);
    const [name = "", leaf] = this.#pathOf(key);
    const machine = known.machines.get(name);
    if (machine === undefined) return;
    if (leaf === MACHINE_KEY) machine.host = undefined;
    if (machine.host === undefined && machine.keys.size === 0) known.machines.delete(name);
  }

  /** Members have a TTL of their own. */
  setLease(): void {}

  #forget(known: Known, key: string): void {
    known.problems.forget(key);
    const [name = ""] = this.#pathOf(key);
    if (known.machines.get(name)?.keys.delete(key) !== true) return;
    known.size--;
    for (let way = 0; way <= SWARM_NETWORKS_MAX; way++) known.members.remove(wayOf(key, way));
  }

  #machineOf(known: Known, name: string): Machine {
    const found = known.machines.get(name);
    if (found !== undefined) return found;
    if (!isMachineName(name)) throw new Error("its key has no name of a machine");
    if (known.machines.size >= ETCD_LIMITS.machines)
      throw new Error(`there are more than ${ETCD_LIMITS.machines} machines`);
    const machine = { keys: new Set<string>(), read: 0, host: undefined };
    known.machines.set(name, machine);
    return machine;
  }

  #pathOf(key: string): string[] {
    return key.slice(this.prefix.length).split("/", PATH_READ);
  }
}

const NONE = new ZoneMembers();

/** One for each way to reach it: a client gets the first one that it can use. */
function remoteMembers(key: string, machine: string, published: PublishedMember): ZoneMember[] {
  const { reach, inside, v4, v6, id, hosts, ports, isReady, project, service } = published;
  const own = { project, service, isReady, hosts: [hostOnMachine({ hosts, id }, machine), ...hosts] };
  const ways: { readonly reach: MemberReach; readonly ports: typeof ports; readonly endpoint: MemberEndpoint }[] = [
    ...(inside?.networks ?? []).map((endpoint) => ({
      reach: "container" as const,
      ports: inside?.ports ?? [],
      endpoint,
    })),
    ...(reach === "swarm" ? [] : [{ reach, ports, endpoint: { networkId: EVERYWHERE, v4, v6 } }]),
  ];
  return ways.map((way, at) => ({
    ...own,
    id: wayOf(key, at),
    ports: way.ports,
    endpoints: [way.endpoint],
    remote: { machine, reach: way.reach, unless: ways.slice(0, at).map(({ endpoint }) => endpoint) },
  }));
}

function wayOf(key: string, way: number): string {
  return way === 0 ? key : `${key} ${way}`;
}
