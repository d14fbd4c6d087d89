/**
 * VisibleNames: what one container may see of one name source. The source fills it and the query side reads it. How a
 * name is interpreted (links, NAME.NETWORK, zones) is up to the source. A view has one for each source, in order of
 * precedence: the first that has the name, or denies it, ends the search.
 *
 * Lookups use wire labels and their hashes, which parsing the question yields, so a lookup allocates no object and no
 * string.
 */
import type { Behaviour } from "./behaviour.ts";
import type { LocalSource } from "./local-source.ts";

/** The name in a question. */
export interface QuestionName {
  /** In lower case, without a terminating zero; only the first `foldedLength` bytes are valid. */
  readonly folded: Uint8Array;
  readonly foldedLength: number;
  readonly labelCount: number;
  /** The length of the first n labels in bytes, and their hash; index 0 is the empty name. */
  readonly lengthOf: Uint8Array;
  readonly hashOf: Int32Array;
  /** The name with its letter case preserved, and its offset. */
  readonly spelled: Uint8Array;
  readonly spelledAt: number;
}

/** The addresses of a name: those of all containers with that name, concatenated. */
export interface NameAddresses {
  readonly v4: Uint8Array;
  readonly v6: Uint8Array;
  /** How many containers are left out because of their health. */
  readonly leftOut?: number;
  /** Undefined for the TTL of container names. */
  readonly ttlSeconds?: number | undefined;
  /** The addresses are answered in this order. */
  readonly isSorted?: boolean;
}

/** The target of a PTR record. */
export interface ReverseName {
  /** The name in wire format, with its terminating zero; undefined where it is too long for that. */
  readonly target: Uint8Array | undefined;
  /** Undefined for the TTL of container names. */
  readonly ttlSeconds?: number | undefined;
  /** The name expires by itself, so the kernel may not repeat the answer. */
  readonly isTimed?: boolean;
  /** Set if only Docker's resolver knows whose address it is; there is no target then. */
  readonly dockerQuestion?: DockerQuestion;
}

/** A zone that dns11 answers for. */
export interface ZoneAuthority {
  /** Its name in wire format, with the terminating zero, and the data of its SOA record. */
  readonly origin: Uint8Array;
  readonly soa: Uint8Array;
}

/** A record of another name than the queried one. */
export interface OwnedRecord {
  /** It is in wire format, with the terminating zero. */
  readonly owner: Uint8Array;
  readonly type: number;
  readonly data: Uint8Array;
}

/** The records of a name: all that it has. Other types are empty and never forwarded. */
export interface NameRecords {
  /** Undefined for the TTL of container names. */
  readonly ttlSeconds: number | undefined;
  /** The data of its records by type, in wire format with names uncompressed. */
  readonly sets: ReadonlyMap<number, readonly Uint8Array[]>;
  /** The name that its CNAME points to, for all types that it has no records of. */
  readonly alias: QuestionName | undefined;
  /** It has the addresses of these names, as the client resolves them. */
  readonly containers: readonly QuestionName[];
  /** The zone that it is in, for names of the service schema. */
  readonly zone?: ZoneAuthority;
  /** There is no such name in that zone. */
  readonly isMissing?: boolean;
  /** It is not known whether there is such a name: the query fails. */
  readonly isUnavailable?: boolean;
  /** Addresses are answered in this order. */
  readonly isSorted?: boolean;
  /** Another machine has published some of it. */
  readonly isForeign?: boolean;
  /** The addresses of the names that its records of a type point to. */
  readonly additional?: (type: number) => readonly OwnedRecord[];
}

/**
 * The result of a lookup: unknown; found; does not exist anywhere, so that the search ends; has records of its own; only Docker's resolver
 * knows.
 */
export const MISS = 0;
export const FOUND = 1;
export const DENIED = 2;
export const RECORDS = 3;
export const ONLY_DOCKER = 4;

/** Records the steps of a search, to explain a query. The step that ends the search is recorded last. */
export interface NamesTrace {
  record(layer: "links" | "names", why: string): void;
}

const NOTHING: NameAddresses = { v4: new Uint8Array(0), v6: new Uint8Array(0) };

/** One search through the sources, and its result; one object is reused for all questions. */
export class NameSearch {
  readonly behaviour: Behaviour;
  trace: NamesTrace | undefined;
  addresses: NameAddresses = NOTHING;
  /** Set with the result RECORDS. */
  records: NameRecords | undefined;
  /** Set with the result ONLY_DOCKER. */
  dockerQuestion: DockerQuestion | undefined;
  /** No upstream has such a name. Otherwise an upstream may have it, with other records. */
  isLocalOnly = false;
  /** The answer expires by itself, so the kernel may not repeat it. */
  isTimed = false;

