/**
 * RemoteMembers: the containers that other machines publish in etcd, as members of services. Each machine has the keys
 * below its own name and a share of all members. What is not valid is left out and named; the records of this machine
 * are left out, too, because its containers are known first hand.
 */
import { LIMITS } from "../../../base/limits.ts";
import { type StoredKey, type StoredKeys, endOf, nextKey } from "../../../base/model/stored-key.ts";
import { Freshness } from "../source/freshness.ts";
import { type KeyProblem, KeyProblems } from "../source/key-problems.ts";
import {
  type Addresses,
  EVERYWHERE,
  type MemberEndpoint,
  type MemberReach,
  type OtherMachines,
  type ZoneMember,
} from "./member.ts";
import { ZoneMembers } from "./members.ts";
import { hostOnMachine, isMachineName, readMachine, readMember } from "./member-record.ts";
import { type PublishedMember, SWARM_NETWORKS_MAX } from "./published-member.ts";

export interface RemoteMembersOptions {
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
export interface RemoteReport {
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
const MACHINE_KEYS = LIMITS.etcdMachineMembers + 1;
/** Stands in the place of a machine's name where a problem concerns all machines. */
const ALL_MACHINES = "*";
const PATH_READ = 7;

/** The part of all keys that machines publish in a zone, with a slash at its end. */
export function machinesPrefix(prefix: string, zone: string): string {
  return `${prefix}/${zone.split(".").toReversed().join("/")}/machine/`;
}

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
    const isAllFull = known.read >= LIMITS.etcdRecords;
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
      if (machine.keys.size >= LIMITS.etcdMachineMembers || known.size >= LIMITS.etcdRecords) {
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
    if (known.machines.size >= LIMITS.etcdMachines)
      throw new Error(`there are more than ${LIMITS.etcdMachines} machines`);
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
