/**
 * Probes: the announcement of test queries, the body and the response of `POST /v1/probes`. They count nowhere as queries of the container.
 */
export interface ProbesRequest {
  /** The name or ID of the container from whose namespace they come. */
  readonly container: string;
  /** Their source ports. Each is valid for one query, within ten seconds. */
  readonly udp: readonly number[];
  readonly tcp: readonly number[];
}

export interface ProbesReport {
  /** Ports that were announced; 0 if the container is not served. */
  readonly announced: number;
}
