/**
 * Asker: a container as the listener knows it: a link on the host that its packets come in by, and an address that it has there.
 */
export interface Asker {
  readonly containerId: string;
  /** The index of the link. */
  readonly link: number;
  readonly address: string;
}

export interface Askers {
  /** By link and address; no other packets reach the listener. */
  readonly byKey: ReadonlyMap<string, Asker>;
  /** All links of known containers, also without an address: nothing else by these is let through. */
  readonly links: ReadonlySet<number>;
  /** The containers by their addresses. */
  readonly byAddress: ReadonlyMap<string, string>;
  /** Addresses that several containers have. They get nothing: a reply could not be for one of them. */
  readonly ambiguous: readonly string[];
}

export const NO_ASKERS: Askers = { byKey: new Map(), links: new Set(), byAddress: new Map(), ambiguous: [] };

export function askersOf(all: Iterable<Asker>, links: Iterable<number>): Askers {
  const byKey = new Map<string, Asker>();
  const byAddress = new Map<string, string>();
  const ambiguous = new Set<string>();
  for (const asker of all) {
    const { containerId, address } = asker;
    if ((byAddress.get(address) ?? containerId) !== containerId) ambiguous.add(address);
    byAddress.set(address, containerId);
    byKey.set(`${asker.link} ${address}`, asker);
  }
  for (const address of ambiguous) byAddress.delete(address);
  for (const [key, { address }] of byKey) if (ambiguous.has(address)) byKey.delete(key);
  return { byKey, links: new Set(links), byAddress, ambiguous: [...ambiguous] };
}

/** The containers that keep their address when `now` follows `before`. */
export function unchangedAddresses(before: Askers, now: Askers): Map<string, string> {
  return new Map([...before.byAddress].filter(([address, id]) => now.byAddress.get(address) === id));
}
