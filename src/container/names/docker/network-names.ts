/**
 * NetworkNames: the container names of one network, name to addresses and address to name. Written when a container
 * joins or leaves, read by every query of the containers on it.
 */
import { presentation } from "../../../base/dns/name.ts";
import { addressBytes, isOpenEnded, reverseLabels } from "../../../base/model/address.ts";
import { nameKey, packedName } from "./docker-name.ts";
import { LabelTable } from "../../../base/model/label-table.ts";
import { NameEntry } from "../source/name-entry.ts";
import type { ReverseName } from "../../../base/model/visible-names.ts";

/** The pointer of an address to `name.network.` */
export interface NetworkPointer extends ReverseName {
  /** Docker stores this address under a wrong reverse name, so its resolver never finds it. */
  readonly missingInDocker: boolean;
}

/** What one endpoint (a container on a network) contributes. */
export interface Membership {
  /** In Docker's order; the addresses point to the first one. */
  readonly names: readonly string[];
  readonly ipv4: string | undefined;
  readonly ipv6: string | undefined;
  /** It shares its other names only if no other container has them. */
  readonly isLastResort?: boolean;
  /** The Compose project of the container. */
  readonly project?: string | undefined;
  readonly ttlSeconds?: number | undefined;
  readonly isSorted?: boolean;
  /** The name that its addresses point to, which it has as well; by default its first name and the network's. */
  readonly pointer?: string | undefined;
}

interface OwnedPointer extends NetworkPointer {
  readonly holder: string;
}

export class NetworkNames {
  readonly #network: string;
  readonly #members = new Map<string, Membership>();
  readonly #forward = new LabelTable<NameEntry>();
  readonly #reverse = new LabelTable<readonly OwnedPointer[]>();

  constructor(network: string) {
    this.#network = network;
  }

  /** The number of endpoints on this network. */
  get size(): number {
    return this.#members.size;
  }

  /** All names as text, with what they lead to. */
  *list(): Iterable<readonly [string, NameEntry]> {
    for (const [key, entry] of this.#forward.entries()) yield [presentation(key, 0, key.length), entry];
  }

  /** Looks up lower-case labels, with their hash. */
  lookup(labels: Uint8Array, length: number, hash: number): NameEntry | undefined {
    return this.#forward.find(labels, length, hash);
  }

  /** Looks up the labels below in-addr.arpa or ip6.arpa; of several pointers it returns the newest. */
  pointer(labels: Uint8Array, length: number, hash: number): NetworkPointer | undefined {
    return this.#reverse.find(labels, length, hash)?.at(-1);
  }

  /** Replaces an endpoint's names. */
  put(holder: string, membership: Membership): void {
    this.remove(holder);
    this.#members.set(holder, membership);
    const v4 = membership.ipv4 === undefined ? undefined : addressBytes(membership.ipv4);
    const v6 = membership.ipv6 === undefined ? undefined : addressBytes(membership.ipv6);
    if (v4 === undefined && v6 === undefined) return;
    const [first] = membership.names;
    const own = first === undefined ? undefined : nameKey(first);
    for (const key of keysOf(membership)) {
      const entry = this.#forward.get(key) ?? new NameEntry();
      const isLastResort = membership.isLastResort === true && own !== undefined && Buffer.compare(key, own) !== 0;
      const { project, ttlSeconds, isSorted = false } = membership;
      entry.put(holder, { v4, v6, isLastResort, project, ttlSeconds, isSorted });
      this.#forward.set(key, entry);
    }
    if (first === undefined) return;
    const { pointer, ttlSeconds } = membership;
    const target = (pointer === undefined ? undefined : packedName(pointer)) ?? packedName(`${first}.${this.#network}`);
    for (const { key, missingInDocker } of reverseKeysOf(membership)) {
      const others = this.#reverse.get(key) ?? [];
      this.#reverse.set(key, [...others, { target, ttlSeconds, holder, missingInDocker }]);
    }
  }

  /** Removes an endpoint; names that it shares with others stay. */
  remove(holder: string): void {
    const membership = this.#members.get(holder);
    if (membership === undefined) return;
    this.#members.delete(holder);
    for (const key of keysOf(membership)) {
      const entry = this.#forward.get(key);
      entry?.remove(holder);
      if (entry?.hasHolders === false) this.#forward.delete(key);
    }
    for (const { key } of reverseKeysOf(membership)) {
      const remaining = (this.#reverse.get(key) ?? []).filter((pointer) => pointer.holder !== holder);
      if (remaining.length === 0) this.#reverse.delete(key);
      else this.#reverse.set(key, remaining);
    }
  }
}

function keysOf({ names, pointer }: Membership): Uint8Array[] {
  return [...new Set(pointer === undefined ? names : [...names, pointer])].map((name) => nameKey(name));
}

interface ReverseKey {
  readonly key: Uint8Array;
  readonly missingInDocker: boolean;
}

function reverseKeysOf({ ipv4, ipv6 }: Membership): ReverseKey[] {
  return [ipv4, ipv6].flatMap((text) => {
    const bytes = text === undefined ? undefined : addressBytes(text);
    if (text === undefined || bytes === undefined) return [];
    const key = reverseLabels(bytes);
    if (!isOpenEnded(text)) return [{ key, missingInDocker: false }];
    return [
      { key, missingInDocker: true },
      { key: openEndedLabels(text), missingInDocker: false },
    ];
  });
}

/** Docker expands "::" at the end of an address twice, once for the empty text on each side: a wrong reverse name. */
function openEndedLabels(text: string): Uint8Array {
  const groups = text.split(":");
  const zeros = "0000".repeat(9 - groups.length);
  const nibbles = groups.map((group) => (group === "" ? zeros : group.padStart(4, "0"))).join("");
  return Buffer.from([...nibbles].toReversed().join("").replaceAll(/./g, "\x01$&"), "latin1");
}
