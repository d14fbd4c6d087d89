/**
 * Told: what a running dns11 answers to questions about itself and about names, as it goes over the control socket.
 */
import type { ReplyText } from "../model/reply-text.ts";
import type { FlightEvent, Layer } from "../query/trace.ts";

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
export interface NameOrder {
  /** A container's name, or the beginning of its id. */
  readonly container: string;
  /** An address stands for the name that belongs to it, where no type is said. */
  readonly name: string;
  readonly type?: string | undefined;
}

export interface LookupOrder extends NameOrder {
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
  readonly layer: Layer;
  readonly isAnswer: boolean;
  readonly why: string;
  /** What servers were asked and did, from the beginning of the query. */
  readonly events?: readonly FlightEvent[];
}

export interface Explanation {
  readonly container: ContainerRef;
  readonly question: NameRef;
  /** In the order in which they are searched. */
  readonly networks: readonly string[];
  readonly steps: readonly ExplainedStep[];
  /** The layer that the answer came from. */
  readonly answeredBy: Layer | null;
  readonly server: string | null;
  readonly ms: number;
  /** null where nothing was answered. */
  readonly reply: ReplyText | null;
  readonly hints: readonly string[];
}

/** For which names of which containers a server is asked. */
export interface UpstreamUse {
  /** "." for every name. */
  readonly domain: string;
  readonly by: string | null;
  readonly containers: readonly string[];
}

export interface Upstream {
  readonly server: string;
  readonly address: string;
  readonly port: number;
  /** Where it is asked from; "door" is Docker's own resolver behind us. */
  readonly from: "host" | "container" | "door";
  /** In whose namespace it is asked, where that is not the host's: there it is another server. */
  readonly container: string | null;
  readonly isBackup: boolean;
  readonly uses: readonly UpstreamUse[];
  /** "unknown" as long as it has not been asked, and where nothing is remembered. */
  readonly state: "up" | "down" | "unknown";
  readonly since: string | null;
  readonly reason: string | null;
  /** How long answers by UDP take, and how far from that they usually are. */
  readonly rttMs: number | null;
  readonly deviationMs: number | null;
  readonly counters: {
    readonly queries: number;
    readonly answers: number;
    /** Answers that help nobody: SERVFAIL, REFUSED, or what cannot be read. */
    readonly useless: number;
    readonly unreachable: number;
  } | null;
  /** false while it is asked without, for it could not read it. */
  readonly edns: boolean | null;
  readonly isLooping: boolean | null;
  /** When it is asked again although it led back to us. */
  readonly loopsUntil: string | null;
}

export interface UpstreamReport {
  /** Without the switch failover nothing is remembered of servers. */
  readonly isRemembering: boolean;
  readonly upstreams: readonly Upstream[];
}

export interface CacheOfContainer {
  /** null: containers that are gone, whose replies serve others. */
  readonly container: string | null;
  readonly entries: number;
  readonly bytes: number;
  /** Queries answered from what is kept, since it is attached. */
  readonly hits: number;
}

export interface CacheReport {
  readonly isCaching: boolean;
  readonly entries: number;
  readonly bytes: number;
  readonly bytesMax: number;
  readonly hits: number;
  readonly misses: number;
  readonly stale: number;
  /** Failures that were told again without asking anew. */
  readonly failures: number;
  readonly prefetches: number;
  readonly evictions: number;
  readonly containers: readonly CacheOfContainer[];
}

export interface FlushReport {
  readonly isCaching: boolean;
  readonly name: string | null;
  readonly replies: number;
  /** Questions on their way, whose replies will not be kept. */
  readonly inFlight: number;
}

export interface ReloadReport {
  readonly config: string;
  /** Each as `KEY: BEFORE -> NOW`. */
  readonly changed: readonly string[];
}
