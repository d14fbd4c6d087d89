/**
 * Names: requests about a name in a container, and their results. A lookup returns the reply that a program in the container
 * gets; an explanation returns how dns11 resolves the name.
 */
import type { RecordText, ReplyText } from "../base/model/reply-text.ts";
import type { Cause } from "./causes.ts";
import type { PublishedReport } from "./etcd.ts";
import type { UpstreamEvent, StepLayer } from "../base/model/query-record.ts";

export interface ContainerRef {
  readonly id: string;
  readonly name: string;
  /** The container whose network namespace it shares, if any. */
  readonly sharedWith?: string;
}

interface NameRef {
  readonly name: string;
  readonly type: string;
}

/** A name to resolve, and the container. */
export interface NameRequest {
  /** The name of a container, or the beginning of its ID. */
  readonly container: string;
  /** An IP address without a type means a reverse lookup. */
  readonly name: string;
  readonly type?: string | undefined;
}

export interface LookupRequest extends NameRequest {
  readonly tcp?: boolean | undefined;
  /** Whether to apply the search list of the container's resolv.conf, as programs in it do. */
  readonly search?: boolean | undefined;
}

export interface LookupAttempt {
  /** With a domain of the search list, if one is applied. */
  readonly name: string;
  readonly server: string;
  readonly protocol: "udp" | "tcp";
  readonly ms: number;
  /** The response code, or the reason why there was no reply. */
  readonly outcome: string;
}

/** `rcode` is null if there was no reply. */
export type Lookup = {
  readonly container: ContainerRef;
  readonly question: NameRef;
  /** Where the reply came from, and how; null if there was none. */
  readonly server: string | null;
  readonly protocol: "udp" | "tcp" | null;
  /** The time from the first query to the reply. */
  readonly ms: number;
  readonly attempts: readonly LookupAttempt[];
  readonly rcode: string | null;
  /** The containers that have the addresses of the answer. */
  readonly owners: readonly AddressOwner[];
} & Omit<ReplyText, "rcode">;

/** The records that programs get from a reply: aliases alone, which may end at a name that does not exist, are none. */
export function recordsFor({ rcode, answers }: Pick<Lookup, "rcode" | "answers">, type: string): readonly RecordText[] {
  if (rcode !== "NOERROR") return [];
  return type === "ANY" ? answers : answers.filter((each) => each.type === type);
}

export interface ExplainedStep {
  readonly layer: StepLayer;
  readonly isAnswer: boolean;
  /** For people: what was found there, or why not. */
  readonly why: string;
  /** The upstream queries and their results, with times relative to the start. */
  readonly events?: readonly UpstreamEvent[];
}

export interface Explanation {
  readonly container: ContainerRef;
  readonly question: NameRef;
  /** The order is that of the search. */
  readonly networks: readonly string[];
  readonly steps: readonly ExplainedStep[];
  /** The layer that answered. */
  readonly answeredBy: StepLayer | null;
  /** The upstream server that replied, if any. */
  readonly server: string | null;
  readonly ms: number;
  /** null if there was no reply. */
  readonly reply: ReplyText | null;
  /** The containers that have the addresses of the answer. */
  readonly owners: readonly AddressOwner[];
  /** What AAAA gives where A was asked for, and A for AAAA; a null `rcode` means no reply. Missing for other types. */
  readonly otherFamily?:
    | { readonly type: string; readonly rcode: string | null; readonly addresses: readonly string[] }
    | undefined;
  /**
   * What programs get from a file of the container instead of the reply; missing if they get the reply. No addresses: the file keeps them
   * from querying, and no other one has the name.
   */
  readonly fromFile?: { readonly path: string; readonly addresses: readonly string[] };
  /** What programs get for another name of their search list, which they query first; missing if they get the reply. */
  readonly fromSearch?: { readonly name: string; readonly addresses: readonly string[] };
  /** What other machines know through etcd of those that are on this one; missing where nothing is published. */
  readonly published?: readonly (PublishedReport & { readonly container: string })[];
  /**
   * null if dns11 answered. Otherwise why it did not: the reply is from the servers of the container's resolv.conf, and
   * there are no steps.
   */
  readonly notServed: string | null;
  /** null if a query was sent. Otherwise why none could be sent: only the causes are known. */
  readonly notQueried: string | null;
  /** Why it fails, or what is surprising about the answer; the most likely cause first. */
  readonly causes: readonly Cause[];
  /** The same as text. */
  readonly hints: readonly string[];
}

/** An address of an answer, and the container that has it: in explanations, lookups and queries. */
export interface AddressOwner {
  readonly address: string;
  /** A virtual address has the swarm service here. */
  readonly container: string;
  readonly network: string;
  /** Its Compose project and service, if any. */
  readonly project: string | null;
  readonly service: string | null;
  /** It is not on this engine: where it is in the swarm, as the engine listed it last. */
  readonly swarm?: SwarmPlace;
}

/** Whose an address on a swarm network is, by the engine's list, which may be seconds old. */
export interface SwarmPlace {
  readonly network: string;
  /** Null for a container that was attached by hand. */
  readonly service: string | null;
  /** SERVICE.SLOT.ID of a task; the name of a container; of a virtual address its service. */
  readonly name: string;
  /** The machine that has the address; null for a virtual address, which all have. */
  readonly machine: string | null;
  /** The service's address; null if it has none (endpoint mode dnsrr). */
  readonly virtualAddress: string | null;
  /** The running, healthy tasks of the service, and the machines that they are on. */
  readonly tasks: number;
  readonly machines: number;
}

/** A container that has a name. */
export interface NameOwner {
  readonly container: string;
  readonly containerId: string;
  readonly project: string | null;
  readonly service: string | null;
  /** A container that is not running has none. */
  readonly addresses: readonly string[];
}

export interface ListedName {
  /** It is in lower case. */
  readonly name: string;
  /** Where it is known; null for a container without a network with names, and for an alias of a link. */
  readonly network: string | null;
  /** Where it comes from, if it is no name that Docker gives a container on that network, such as a zone. */
  readonly source?: string;
  /** What is answered instead, in the state `shadowed`. */
  readonly shadowedBy?: string;
  /** What a declared name has beside addresses: at most 8 records. */
  readonly records?: readonly string[];
  /**
   * `resolves`: to these addresses. `other-network`: the container asked for is not on this network. `not-running`: all
   * containers with the name have stopped. `no-network`: the container is on no network with names. `shadowed`: another
   * source with the name, or another container, comes first.
   */
  readonly state: "resolves" | "shadowed" | "other-network" | "not-running" | "no-network";
  readonly addresses: readonly string[];
  readonly owners: readonly NameOwner[];
  /** It is the beginning of the container's ID, which Docker makes a name as well. */
  readonly isId: boolean;
}

/**
 * The names of this engine's containers, as returned by `GET /v1/names`: all of them by network, or as one container
 * resolves them.
 */
export interface NameList {
  /** null for all names of the engine. */
  readonly container: ContainerRef | null;
  /** The container's networks, in search order; all networks with names without a container. */
  readonly networks: readonly string[];
  /** Sorted by name. */
  readonly names: readonly ListedName[];
  /** Names that are left out, because there are too many. */
  readonly omitted: number;
}
