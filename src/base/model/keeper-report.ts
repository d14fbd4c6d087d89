/**
 * KeeperReport: the state of a run's keeper, for the API.
 */
export interface KeeperReport {
  /** "watching" us; "starting"; "away": missing at the moment; "off": disabled. */
  readonly state: "watching" | "starting" | "away" | "off";
  readonly pid: number | null;
  /** Namespaces that it holds. */
  readonly namespaces: number;
  /** How often it had to be restarted. */
  readonly restarts: number;
}
