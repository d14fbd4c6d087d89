/**
 * NameEntry: the endpoints that have one name, and their addresses. Their addresses are packed at the first query after a
 * change, not at every change.
 */
import type { NameAddresses } from "../../../base/model/visible-names.ts";

export interface EndpointAddresses {
  readonly v4: Uint8Array | undefined;
  readonly v6: Uint8Array | undefined;
  /** It counts only if no other endpoint has an address of the family. */
  readonly isLastResort?: boolean;
  /** The Compose project of its container. */
  readonly project?: string | undefined;
  readonly ttlSeconds?: number | undefined;
  /** Its addresses are to be answered in order. */
  readonly isSorted?: boolean;
}

export class NameEntry implements NameAddresses {
  readonly #holders = new Map<string, EndpointAddresses>();
  #v4: Uint8Array | undefined;
  #v6: Uint8Array | undefined;
  /** Whether containers of several projects have the name; undefined until that is needed after a change. */
  #isMixed: boolean | undefined;
  #hasChosen = false;
  #ttlSeconds: number | undefined;
  #isSorted = false;
  #byProject: Map<string, NameEntry> | undefined;

  get v4(): Uint8Array {
    return (this.#v4 ??= this.#packed("v4"));
  }

  get v6(): Uint8Array {
    return (this.#v6 ??= this.#packed("v6"));
  }

  /** The shortest that its endpoints choose. */
  get ttlSeconds(): number | undefined {
    if (!this.#hasChosen) this.#choose();
    return this.#ttlSeconds;
  }

  /** Whether all of its endpoints choose that. */
  get isSorted(): boolean {
    if (!this.#hasChosen) this.#choose();
    return this.#isSorted;
  }

  /** How many endpoints are left out, for explain. */
  get leftOut(): number {
    const all = [...this.#holders.values()];
    const last = all.filter(({ isLastResort }) => isLastResort === true).length;
    return last === all.length ? 0 : last;
  }

  get holders(): readonly string[] {
    return [...this.#holders.keys()];
  }

  get hasHolders(): boolean {
    return this.#holders.size > 0;
  }

  isOnlyOf(holder: string | undefined): boolean {
    return holder !== undefined && this.#holders.size === 1 && this.#holders.has(holder);
  }

  /** Whether one of the containers has the other name, too. */
  sharesHolder(other: NameEntry): boolean {
    for (const holder of this.#holders.keys()) if (other.#holders.has(holder)) return true;
    return false;
  }

  put(holder: string, addresses: EndpointAddresses): void {
    this.#holders.set(holder, addresses);
    this.#changed();
  }

  remove(holder: string): void {
    this.#holders.delete(holder);
    this.#changed();
  }

  /** Its part in this Compose project, where the name is also someone else's; all of it where the project has no part. */
  inProject(project: string): NameEntry {
    this.#isMixed ??= new Set([...this.#holders.values()].map((each) => each.project)).size > 1;
    return this.#isMixed ? this.#partOf(project) : this;
  }

  #partOf(project: string): NameEntry {
    const known = this.#byProject?.get(project);
    if (known !== undefined) return known;
    const part = new NameEntry();
    for (const [holder, addresses] of this.#holders) if (addresses.project === project) part.put(holder, addresses);
    if (!part.hasHolders) return this;
    this.#byProject ??= new Map();
    this.#byProject.set(project, part);
    return part;
  }

  #changed(): void {
    this.#v4 = this.#v6 = undefined;
    this.#isMixed = this.#byProject = undefined;
    this.#hasChosen = false;
  }

  #choose(): void {
    const all = [...this.#holders.values()];
    const ttls = all.flatMap(({ ttlSeconds }) => ttlSeconds ?? []);
    this.#ttlSeconds = ttls.length === 0 ? undefined : ttls.reduce((a, b) => Math.min(a, b));
    this.#isSorted = all.every(({ isSorted }) => isSorted === true);
    this.#hasChosen = true;
  }

  #packed(family: "v4" | "v6"): Uint8Array {
    const all = [...this.#holders.values()].filter((each) => each[family] !== undefined);
    const first = all.filter(({ isLastResort }) => isLastResort !== true);
    const addresses = (first.length > 0 ? first : all).flatMap((each) => each[family] ?? []);
    return packed(this.isSorted ? addresses.toSorted((a, b) => Buffer.compare(a, b)) : addresses);
  }
}

const NO_ADDRESSES = new Uint8Array(0);

/** Concatenates the distinct addresses. */
function packed(addresses: readonly Uint8Array[]): Uint8Array {
  const distinct = new Map<string, Uint8Array>();
  for (const address of addresses) distinct.set(address.join("."), address);
  return distinct.size === 0 ? NO_ADDRESSES : Buffer.concat([...distinct.values()]);
}
