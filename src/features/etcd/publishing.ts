import { randomUUID } from "node:crypto";

import type { PublishReport, PublishedReport } from "../../api/etcd.ts";
import { Fault, reasonOf } from "../../base/lib/fault.ts";
import { addressText } from "../../base/model/address.ts";
import type { ReportEvent } from "../../base/log/log.ts";
import type { LabelPolicy } from "../../base/model/name-choices.ts";
import type { ContainerFact, NetworkFact } from "../../container/facts/fact.ts";
import { NO_SERVICE, type PublishedMember, publishedMember } from "../../container/names/services/published-member.ts";
import type { Gateway } from "./client/gateway.ts";
import { Publisher, type PublisherCounts, type WantedKeys } from "./client/publisher.ts";
import type { EtcdPolicy, PublishPolicy } from "./feature.ts";
import { ETCD_LIMITS } from "./limits.ts";
import { hostOnMachine, keyOf, MACHINE_KEY, machinesPrefix, portText, valueOf } from "./machines.ts";

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
type Published = (PublishedPlace & { readonly key: string }) | LeftOut;

interface Kept {
  readonly key: string;
  readonly member: PublishedMember;
}

interface LeftOut {
  readonly leftOut: Fault;
}

/**
 * The containers of this machine as other machines are to know them: one key for each that is a member of a
 * service and that others can reach. It follows each change of a container.
 */
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
      if (!this.wanted.has(key) && before === undefined && this.wanted.size >= ETCD_LIMITS.machineMembers)
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
  return new Fault("PUBLISH_TOO_MANY", `more than ${ETCD_LIMITS.machineMembers} containers are published`, {
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

/** This machine, as etcd knows it. */
export interface PublishingMachine {
  readonly name: string;
  /** Which dns11 of it. */
  readonly instance: string;
}

interface EtcdPublishingParts {
  readonly gateway: Gateway;
  readonly machine: PublishingMachine;
  readonly policy: EtcdPolicy;
  readonly publish: PublishPolicy;
  readonly keys: Publication;
  readonly counts: PublisherCounts;
  readonly onEvent: ReportEvent;
}

/** One for each process: after a restart it is another one. */
const RUN = randomUUID();

/**
 * The containers of this machine on their way to etcd: starts and ends the publisher, logs what becomes of
 * it, and reports it.
 */
export class EtcdPublishing {
  /** The first part of all keys of this machine. */
  readonly root: string;
  readonly #parts: EtcdPublishingParts;
  readonly #publisher: Publisher;
  readonly #stop = new AbortController();
  readonly #done: Promise<void>;
  #hasPublished = false;

  constructor(parts: EtcdPublishingParts) {
    this.#parts = parts;
    const { gateway, machine, policy, publish, keys, counts } = parts;
    this.root = rootOf(policy, publish, machine);
    this.#publisher = new Publisher({
      gateway,
      root: this.root,
      ownerKey: MACHINE_KEY,
      machine: machine.name,
      instance: machine.instance,
      run: RUN,
      leaseSeconds: publish.leaseSeconds,
      keys,
      counts,
      onState: (fault) => this.#log(fault),
    });
    this.#done = this.#publisher.run(this.#stop.signal);
  }

  get report(): PublishReport {
    const { keys, machine } = this.#parts;
    const { fault, isHeld, lease, counts, sizes } = this.#publisher;
    return {
      state: !isHeld ? "unpublished" : fault === undefined && sizes.pending === 0 ? "current" : "behind",
      code: fault?.code ?? null,
      reason: fault?.message ?? null,
      remedy: fault?.remedy ?? null,
      machine: machine.name,
      addresses: keys.addresses,
      root: this.root,
      lease: lease ?? null,
      records: keys.wanted.size,
      leftOut: keys.leftOut,
      ...sizes,
      ...counts,
    };
  }

  /** Why it is not published, or not renewed. */
  get fault(): Fault | undefined {
    return this.#publisher.fault;
  }

  /** Whether others have this key as it is wanted. */
  has(key: string): boolean {
    return this.#publisher.has(key);
  }

  noteStored(key: string, value: string | undefined): void {
    this.#publisher.noteStored(key, value);
  }

  /** `isWithdrawn`: nothing stays; else it stays for as long as the lease, for the next run. */
  async close(isWithdrawn: boolean): Promise<void> {
    this.#stop.abort();
    await this.#done;
    if (!isWithdrawn) return;
    const { onEvent } = this.#parts;
    try {
      await this.#publisher.withdraw(AbortSignal.timeout(ETCD_LIMITS.withdrawMs));
      onEvent({}, "withdrew the containers of this machine from etcd");
    } catch (error) {
      const { message: reason } = error as Fault;
      onEvent({ reason }, "cannot withdraw the containers of this machine from etcd, they end with its lease", "warn");
    }
  }

  #log(fault: Fault | undefined): void {
    const { onEvent, keys, machine } = this.#parts;
    if (fault === undefined) {
      const again = this.#hasPublished ? " again" : "";
      this.#hasPublished = true;
      onEvent({ machine: machine.name, records: keys.wanted.size }, `publishing to etcd${again}`);
      return;
    }
    const { message: reason, remedy } = fault;
    onEvent({ reason, remedy }, "cannot publish to etcd, trying again", "warn");
  }
}

/** With a slash at its end. */
function rootOf({ prefix }: EtcdPolicy, { zone }: PublishPolicy, { name }: PublishingMachine): string {
  return `${machinesPrefix(prefix, zone)}${name}/`;
}

/** What becomes of one container in etcd, from what is wanted of it and what the publisher has written. */
export function publishedReport(
  published: Published,
  zone: string,
  publishing: Pick<EtcdPublishing, "root" | "fault" | "has"> | undefined,
): PublishedReport {
  if ("leftOut" in published) {
    const nowhere = { zone, key: null, names: [], addresses: [], ports: [] };
    return { state: "unpublished", ...whyOf(published.leftOut), ...nowhere };
  }
  const { key, ...place } = published;
  const isWritten = publishing?.has(key) === true;
  return {
    state: isWritten ? "published" : publishing?.fault === undefined ? "pending" : "unpublished",
    ...whyOf(isWritten ? undefined : publishing?.fault),
    zone,
    key: publishing === undefined ? null : publishing.root + key,
    ...place,
  };
}

function whyOf(fault: Fault | undefined): Pick<PublishedReport, "code" | "reason" | "remedy"> {
  return { code: fault?.code ?? null, reason: fault?.message ?? null, remedy: fault?.remedy ?? null };
}
