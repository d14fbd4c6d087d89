/**
 * DockerAsk: a name that only Docker's own resolver knows, because another machine of a swarm may hold it, and what that
 * resolver answered. The container side decides which names these are; the query side asks.
 */

/** What to ask of Docker's resolver. */
export interface DockerAsk {
  /** Wire labels without the terminating zero: the name as that resolver knows it. */
  readonly labels: Uint8Array;
  /** An address is the reverse name of one. */
  readonly kind: "name" | "address";
  /** Names of its network may have IPv6 addresses. */
  readonly hasIPv6: boolean;
  /** The query is one that Docker's resolver answers, but cannot forward. */
  readonly isGuarded: boolean;
  /** No upstream has such a name, so its other types are empty and not forwarded. */
  readonly isOnlyHere: boolean;
  /** It is known to be the swarm's: unknown to Docker's resolver, it has no healthy task and is denied. */
  readonly isDenied: boolean;
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

/** What Docker's resolver answered one client. */
export interface DockerAnswers {
  /** Undefined if it must be asked. */
  find(ask: DockerAsk): DockerAnswer | undefined;
}

/** How an answer of Docker's resolver is kept. */
export function askKey({ kind, labels }: Pick<DockerAsk, "kind" | "labels">): string {
  return `${kind === "name" ? "n" : "a"}${Buffer.from(labels).toString("latin1")}`;
}
