/**
 * RecentCountsReport: the queries of a container in the last minute, approximately.
 */
export interface RecentCountsReport {
  readonly queries: number;
  /** Answers with this response code. */
  readonly nxdomain: number;
  /** Answers with any other response code than NOERROR. */
  readonly errors: number;
}
