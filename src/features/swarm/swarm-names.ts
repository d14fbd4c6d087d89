/**
 * SwarmNames: which names one container on swarm networks may have from another machine. It answers none itself: Docker's
 * resolver is asked for them, because only gossip between the engines keeps them up to date.
 *
 * A name is asked for if it looks like one of a swarm: a single label, NAME.NETWORK, tasks.SERVICE, the name of a task, or
 * one that the engine lists. All other names go where they go for any container, without a detour.
 */
import { presentation, sameBytes, wireLabels } from "../../base/dns/name.ts";
import { LIMITS } from "../../base/limits.ts";
import { addressBytes, addressText } from "../../base/model/address.ts";
import { type Behaviour, STRICT_BEHAVIOUR } from "../../base/model/behaviour.ts";
import { LOCAL_SOURCE } from "../../base/model/local-source.ts";
import { StoredName } from "../../base/model/label-table.ts";
import {
  DENIED,
  FOUND,
  MISS,
  NameSearch,
  type OwnName,
  type QuestionName,
  type ReverseName,
  type VisibleNames,
} from "../../base/model/visible-names.ts";
import type { DockerNames } from "../../container/names/docker/docker-names.ts";
import { SLOT, type SwarmLists, TASKS, listedNames } from "./swarm-lists.ts";

/** A swarm network of the container. */
export interface SwarmNetwork {
  readonly id: string;
  readonly name: string;
  readonly suffixFolded: Uint8Array | undefined;
  readonly subnets: readonly string[];
}

/** The first engines that answer each query, and whose DNS library refuses to forward a guarded one. */
const GUARDED_MAJOR_MIN = 24;
/**
 * The first engines that answer AAAA of a name without an IPv6 address themselves. Older ones forward it; no engine up to now
 * has an IPv6 address of a swarm's name, so there is nothing to ask them for.
 */
const IPV6_MAJOR_MIN = 28;
/** Of what these names and addresses are, for people. */
const WHOSE = "the swarm";

export interface SwarmNamesParts {
  readonly networks: readonly SwarmNetwork[];
  readonly lists: SwarmLists;
  /** The names of containers on this engine, for reverse names. */
  readonly local: DockerNames;
  /** The engine's major version, as it is now. */
  readonly engineVersion: () => number;
}

const ID = /^[a-z0-9]{25}$/;
const WHOLE_SLOT = new RegExp(`^${SLOT.source}$`);
const REVERSE_TREES = [
  { bytes: 4, suffix: wireLabels("in-addr.arpa") as Uint8Array },
  { bytes: 16, suffix: wireLabels("ip6.arpa") as Uint8Array },
];

/** A name without the name of the network that it may end with. */
interface ReadName {
  readonly text: string;
  readonly length: number;
  /** The networks that it may be on: one, if it names it. */
  readonly networks: readonly SwarmNetwork[];
  readonly isQualified: boolean;
}

export class SwarmNames implements VisibleNames {
  readonly places: readonly string[] = [];
  readonly kind = LOCAL_SOURCE.swarm;
  readonly denialSeconds = LIMITS.askedTtlSeconds;
  readonly #parts: SwarmNamesParts;
  readonly #subnets: readonly Subnet[];
  readonly #hasIPv6: boolean;

  constructor(parts: SwarmNamesParts) {
    this.#parts = parts;
    this.#subnets = parts.networks.flatMap(({ subnets }) => subnets.flatMap((text) => subnetOf(text) ?? []));
    this.#hasIPv6 = this.#subnets.some(({ address }) => address.length === 16);
  }

