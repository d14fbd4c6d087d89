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

/**
 * A page that says whether a container resolves a name, as `PAGE=NAME@CONTAINER`.
 */
export interface HealthProbe {
  /** The page is /healthz-PAGE. */
  readonly page: string;
  readonly name: string;
  readonly container: string;
}

export const HEALTH_PROBE_FORM = "PAGE=NAME@CONTAINER";
const FORM = /^([a-z0-9][a-z0-9-]{0,39})=([\w.-]{1,253})@([a-zA-Z0-9][\w.-]{0,127})$/;

/** Undefined if it has another form. */
export function parseHealthProbe(text: string): HealthProbe | undefined {
  const [, page, name, container] = FORM.exec(text) ?? [];
  return page === undefined || name === undefined || container === undefined ? undefined : { page, name, container };
}

export function healthProbeText({ page, name, container }: HealthProbe): string {
  return `${page}=${name}@${container}`;
}
