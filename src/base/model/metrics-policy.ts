/**
 * MetricsPolicy: where metrics are served beside the control socket, and how much they tell.
 */
export interface MetricsPolicy {
  /** ADDRESS:PORT, or METRICS_OFF. */
  readonly address: string;
  /** Somebody wants it there: then it must be there. */
  readonly isExplicit: boolean;
  /** So many containers are told apart. */
  readonly containers: number;
}

export const METRICS_OFF = "off";
