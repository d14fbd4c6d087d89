/**
 * View: what one network namespace may know. It has the sources of names, in the order in which they count, and where
 * everything else goes. The registry makes a new one when any of that changes; the names themselves live in the tables of
 * their sources and are shared by all views.
 */
import type { VisibleNames } from "./visible-names.ts";

/** A nameserver, and the namespace it is dialled from: that pair, not the address alone, is a server. */
export interface Server {
  /** "docker": Docker's own resolver behind us, for containers whose list of servers no interface tells. */
  readonly from: "host" | "container" | "docker";
  readonly address: string;
  readonly port: number;
  /** Asked only when the servers before it cannot be reached at all: what stands behind a stub resolver. */
  readonly isBackup?: boolean;
}

/** Who is asked for the names below one suffix. */
export interface Route {
  /** Lower-case wire labels that a name ends with, and how many they are; none for every name. */
  readonly suffix: Uint8Array;
  readonly labelCount: number;
  /** In their order, those that this container may ask; without any, nobody can tell. */
  readonly servers: readonly Server[];
  /** Such names exist nowhere outside: they are denied here. */
  readonly isLocal: boolean;
  /** Who says so, in words. */
  readonly by?: string;
  /** Servers that are left out, because they are asked from the host and this container has no way outside. */
  readonly withheld?: readonly Server[];
}

/** Where a name goes that nobody here holds. */
export interface Upstreams {
  /** The longest suffix first; the last route has none, so that there is one for every name. */
  readonly routes: readonly Route[];
  /** Somebody set ndots: a dotless name is then completed by the client and never leaves. */
  readonly isNdotsSet: boolean;
}

export interface View {
  readonly names: readonly VisibleNames[];
  readonly upstreams: Upstreams;
  /** Whoever asks in there gives up sooner than others do. */
  readonly budgetMs?: number;
}
