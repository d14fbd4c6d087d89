/**
 * FlightPlan: what a flight is given to do, by whom it is helped, and what it ends with.
 */
import type { ForwardPolicy } from "../../base/model/upstream-policy.ts";
import type { Server } from "../../base/model/view.ts";
import type { Dial } from "../client/client.ts";
import type { Meter } from "../record/meter.ts";
import type { Nameserver } from "../upstream/nameserver.ts";
import type { StreamPool } from "../upstream/stream-pool.ts";
import type { Deadlines } from "./deadlines.ts";

/** A flight, for whoever it tells something. */
interface RunningQuery {
  readonly startMs: number;
}

export type UpstreamResult =
  | {
      readonly kind: "reply";
      readonly message: Buffer;
      readonly rcode: number;
      readonly isWhole: boolean;
      readonly server: Server;
      /** It was asked without EDNS, so that what only comes with that is missing. */
      readonly isPlain: boolean;
      /** What it lacks is for want of something that is the client's alone. */
      readonly isOwnWant: boolean;
    }
  | {
      readonly kind: "failed";
      readonly failures: readonly ServerFailure[];
      readonly wasSilent: boolean;
      /** What a server itself said of why, as an option. */
      readonly told: Buffer | undefined;
      readonly isOwnWant: boolean;
    };

/** What one server did instead of answering. */
export interface ServerFailure {
  readonly server: string;
  readonly reason: string;
}

export interface UpstreamQueryPlan {
  readonly nameservers: readonly Nameserver[];
  /** Of these, those that lead back to who asks. */
  readonly looping: readonly Nameserver[];
  /** Who asks: the number of its client. */
  readonly clientNumber: number;
  /** When whoever waits first came. */
  readonly arrivedMs: number;
  readonly policy: ForwardPolicy;
  readonly hedges: boolean;
  readonly fetchesWhole: boolean;
  /** Replies are read strictly, and scrubbed. */
  readonly checksReplies: boolean;
  readonly usesTcp: boolean;
  /** It is answered by any number of messages, so that it needs a connection of its own. */
  readonly isTransfer: boolean;
  /** When whoever asked first has waited long enough. */
  readonly endMs: number;
  readonly dial: Dial;
  /** The connections to a server that whoever asked first has. */
  readonly streamsTo: (nameserver: Nameserver) => Pick<StreamPool, "ask" | "openDedicated">;
  /** The query; the flight writes ids into it. */
  readonly message: Buffer;
  readonly questionEnd: number;
  /** The EDNS in it is ours, and may be left out for a server that takes none. */
  readonly isOptOurs: boolean;
  /** With which of the servers to begin, where they take turns. */
  readonly turn: number;
}

/** The same for all flights: there may be thousands in the air, and each is no more than what is its own. */
export interface UpstreamQueryHooks {
  readonly now: () => number;
  readonly random: () => number;
  readonly deadlines: Deadlines;
  readonly meter?: Pick<Meter, "recordReply" | "recordFailure"> | undefined;
  readonly onResult: (flight: RunningQuery, landing: UpstreamResult) => void;
  /** It takes so long that an old reply would do. */
  readonly onLate: (flight: RunningQuery) => void;
}
