/**
 * NameEntry: the endpoints that have one name, and their addresses. Their addresses are packed at the first query after a
 * change, not at every change.
 */
import type { NameAddresses } from "../../base/model/visible-names.ts";

export interface EndpointAddresses {
  readonly v4: Uint8Array | undefined;
  readonly v6: Uint8Array | undefined;
  /** Only if no other endpoint has an address of the family. */
  readonly isLastResort?: boolean;
}

export class NameEntry implements NameAddresses {
  readonly #holders = new Map<string, EndpointAddresses>();
  #v4: Uint8Array | undefined;
  #v6: Uint8Array | undefined;

  get v4(): Uint8Array {
    return (this.#v4 ??= this.#packed("v4"));
  }

  get v6(): Uint8Array {
    return (this.#v6 ??= this.#packed("v6"));
  }

  /** How many endpoints are left out, for explain. */
  get leftOut(): number {
    const all = [...this.#holders.values()];
    const last = all.filter(({ isLastResort }) => isLastResort === true).length;
    return last === all.length ? 0 : last;
  }

  get hasHolders(): boolean {
    return this.#holders.size > 0;
  }

  put(holder: string, addresses: EndpointAddresses): void {
    this.#holders.set(holder, addresses);
    this.#v4 = this.#v6 = undefined;
  }

  remove(holder: string): void {
    this.#holders.delete(holder);
    this.#v4 = this.#v6 = undefined;
  }

  #packed(family: "v4" | "v6"): Uint8Array {
    const all = [...this.#holders.values()].filter((each) => each[family] !== undefined);
    const first = all.filter(({ isLastResort }) => isLastResort !== true);
    return packed((first.length > 0 ? first : all).map((each) => each[family]));
  }
}

const NO_ADDRESSES = new Uint8Array(0);

/** Concatenates the distinct addresses. */
function packed(addresses: readonly (Uint8Array | undefined)[]): Uint8Array {
  const distinct = new Map<string, Uint8Array>();
  for (const address of addresses) if (address !== undefined) distinct.set(address.join("."), address);
  return distinct.size === 0 ? NO_ADDRESSES : Buffer.concat([...distinct.values()]);
}
