/**
 * MetricsPolicy: where metrics are served besides the control socket, and in how much detail.
 */
export interface MetricsPolicy {
  /** ADDRESS:PORT, or METRICS_OFF. */
  readonly address: string;
  /** The address was configured: failing to listen there is an error. */
  readonly isExplicit: boolean;
  /** How many containers get their own series. */
  readonly containers: number;
}

export const METRICS_OFF = "off";
