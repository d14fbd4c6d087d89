/**
 * Step: one step of a query's resolution, for `dns11 explain`.
 */
export type StepLayer =
  | "policy"
  | "rules"
  | "links"
  | "names"
  | "reverse"
  | "special"
  | "route"
  | "cache"
  | "servers"
  | "filter";

export interface Step {
  readonly layer: StepLayer;
  /** Whether this step gave the answer. */
  readonly isAnswer: boolean;
  readonly why: string;
  /** What upstreams were sent and did; times are on the query's own clock. */
  readonly events?: readonly UpstreamEvent[];
}

/** What an upstream was sent or did, and when. */
export interface UpstreamEvent {
  readonly atMs: number;
  /** undefined for what concerns all of them. */
  readonly server: string | undefined;
  readonly what: string;
}
