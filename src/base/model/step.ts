/**
 * Step: one station of a query's way, told in words to whoever has a query explained.
 */
export type StepLayer = "links" | "names" | "reverse" | "special" | "route" | "cache" | "servers";

export interface Step {
  readonly layer: StepLayer;
  /** Whether the answer came from here. */
  readonly isAnswer: boolean;
  readonly why: string;
  /** What servers were asked and did; times are on the way's own clock. */
  readonly events?: readonly UpstreamEvent[];
}

/** What a server was asked or did, and when. */
export interface UpstreamEvent {
  readonly atMs: number;
  /** Undefined for what is about all of them. */
  readonly server: string | undefined;
  readonly what: string;
}
