/**
 * ClusterReport: the connection to the API of a Kubernetes cluster and what was read there, as part of the status.
 */
export interface ClusterReport {
  /** Whether the names are those of the cluster, the last known ones, or none that may be answered. */
  readonly state: "current" | "last-known" | "unavailable";
  /** Why they are not current; null if they are. */
  readonly code: string | null;
  readonly reason: string | null;
  readonly remedy: string | null;
  /** Since when they are not confirmed. */
  readonly staleSeconds: number | null;
  /** The URL of the API; null before it is known. */
  readonly server: string | null;
  readonly zone: string;
  readonly services: number;
  readonly endpoints: number;
  /** How often all objects were listed, and how often a stream of changes ended. */
  readonly lists: number;
  readonly reconnects: number;
  /** Objects that are left out because there are too many; and because they are not valid, the first with the reason. */
  readonly refused: number;
  readonly skipped: number;
  readonly problems: readonly { readonly key: string; readonly problem: string }[];
}
