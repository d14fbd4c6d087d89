/**
 * The names of one network: name to addresses, address to name. This is where the two ways meet: the registry writes
 * it when a container joins or leaves, the query's way reads it.
 */
import { addressBytes, isOpenEnded, reverseLabels } from "./address.ts";
import { LabelTable } from "./label-table.ts";
import { wireLabels } from "./wire-name.ts";

/** What a name stands for on one network: all addresses of all containers that hold it, packed for copying. */
export interface Named {
  readonly v4: Uint8Array;
  readonly v6: Uint8Array;
}

/** Where an address points back to. */
export interface Pointer {
  /** `name.network.` on the wire, with its end; undefined where the wire has no room for it. */
  readonly target: Uint8Array | undefined;
  /** Docker files this address under a name that nobody asks for. */
  readonly onlyBetter: boolean;
}

/** What one endpoint (a container on a network) contributes. */
export interface Membership {
  /** In Docker's order; the first one is what the addresses point back to. */
  readonly names: readonly string[];
  readonly ipv4: string | undefined;
  readonly ipv6: string | undefined;
}

interface Holder {
  readonly holder: string;
  readonly v4: Uint8Array | undefined;
  readonly v6: Uint8Array | undefined;
}

interface Held extends Named {
  readonly holders: readonly Holder[];
}

interface HeldPointer extends Pointer {
  readonly holder: string;
}

const NOTHING = new Uint8Array(0);

export class NetworkNames {
  readonly #network: string;
  readonly #members = new Map<string, Membership>();
  readonly #forward = new LabelTable<Held>();
  readonly #reverse = new LabelTable<readonly HeldPointer[]>();

  constructor(network: string) {
    this.#network = network;
  }

  /** The number of endpoints that have names here. */
  get size(): number {
    return this.#members.size;
  }

  /** Looks up lower-case labels, with their hash. */
  named(labels: Uint8Array, length: number, hash: number): Named | undefined {
    return this.#forward.find(labels, length, hash);
  }

  /** Looks up the labels below in-addr.arpa or ip6.arpa; any of several pointers is right, and the newest is told. */
  pointer(labels: Uint8Array, length: number, hash: number): Pointer | undefined {
    return this.#reverse.find(labels, length, hash)?.at(-1);
  }

  /** Puts an endpoint's names, instead of those it had. */
  put(holder: string, membership: Membership): void {
    this.remove(holder);
    this.#members.set(holder, membership);
    const v4 = membership.ipv4 === undefined ? undefined : addressBytes(membership.ipv4);
    const v6 = membership.ipv6 === undefined ? undefined : addressBytes(membership.ipv6);
    if (v4 === undefined && v6 === undefined) return;
    for (const key of keysOf(membership)) {
      this.#hold(key, [...(this.#forward.get(key)?.holders ?? []), { holder, v4, v6 }]);
    }
    const [first] = membership.names;
    if (first === undefined) return;
    const target = targetOf(`${first}.${this.#network}`);
    for (const text of [membership.ipv4, membership.ipv6]) {
      const key = text === undefined ? undefined : reverseKey(text);
      if (key === undefined || text === undefined) continue;
      const others = this.#reverse.get(key) ?? [];
      this.#reverse.set(key, [...others, { target, holder, onlyBetter: isOpenEnded(text) }]);
    }
  }

  /** Forgets an endpoint; what it shared with others stays theirs. */
  remove(holder: string): void {
    const membership = this.#members.get(holder);
    if (membership === undefined) return;
    this.#members.delete(holder);
    for (const key of keysOf(membership)) {
      const held = this.#forward.get(key);
      if (held !== undefined)
        this.#hold(
          key,
          held.holders.filter((other) => other.holder !== holder),
        );
    }
    for (const text of [membership.ipv4, membership.ipv6]) {
      const key = text === undefined ? undefined : reverseKey(text);
      if (key === undefined) continue;
      const left = (this.#reverse.get(key) ?? []).filter((pointer) => pointer.holder !== holder);
      if (left.length === 0) this.#reverse.delete(key);
      else this.#reverse.set(key, left);
    }
  }

  #hold(key: Uint8Array, holders: readonly Holder[]): void {
    if (holders.length === 0) {
      this.#forward.delete(key);
      return;
    }
    const v4 = packed(holders.map((holder) => holder.v4));
    const v6 = packed(holders.map((holder) => holder.v6));
    this.#forward.set(key, { holders, v4, v6 });
  }
}

/** The distinct keys of a membership's names, without those no query can ask for. */
function keysOf(membership: Membership): Uint8Array[] {
  const names = new Set(membership.names.map((name) => name.toLowerCase()));
  return [...names].map((name) => wireLabels(name)).filter((labels) => labels !== undefined);
}

function reverseKey(address: string): Uint8Array | undefined {
  const bytes = addressBytes(address);
  return bytes === undefined ? undefined : reverseLabels(bytes);
}

/** The name a PTR answer carries, as it is written, with the zero at its end. */
function targetOf(name: string): Uint8Array | undefined {
  const labels = wireLabels(name);
  return labels === undefined ? undefined : Buffer.concat([labels, Buffer.of(0)]);
}

/** Distinct addresses, one after the other. */
function packed(addresses: readonly (Uint8Array | undefined)[]): Uint8Array {
  const distinct = new Map<string, Uint8Array>();
  for (const address of addresses) if (address !== undefined) distinct.set(address.join("."), address);
  return distinct.size === 0 ? NOTHING : Buffer.concat([...distinct.values()]);
}
