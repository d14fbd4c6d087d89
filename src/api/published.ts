/**
 * PublishedReport: what other machines know of one container through etcd, or why they do not, as part of its status.
 */
/** Reasons, by their code, that are as they are meant to be, as often as not: no mistake. */
export const DELIBERATE_REASONS: ReadonlySet<string | null> = new Set(["PUBLISH_NO_PORT", "PUBLISH_OTHER_ADDRESS"]);

export interface PublishedReport {
  /** `pending`: not written yet; `unpublished`: others do not have it. */
  readonly state: "published" | "pending" | "unpublished";
  /** Why it is not published, what to do about it; null if it is, or if that is a matter of time. */
  readonly code: string | null;
  readonly reason: string | null;
  readonly remedy: string | null;
  /** The zone that the machines share. */
  readonly zone: string;
  /** Its key in etcd, and the names that other machines resolve: first that of its service, then its own. */
  readonly key: string | null;
  readonly names: readonly string[];
  /** Others reach it at these: addresses, and ports as NAME=PORT/PROTOCOL. */
  readonly addresses: readonly string[];
  readonly ports: readonly string[];
}
