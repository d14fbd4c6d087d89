/**
 * StoredKey: a key of the shared store with its value, on its way from the store's client to the source of names.
 */
export interface StoredKey {
  /** One character per byte. */
  readonly key: string;
  /** Undefined where it is too large to be read. */
  readonly value: Buffer | undefined;
  /** The lease that it ends with; undefined for none. */
  readonly lease: string | undefined;
  /** The revision of the store at the key's last change. */
  readonly revision?: number;
}

/** The first key after this one. */
export function nextKey(key: string): string {
  return `${key}\0`;
}

/** The first key after all that begin with this text, which is not empty. */
export function endOf(prefix: string): string {
  const last = prefix.charCodeAt(prefix.length - 1);
  return prefix.slice(0, -1) + String.fromCharCode(last + 1);
}

/** Receives what is below a prefix of the store, and every change of it. */
export interface StoredKeys {
  /**
   * Says where a list that has more keys goes on after this one: keys that there is no room for are not read.
   * undefined: nowhere.
   */
  after(key: string): string | undefined;
  /** A complete list follows; until it has ended, what was known stays. */
  begin(): void;
  /** The list has ended: keys that were not in it are gone. */
  commit(): void;
  put(stored: StoredKey): void;
  remove(key: string): void;
  /** How long this lease was granted for. */
  setLease(lease: string, ttlSeconds: number): void;
}
