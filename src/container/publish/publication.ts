/**
 * Publication: the containers of this machine as other machines are to know them: one key for each that is a member of a
 * service and that others can reach. It follows each change of a container.
 */
import { Fault, reasonOf } from "../../base/lib/fault.ts";
import { LIMITS } from "../../base/limits.ts";
import type { PublishPolicy } from "../../base/model/etcd-policy.ts";
import type { LabelPolicy } from "../../base/model/label-policy.ts";
import type { WantedKeys } from "../../base/model/wanted-keys.ts";
import { addressText } from "../../base/model/address.ts";
import { hostOnMachine, keyOf, portText, valueOf } from "../names/zone/member-record.ts";
import { NO_SERVICE, type PublishedMember, publishedMember } from "../names/zone/published-member.ts";
import type { ContainerFact, NetworkFact } from "../facts/fact.ts";

interface PublishedPlace {
  /** First that of its service, then its own. */
  readonly names: readonly string[];
  readonly addresses: readonly string[];
  /** Each is written as NAME=PORT/PROTOCOL. */
  readonly ports: readonly string[];
}

export interface PublicationSettings {
  /** Undefined: nothing is published. */
  readonly policy: PublishPolicy | undefined;
  readonly machine: string;
  readonly labels: LabelPolicy;
  readonly ttlSeconds: number;
}

type FindNetwork = (id: string) => NetworkFact | undefined;

/** What becomes of one container: a key below that of the machine, or why it has none. */
export type Published = (PublishedPlace & { readonly key: string }) | LeftOut;

interface Kept {
  readonly key: string;
  readonly member: PublishedMember;
}

interface LeftOut {
  readonly leftOut: Fault;
}

export class Publication implements WantedKeys {
  readonly wanted = new Map<string, string>();
  onChange: WantedKeys["onChange"] = () => {};
  readonly #published = new Map<string, Kept | LeftOut>();
  readonly #networkOf: FindNetwork;
  readonly #containers: () => Iterable<ContainerFact>;
  #settings: PublicationSettings;
  #connected: string | undefined;
  #isComplete = false;

  /** `containers`: all that run, to go through them again. */
  constructor(settings: PublicationSettings, networkOf: FindNetwork, containers: () => Iterable<ContainerFact>) {
    this.#settings = settings;
    this.#networkOf = networkOf;
    this.#containers = containers;
  }

  get isComplete(): boolean {
    return this.#isComplete;
  }

  get addresses(): readonly string[] {
    const { policy } = this.#settings;
    if (policy === undefined) return [];
    return policy.addresses.length > 0 ? policy.addresses : this.#connected === undefined ? [] : [this.#connected];
  }

  /** What becomes of a container; undefined where nothing is published. */
  of(id: string): Published | undefined {
    const published = this.#published.get(id);
    const { policy, machine } = this.#settings;
    if (published === undefined || policy === undefined) return undefined;
    if ("leftOut" in published) return published;
    const { key, member } = published;
    return { key, ...publishedPlace(member, policy.zone, machine) };
  }

  /** How many members of services are left out, because others cannot reach them, or there are too many. */
  get leftOut(): number {
    let count = 0;
    for (const each of this.#published.values()) if ("leftOut" in each && each.leftOut.code !== NO_SERVICE) count++;
    return count;
  }

  configure(settings: PublicationSettings): void {
    this.#settings = settings;
    this.#again();
  }

  /** Every container that runs is known. */
  setComplete(): void {
    this.#isComplete = true;
    this.onChange(undefined);
  }

  setConnectedAddress(address: string | undefined): void {
    if (address === this.#connected) return;
    this.#connected = address;
    if (this.#settings.policy?.addresses.length === 0) this.#again();
  }

  put(fact: ContainerFact): void {
    const { policy, labels, machine, ttlSeconds } = this.#settings;
    if (policy === undefined) return;
    const before = this.#keyOf(fact.id);
    let published: Kept | LeftOut;
    try {
      const { addresses } = this;
      const member = publishedMember(fact, {
        routedNetworks: policy.routedNetworks,
        ...{ labels, addresses },
        networkOf: this.#networkOf,
      });
      const key = keyOf(member);
      if (!this.wanted.has(key) && before === undefined && this.wanted.size >= LIMITS.etcdMachineMembers)
        throw tooManyFault();
      this.#set(key, valueOf(member, machine, ttlSeconds));
      published = { key, member };
    } catch (error) {
      published = { leftOut: error instanceof Fault ? error : invalidFault(error) };
    }
    this.#published.set(fact.id, published);
    if (before !== undefined && before !== this.#keyOf(fact.id)) this.#delete(before);
  }

  remove(id: string): void {
    const key = this.#keyOf(id);
    this.#published.delete(id);
    if (key !== undefined) this.#delete(key);
  }

  #again(): void {
    this.wanted.clear();
    this.#published.clear();
    if (this.#settings.policy !== undefined) for (const fact of this.#containers()) this.put(fact);
    this.onChange(undefined);
  }

  #keyOf(id: string): string | undefined {
    const published = this.#published.get(id);
    return published !== undefined && "key" in published ? published.key : undefined;
  }

  #set(key: string, value: string): void {
    if (this.wanted.get(key) === value) return;
    this.wanted.set(key, value);
    this.onChange(key);
  }

  #delete(key: string): void {
    this.wanted.delete(key);
    this.onChange(key);
  }
}

function tooManyFault(): Fault {
  return new Fault("PUBLISH_TOO_MANY", `more than ${LIMITS.etcdMachineMembers} containers are published`, {
    remedy: "Run fewer containers of services on this machine.",
  });
}

/** Its labels make no key. */
function invalidFault(error: unknown): Fault {
  return new Fault("PUBLISH_INVALID", reasonOf(error), {
    remedy: "Correct its labels io.dns11.project and io.dns11.service.",
  });
}

/** What a published container is to other machines, as text for people: its names, and where it is reached. */
export function publishedPlace(member: PublishedMember, zone: string, machine: string): PublishedPlace {
  const { project, service, isReady, v4, v6, ports } = member;
  const below = `${service}.${project}.${isReady ? "svc" : "endpoints"}.${zone}`;
  return {
    names: [below, `${hostOnMachine(member, machine)}.${below}`],
    addresses: [...v4, ...v6].map((each) => addressText(each)),
    ports: ports.map((each) => portText(each)),
  };
}
