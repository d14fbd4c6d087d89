/**
 * WantedKeys: what this machine wants to have in the shared store, below its own part of it, on its way from the
 * containers to the store's client.
 */
export interface WantedKeys {
  /** Values by key. */
  readonly wanted: ReadonlyMap<string, string>;
  /** Everything that is to be there is known, so that what is not wanted may go. */
  readonly isComplete: boolean;
  /** The addresses of this machine, as text. */
  readonly addresses: readonly string[];
  /** Called with each key whose value may have changed; undefined where all may have. */
  onChange: (key: string | undefined) => void;
  /** The address from which the store is reached: that of this machine where the settings have none. */
  setConnectedAddress(address: string | undefined): void;
}
