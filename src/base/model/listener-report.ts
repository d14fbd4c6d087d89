/**
 * ListenerReport: the state of the listener on the host, for status and doctor.
 */
export interface ListenerReport {
  readonly state: "off" | "opening" | "serving" | "failed";
  /** Where it answers. */
  readonly addresses: readonly string[];
  /** The containers that may ask it: those whose links on the host are known. */
  readonly askers: number;
  /** Addresses that several containers have, which get no answers. */
  readonly ambiguous: readonly string[];
  /** The steps of builds that are answered, if the settings say so. */
  readonly builds?: BuildsReport;
  /** Why it has failed, and what to do. */
  readonly code?: string;
  readonly reason?: string;
}

export interface BuildsReport {
  /** Its names are what steps resolve. */
  readonly network: string;
  /** Whether there is such a network now. */
  readonly isKnown: boolean;
  /** Those that run now. */
  readonly steps: number;
}