  constructor(behaviour: Behaviour) {
    this.behaviour = behaviour;
  }

  /** `isTimed`: the answer expires by itself, though the names stay as they are. */
  found(named: NameAddresses, isOnlyHere: boolean, isTimed = false): typeof FOUND {
    this.addresses = named;
    this.isLocalOnly = isOnlyHere;
    this.isTimed = isTimed;
    return FOUND;
  }

  onlyDocker(question: DockerQuestion): typeof ONLY_DOCKER {
    this.dockerQuestion = question;
    return ONLY_DOCKER;
  }

  withRecords(records: NameRecords, isTimed = false): typeof RECORDS {
    this.records = records;
    this.isTimed = isTimed;
    return RECORDS;
  }
}

/** A name that no network of the container has, for lists of names, and the containers that it leads to. */
export interface OwnName extends NameAddresses {
  /** In lower case; a wildcard begins with "*.". */
  readonly name: string;
  /** Where it comes from, as text for people. */
  readonly source: string;
  /** Set if only this network has it. */
  readonly network?: string;
  /** What it has beside addresses, as text for people. */
  readonly records?: readonly string[];
  /** The ids of these containers. */
  readonly holders: readonly string[];
  /** The entry that a search finds, unless another name of the source comes first; undefined if no search finds it. */
  readonly entry?: NameRecords;
}

export interface VisibleNames {
  /** Where it searches, in order, as text for people. */
  readonly places: readonly string[];
  readonly kind: LocalSource;
  /** How long clients may keep that it denies a name; undefined for as long as any name of ours. */
  readonly denialSeconds?: number;
  /** Domains that it has all names of: none below them is forwarded. */
  readonly zones?: readonly string[];
  /** MISS, FOUND, RECORDS or ONLY_DOCKER (the result is in `search`), or DENIED. */
  find(name: QuestionName, search: NameSearch): number;
  /** Looks up lower-case labels below in-addr.arpa or ip6.arpa, with their hash. */
  pointer(labels: Uint8Array, length: number, hash: number, behaviour: Behaviour): ReverseName | undefined;
  /** Names that no network of the container has, if the source lists them; also those that a switch turns off. */
  list?(): Iterable<OwnName>;
}

/**
 * What to ask of Docker's own resolver: a name that only it knows, because another machine may hold it. The container side decides which
 * names these are; the query side asks.
 */
export interface DockerQuestion {
  /** Wire labels without the terminating zero: the name as that resolver knows it. */
  readonly labels: Uint8Array;
  /** "address" is a question for the reverse name of an address. */
  readonly kind: "name" | "address";
  /** Names of its network may have IPv6 addresses. */
  readonly hasIPv6: boolean;
  /** The query is one that Docker's resolver answers, but cannot forward. */
  readonly isGuarded: boolean;
  /** No upstream has such a name, so its other types are empty and not forwarded. */
  readonly isOnlyHere: boolean;
  /** Where Docker's resolver does not know it, nobody has it. */
  readonly isDenied: boolean;
  /** Of what it is a name or an address, for people: "the swarm", for example. */
  readonly whose: string;
}

export type DockerAnswer =
  | {
      readonly kind: "known";
      /** Concatenated addresses; of a reverse name none. */
      readonly v4: Uint8Array;
      readonly v6: Uint8Array;
      /** A reverse name has its target here: a name in wire format, with its terminating zero. */
      readonly target: Uint8Array | undefined;
      /** Docker's resolver does not answer now; this is what it answered last. */
      readonly isLast?: boolean;
    }
  /** Docker's resolver has no such name. */
  | { readonly kind: "unknown" }
  /**
   * Docker's resolver does not answer, for a reason in words. `isOfName`: it may be silent about this name only, because it has
   * forwarded it and waits.
   */
  | { readonly kind: "away"; readonly reason: string; readonly isOfName?: boolean };

/** Why a name is not forwarded that may be of this. */
export interface HeldName extends Pick<DockerQuestion, "whose"> {
  readonly reason: string;
}

/** What Docker's resolver answered one client. */
export interface DockerAnswers {
  /** Undefined if it must be asked. */
  find(question: DockerQuestion): DockerAnswer | undefined;
}

/** The key under which the answer of Docker's resolver is kept. */
export function dockerQuestionKey({ kind, labels }: Pick<DockerQuestion, "kind" | "labels">): string {
  return `${kind === "name" ? "n" : "a"}${Buffer.from(labels).toString("latin1")}`;
}
