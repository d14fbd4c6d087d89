/**
 * Names: what one container may see of one source of names. A source fills it and a query's way reads it; what a name
 * means there (links, a network's name behind a dot, a zone) is the source's own affair. A view holds one for each source,
 * in the order in which they count: the first that knows the name, or denies it, ends the search.
 *
 * Names are asked for by their wire labels and the hashes of these, which fall out while a question is read, so that a
 * lookup makes no object and no string.
 */
import type { Behaviour } from "./behaviour.ts";

/** A name as a question brings it. */
export interface QuestionName {
  /** In lower case, without the zero at its end; its first `foldedLength` bytes count. */
  readonly folded: Uint8Array;
  readonly foldedLength: number;
  readonly labelCount: number;
  /** After how many bytes the first n labels end, and their hash; index 0 is the empty name. */
  readonly lengthOf: Uint8Array;
  readonly hashOf: Int32Array;
  /** Where it stands in the letter case in which it was asked. */
  readonly spelled: Uint8Array;
  readonly spelledAt: number;
}

/** What a name stands for: all addresses of all who bear it, one after the other. */
export interface NameAddresses {
  readonly v4: Uint8Array;
  readonly v6: Uint8Array;
}

/** Where an address points back to. */
export interface ReverseName {
  /** The name on the wire, with its end; undefined where the wire has no room for it. */
  readonly target: Uint8Array | undefined;
}

/** What a source says of a name: nothing; that it is there; that it exists nowhere, and nobody else need be asked. */
export const MISS = 0;
export const FOUND = 1;
export const DENIED = 2;

/** Told what is looked for and found, while somebody has a question explained. Whatever ends the search is told last. */
export interface NamesTrace {
  record(layer: "links" | "names", why: string): void;
}

const NOTHING: NameAddresses = { v4: new Uint8Array(0), v6: new Uint8Array(0) };

/** One search through the sources, and what it has found; one object serves all questions. */
export class NameSearch {
  readonly behaviour: Behaviour;
  trace: NamesTrace | undefined;
  addresses: NameAddresses = NOTHING;
  /** Such a name exists nowhere else in the world. Another one may, with records of its own. */
  isLocalOnly = false;

  constructor(behaviour: Behaviour) {
    this.behaviour = behaviour;
  }

  found(named: NameAddresses, isOnlyHere: boolean): typeof FOUND {
    this.addresses = named;
    this.isLocalOnly = isOnlyHere;
    return FOUND;
  }
}

export interface VisibleNames {
  /** Where it looks, in its order, for people who want to know. */
  readonly places: readonly string[];
  /** MISS, FOUND (`search` holds what), or DENIED. */
  find(name: QuestionName, search: NameSearch): number;
  /** Looks up the labels below in-addr.arpa or ip6.arpa, in lower case and with their hash. */
  pointer(labels: Uint8Array, length: number, hash: number, behaviour: Behaviour): ReverseName | undefined;
}
