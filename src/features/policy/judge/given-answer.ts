import type { QuestionName } from "../../../base/model/visible-names.ts";
import type { NamespacePolicy } from "./namespace-policy.ts";

/** An answer that a container is about to get. */
export interface GivenAnswer {
  readonly policy: NamespacePolicy;
  /** Each once, four or sixteen bytes, those of the IPv4 address where one is mapped. */
  readonly addresses: readonly Uint8Array[];
  /** They are those of a name of this machine: of containers on common networks, or the machine's own. */
  readonly isLocal: boolean;
  /** The name that was asked, and those that aliases in the answer lead to. */
  readonly names: readonly QuestionName[];
  /** The longest time that a client keeps one of them. */
  readonly ttlSeconds: number;
}

/**
 * Opens the addresses of an answer. Returns true if they are open already; otherwise it calls back once, later, with whether they
 * are. An answer whose addresses are not open becomes SERVFAIL.
 */
export type OpenAddresses = (answer: GivenAnswer, onOpen: (isOpen: boolean) => void) => boolean;
