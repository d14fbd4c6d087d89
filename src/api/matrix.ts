/**
 * Matrix: which containers can resolve which services, as returned by `GET /v1/matrix`.
 */

/** A Compose service, or a container without one. */
export interface MatrixColumn {
  /** The name that is looked up, in lower case. */
  readonly name: string;
  readonly project: string | null;
  readonly service: string | null;
  /** The containers that the name is meant to lead to. */
  readonly containers: readonly string[];
  /** Running ones among them; with none, no container can resolve the name. */
  readonly running: number;
}

/** A running container. */
export interface MatrixRow {
  readonly container: string;
  readonly containerId: string;
  readonly project: string | null;
  readonly service: string | null;
  /** The order is that of the search. */
  readonly networks: readonly string[];
  /**
   * One for each column: how many of its containers the name resolves to; 0 if it does not resolve; -1 if it leads to something
   * else.
   */
  readonly cells: readonly number[];
}

export interface MatrixReport {
  readonly columns: readonly MatrixColumn[];
  readonly rows: readonly MatrixRow[];
  /** What is left out, because there are too many. */
  readonly omittedColumns: number;
  readonly omittedRows: number;
}
