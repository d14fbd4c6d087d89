import { ETCD_LIMITS } from "../limits.ts";
import { nextKey, type StoredKeys } from "./keys.ts";
import { encoded, type StoredKey } from "./messages.ts";

interface OwnKey {
  readonly value: string;
  readonly lease: string | undefined;
  readonly revision: number;
}

/** One transaction: its conditions, its operations, and what is known when it has been done. */
interface Batch {
  readonly compare: readonly object[];
  readonly success: readonly object[];
  /** undefined: deleted. */
  readonly changes: ReadonlyMap<string, string | undefined>;
}

/**
 * What etcd has below the key of this machine, as far as is known, and what is to be written so that it is what is
 * wanted. Only differences are written, each on the condition that the key is still as it is known here.
 */
export class OwnKeys implements StoredKeys {
  /** There are more keys below the root than were read. */
  isCut = false;
  readonly #root: string;
  readonly #ownerKey: string;
  #known = new Map<string, OwnKey>();
  #listed = new Map<string, OwnKey>();

  /** `root`: the first part of all its keys, with a slash at its end. The key of the owner is none of them. */
  constructor(root: string, ownerKey: string) {
    this.#root = root;
    this.#ownerKey = ownerKey;
  }

  get size(): number {
    return this.#known.size;
  }

  get keys(): Iterable<string> {
    return this.#known.keys();
  }

  /** Whether a change that etcd reports is known, or may be one that is just being written. */
  expects(key: string, value: string | undefined, wanted: string | undefined, leases: ReadonlySet<string>): boolean {
    const known = this.#known.get(key);
    if (value === known?.value) return true;
    return value === wanted && (value !== undefined || isOurs(known, leases));
  }

  /** Whether etcd has it so, as far as is known. */
  has(key: string, value: string, lease: string | undefined): boolean {
    const known = this.#known.get(key);
    return known?.value === value && known.lease === lease;
  }

  /** How many others have written here, with no lease or another one; they are never touched. */
  foreign(leases: ReadonlySet<string>, wanted: ReadonlyMap<string, string>): number {
    let count = 0;
    for (const [key, { lease }] of this.#known) if (!wanted.has(key) && !isOneOf(leases, lease)) count++;
    return count;
  }

  begin(): void {
    this.#listed = new Map();
    this.isCut = false;
  }

  after(key: string): string | undefined {
    this.isCut = this.#listed.size >= ETCD_LIMITS.ownKeys;
    return this.isCut ? undefined : nextKey(key);
  }

  commit(): void {
    this.#known = this.#listed;
    this.#listed = new Map();
  }

  put({ key, value, lease, revision = 0 }: StoredKey): void {
    if (key === this.#ownerKey) return;
    // A value that is too large is not what is wanted either.
    const isShort = value !== undefined && value.length <= ETCD_LIMITS.memberBytes;
    const text = isShort ? value.toString("latin1") : "";
    this.#listed.set(key.slice(this.#root.length), { value: text, lease, revision });
  }

  remove(): void {}
  setLease(): void {}

  /**
   * Takes keys out of `dirty` until there are enough that differ. Keys that are not wanted are deleted if they are ours
   * by their lease.
   */
  batch(
    dirty: Set<string>,
    wanted: ReadonlyMap<string, string>,
    {
      lease,
      leases,
      keysMax,
    }: { readonly lease: string; readonly leases: ReadonlySet<string>; readonly keysMax: number },
  ): Batch {
    const compare: object[] = [];
    const success: object[] = [];
    const changes = new Map<string, string | undefined>();
    for (const key of dirty) {
      if (changes.size >= keysMax) break;
      dirty.delete(key);
      const value = wanted.get(key);
      const known = this.#known.get(key);
      const isDone = value === undefined ? !isOurs(known, leases) : this.has(key, value, lease);
      if (isDone) continue;
      const name = encoded(this.#root + key);
      compare.push({ target: "MOD", key: name, result: "EQUAL", mod_revision: String(known?.revision ?? 0) });
      success.push(
        value === undefined
          ? { request_delete_range: { key: name } }
          : { request_put: { key: name, value: encoded(value), lease } },
      );
      changes.set(key, value);
    }
    return { compare, success, changes };
  }

  /** A transaction was done, with this revision. */
  done({ changes }: Batch, lease: string, revision: number): void {
    for (const [key, value] of changes) {
      if (value === undefined) this.#known.delete(key);
      else this.#known.set(key, { value, lease, revision });
    }
  }
}

function isOurs(known: OwnKey | undefined, leases: ReadonlySet<string>): boolean {
  return known !== undefined && isOneOf(leases, known.lease);
}

function isOneOf(leases: ReadonlySet<string>, lease: string | undefined): boolean {
  return lease !== undefined && leases.has(lease);
}
