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
  /**
   * The number of keys that are left out because there are too many; and whether there are more, which were not read.
   */
  readonly refused: number;
  readonly isCut: boolean;
  /** The number of keys outside of all zones. */
  readonly ignored: number;
  /** The number of keys that cannot be read; the first of them with the reason. */
  readonly skipped: number;
  readonly problems: readonly { readonly key: string; readonly problem: string }[];
  /** What other machines publish, and what this one does; null where nothing is published. */
  readonly machines: MachinesReport | null;
  readonly publishing: PublishReport | null;
}

export interface MachinesReport {
  /** Other machines that publish containers, and how many containers. */
  readonly machines: number;
  readonly members: number;
  readonly refused: number;
  /** The prefixes of which not all keys were read, because there are too many. */
  readonly cut: readonly string[];
  readonly skipped: number;
  readonly problems: readonly { readonly key: string; readonly problem: string }[];
}

export interface PublishReport {
  /** `behind`: not everything is written; `unpublished`: the lease is not held, so nothing may be there. */
  readonly state: "current" | "behind" | "unpublished";
  /** Why it is not current; null if it is, or if that is a matter of time. */
  readonly code: string | null;
  readonly reason: string | null;
  readonly remedy: string | null;
  readonly machine: string;
  /** Others reach published ports at these. */
  readonly addresses: readonly string[];
  /** The first part of all its keys. */
  readonly root: string;
  readonly lease: string | null;
  /** Containers that are to be published, and members of services that others do not reach. */
  readonly records: number;
  readonly leftOut: number;
  /** Keys in etcd; still to be written; of other writers. */
  readonly written: number;
  readonly pending: number;
  readonly foreign: number;
  readonly transactions: number;
  readonly writes: number;
  readonly failures: number;
  /** How often the lease was lost. */
  readonly losses: number;
}

interface EtcdMemberReport {
  readonly endpoint: string;
  readonly isCurrent: boolean;
  /** Why the last request to it failed. */
  readonly reason: string | null;
}

const SHOWN = 3;

interface Skipped {
  readonly skipped: number;
  /** Those of the first. */
  readonly problems: readonly { readonly key: string; readonly problem: string }[];
}

/** The keys of a store that could not be read, as text for a finding: the first of them, each with its reason. */
export function skippedKeys({ skipped, problems }: Skipped): string {
  const shown = problems.slice(0, SHOWN).map(({ key, problem }) => `${key}: ${problem}`);
  const more = skipped - shown.length;
  return [...shown, ...(more > 0 ? [`${more} more`] : [])].join("; ");
}

/**
 * What other machines know of one container through etcd, or why they do not, as part of its status.
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
