/**
 * FormerAddress: an address that a container had on a network until lately.
 */
export interface FormerAddress {
  readonly container: string;
  readonly networkName: string;
  readonly address: string;
  /** On the clock of `performance.now`. */
  readonly atMs: number;
}
