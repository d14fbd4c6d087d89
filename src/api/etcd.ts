/**
 * EtcdReport: the connection to etcd and what was read there, as part of the status.
 */
export interface EtcdReport {
  /** Whether the names are those of etcd, the last known ones, or none that may be answered. */
  readonly state: "current" | "last-known" | "unavailable";
  /** Why they are not current; null if they are. */
  readonly code: string | null;
  readonly reason: string | null;
  readonly remedy: string | null;
  /** Since when they are not confirmed. */
  readonly staleSeconds: number | null;
  readonly members: readonly EtcdMemberReport[];
  readonly zones: readonly string[];
  readonly prefix: string;
  readonly revision: number | null;
  /** What etcd warns of, such as NOSPACE. */
  readonly alarms: readonly string[];
  /** How often all keys were listed, and how often a stream of changes ended. */
  readonly lists: number;
  readonly reconnects: number;
  readonly records: number;
  /** Left out because there are too many. */
  readonly refused: number;
  /** Outside of all zones. */
  readonly ignored: number;
  /** Not readable; the first of them with the reason. */
  readonly skipped: number;
  readonly problems: readonly { readonly key: string; readonly problem: string }[];
}

interface EtcdMemberReport {
  readonly endpoint: string;
  readonly isCurrent: boolean;
  /** Why the last request to it failed. */
  readonly reason: string | null;
}
