/**
 * Names: what is asked of a running dns11 about a name in a container, and what it tells: a lookup shows what a program
 * in there gets, an explanation why dns11 answers what it does.
 */
import type { ReplyText } from "../base/model/reply-text.ts";
import type { UpstreamEvent, StepLayer } from "../base/model/step.ts";

export interface ContainerRef {
  readonly id: string;
  readonly name: string;
  /** In whose namespace it is, where that is another's. */
  readonly sharedWith?: string;
}

interface NameRef {
  readonly name: string;
  readonly type: string;
}

/** A name to be asked for, and where. */
export interface NameRequest {
  /** A container's name, or the beginning of its id. */
  readonly container: string;
  /** An address stands for the name that belongs to it, where no type is said. */
  readonly name: string;
  readonly type?: string | undefined;
}

export interface LookupRequest extends NameRequest {
  readonly tcp?: boolean | undefined;
  /** The search list of the container's resolv.conf counts, as it does for programs in there. */
  readonly search?: boolean | undefined;
}

export interface LookupAttempt {
  readonly name: string;
  readonly server: string;
  readonly protocol: "udp" | "tcp";
  readonly ms: number;
  /** The response code, or why there was none. */
  readonly outcome: string;
}

/** `rcode` is null where nobody answered. */
export type Lookup = {
  readonly container: ContainerRef;
  readonly question: NameRef;
  readonly server: string | null;
  readonly protocol: "udp" | "tcp" | null;
  /** From the first query to the answer. */
  readonly ms: number;
  readonly attempts: readonly LookupAttempt[];
  readonly rcode: string | null;
} & Omit<ReplyText, "rcode">;

export interface ExplainedStep {
  readonly layer: StepLayer;
  readonly isAnswer: boolean;
  readonly why: string;
  /** What servers were asked and did, from the beginning of the query. */
  readonly events?: readonly UpstreamEvent[];
}

export interface Explanation {
  readonly container: ContainerRef;
  readonly question: NameRef;
  /** In the order in which they are searched. */
  readonly networks: readonly string[];
  readonly steps: readonly ExplainedStep[];
  /** The layer that the answer came from. */
  readonly answeredBy: StepLayer | null;
  readonly server: string | null;
  readonly ms: number;
  /** null where nothing was answered. */
  readonly reply: ReplyText | null;
  readonly hints: readonly string[];
}
