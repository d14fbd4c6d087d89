/**
 * KeeperReport: how the keeper of a run is, for whoever asks.
 */
export interface KeeperReport {
  /** It watches us; it is being started; there is none at the moment; nobody wants one. */
  readonly state: "watching" | "starting" | "away" | "off";
  readonly pid: number | null;
  /** What it is given to keep. */
  readonly namespaces: number;
  /** How often another one had to be started. */
  readonly restarts: number;
}
