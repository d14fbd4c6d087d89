/**
 * FailureRecord: a name, type and result that fails in one container, as its failure table stores it. Times are on the
 * clock of `performance.now`.
 */
export interface FailureRecord {
  /** It is in lower case and printable; null where names are hidden. */
  readonly name: string | null;
  readonly type: number;
  readonly rcode: number;
  /** Failures, and how many of them were steps of a lookup that then succeeded with another name. */
  readonly count: number;
  readonly steps: number;
  /** The last failure was such a step. */
  readonly isStepLast: boolean;
  /** Failures in the last minute, approximately. */
  readonly perMinute: number;
  readonly firstMs: number;
  readonly lastMs: number;
  /** The time at which the same name and type last resolved; undefined if it has not since the first failure. */
  readonly successMs: number | undefined;
  /** It has one label, or was known as a name on this engine when it first failed. */
  readonly isNear: boolean;
}
