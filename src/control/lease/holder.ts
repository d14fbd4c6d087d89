/**
 * Holder: the process that holds a lease. Whoever reads that a fault is injected must find out by whom.
 */
export interface Holder {
  /** 0 if it is in another PID namespace. */
  readonly pid: number;
  /** Its command; empty if it is not known. */
  readonly command: string;
}