  find(name: QuestionName, search: NameSearch): number {
    if (name.labelCount === 0) return MISS;
    const read = this.#read(name);
    const { text, networks, isQualified } = read;
    const service = text.startsWith(TASKS) ? text.slice(TASKS.length) : text;
    if (!service.includes(".") || networks.some(({ id }) => this.#parts.lists.hasDotted(id, service)))
      return this.#ask(search, whole(name), this.#isService(networks, service), isQualified);
    const slot = text.slice(text.lastIndexOf(".") + 1);
    if (ID.test(slot) && text.split(".").length > 2) return this.#ask(search, whole(name), true, true);
    if (WHOLE_SLOT.test(slot)) return this.#findSlot(read, name, search);
    return isQualified ? this.#ask(search, whole(name), false, true) : MISS;
  }

  /** Only on request: the names of a container's networks, which Docker searches in another order, come first. */
  pointer(labels: Uint8Array, length: number, hash: number, behaviour: Behaviour): ReverseName | undefined {
    const local = this.#parts.local.pointer(labels, length, hash, behaviour);
    if (local !== undefined) return local;
    const address = addressOf(labels, length);
    if (address === undefined || !this.#subnets.some((subnet) => isIn(address, subnet))) return undefined;
    const suffix = REVERSE_TREES.find(({ bytes }) => bytes === address.length)?.suffix ?? new Uint8Array(0);
    return {
      target: undefined,
      dockerQuestion: {
        labels: Buffer.concat([labels.subarray(0, length), suffix]),
        kind: "address",
        hasIPv6: false,
        isGuarded: this.#isGuarded,
        isOnlyHere: true,
        isDenied: this.#isTaken(address),
        whose: WHOSE,
      },
    };
  }

  /**
   * Whether the swarm has the address, or may have it: the engine lists no IPv6 addresses, and a network that is new not at once.
   */
  #isTaken(address: Uint8Array): boolean {
    const { networks, lists } = this.#parts;
    if (address.length === 16) return true;
    const text = addressText(address);
    return networks.some(({ id }) => !lists.has(id) || lists.placeOf(id, text) !== undefined);
  }

  /** What the engine reports of its own containers is listed with their networks. */
  *list(): Iterable<OwnName> {
    for (const { id, name: network } of this.#parts.networks)
      for (const service of this.#parts.lists.of(id).services)
        for (const named of listedNames(service, network)) if (!this.#isLocal(named, network)) yield named;
  }

  /** Whether a container of this engine, and no other, has the name on the network. */
  #isLocal({ name, v4, v6 }: OwnName, network: string): boolean {
    const labels = wireLabels(`${name}.${network}`);
    const search = new NameSearch(STRICT_BEHAVIOUR);
    if (labels === undefined || this.#parts.local.find(new StoredName(labels), search) !== FOUND) return false;
    return Buffer.concat([search.addresses.v4, search.addresses.v6]).equals(Buffer.concat([v4, v6]));
  }

  /** SERVICE.SLOT, which Docker does not have: the task that is in the slot now. */
  #findSlot({ text, networks, isQualified, length }: ReadName, name: QuestionName, search: NameSearch): number {
    const { lists } = this.#parts;
    const service = text.slice(0, text.lastIndexOf("."));
    if (!this.#isService(networks, service)) return isQualified ? this.#ask(search, whole(name), false, true) : MISS;
    for (const { id } of networks) {
      const task = lists.taskIn(id, text);
      const labels = task === undefined ? undefined : wireLabels(task);
      if (labels === undefined) continue;
      search.trace?.record("names", `"${text}" is the task "${task}" by the engine's list`);
      const suffix = name.folded.subarray(length, name.foldedLength);
      return this.#ask(search, Buffer.concat([labels, suffix]), true, true, id);
    }
    for (const { id } of networks) lists.onWanted(id);
    search.trace?.record("names", `the service "${service}" has no task in this slot`);
    return DENIED;
  }

  #ask(search: NameSearch, labels: Uint8Array, isDenied: boolean, isOnlyHere: boolean, wanted?: string): number {
    // The list that a slot was read from may be old.
    if (wanted !== undefined) this.#parts.lists.onWanted(wanted);
    const hasIPv6 = this.#hasIPv6 && this.#parts.engineVersion() >= IPV6_MAJOR_MIN;
    const isGuarded = this.#isGuarded;
    return search.onlyDocker({ labels, kind: "name", hasIPv6, isGuarded, isOnlyHere, isDenied, whose: WHOSE });
  }

  get #isGuarded(): boolean {
    return this.#parts.engineVersion() >= GUARDED_MAJOR_MIN;
  }

  #isService(networks: readonly SwarmNetwork[], name: string): boolean {
    return networks.some(({ id }) => this.#parts.lists.isService(id, name));
  }

  #read({ folded, foldedLength, labelCount, lengthOf }: QuestionName): ReadName {
    const { networks } = this.#parts;
    for (let labels = labelCount - 1; labels > 0; labels--) {
      const length = lengthOf[labels] as number;
      const own = networks.filter(
        ({ suffixFolded: suffix }) =>
          suffix?.length === foldedLength - length && sameBytes(folded, length, suffix, 0, suffix.length),
      );
      if (own.length > 0) return { text: presentation(folded, 0, length), length, networks: own, isQualified: true };
    }
    return { text: presentation(folded, 0, foldedLength), length: foldedLength, networks, isQualified: false };
  }
}

/** A copy: the next question is read into the same memory, while this one waits for Docker's resolver. */
function whole({ folded, foldedLength }: QuestionName): Uint8Array {
  return Uint8Array.from(folded.subarray(0, foldedLength));
}

interface Subnet {
  readonly address: Uint8Array;
  readonly bits: number;
}

function subnetOf(text: string): Subnet | undefined {
  const [base = "", length = ""] = text.split("/");
  const address = addressBytes(base);
  const bits = Number(length);
  return address !== undefined && length !== "" && bits > 0 && bits <= address.length * 8
    ? { address, bits }
    : undefined;
}

function isIn(address: Uint8Array, { address: base, bits }: Subnet): boolean {
  if (base.length !== address.length) return false;
  return address.every((byte, index) => {
    const left = Math.min(8, Math.max(0, bits - index * 8));
    const mask = (0xff00 >> left) & 0xff;
    return (byte & mask) === ((base[index] as number) & mask);
  });
}

/** The address of the labels below in-addr.arpa or ip6.arpa. */
function addressOf(labels: Uint8Array, length: number): Uint8Array | undefined {
  const parts = presentation(labels, 0, length).split(".").toReversed();
  if (parts.length === 4) return addressBytes(parts.join("."));
  if (parts.length !== 32 || !parts.every((part) => /^[0-9a-f]$/.test(part))) return undefined;
  return Uint8Array.from(Buffer.from(parts.join(""), "hex"));
}
