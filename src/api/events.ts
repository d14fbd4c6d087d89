/**
 * Events: what happened to containers, networks, servers and dns11 itself, as returned by `GET /v1/events`: the last ones, or
 * each as it happens.
 */

export type EventKind =
  | "container-started"
  /** It ended with exit code 0, or because somebody stopped, killed or removed it. */
  | "container-stopped"
  /** It ended by itself with another exit code. */
  | "container-died"
  | "network-created"
  | "network-removed"
  /** A running container has joined or left a network. */
  | "network-joined"
  | "network-left"
  /** Its queries are answered by dns11. */
  | "attached"
  /** dns11 no longer answers a running container; Docker's resolver does. */
  | "handed-back"
  /** dns11 cannot serve the container; `detail` says why. */
  | "attach-failed"
  | "server-down"
  | "server-up"
  | "engine-lost"
  | "engine-connected"
  | "settings-reloaded";

export interface EventReport {
  /** Increases by one with each event. */
  readonly number: number;
  readonly time: string;
  readonly kind: EventKind;
  readonly container: string | null;
  readonly containerId: string | null;
  /** The Compose project and service of the container, or the project of the network. */
  readonly project: string | null;
  readonly service: string | null;
  readonly network: string | null;
  /** It is written as in `GET /v1/upstreams`. */
  readonly server: string | null;
  /** A reason, or what changed. */
  readonly detail: string | null;
  readonly exitCode: number | null;
}

/** The response without `follow`. */
export interface EventsReport {
  /** Oldest first. */
  readonly events: readonly EventReport[];
  /** How many events after `since` are no longer available. */
  readonly missed: number;
  /** The number of the last event, for the next `since`. */
  readonly last: number;
}
