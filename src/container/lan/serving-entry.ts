/**
 * ServingEntry: an entry of `listen` that answers, and whether it still fits the host and the settings.
 */
import type { ListenEntry } from "../../base/model/listen-policy.ts";
import type { NamespaceSockets } from "../namespace/sockets.ts";
import type { LanAddress } from "./lan-table.ts";
import type { SubnetEndpoint } from "./subnet-endpoint.ts";

/** An entry that answers, at one address or two. */
export interface Serving {
  readonly entry: ListenEntry;
  /** Of each address. */
  readonly links: readonly (readonly number[])[];
  pairs: readonly NamespaceSockets[];
  readonly endpoint: SubnetEndpoint;
}

/** An address that can serve, and the links that have it. */
export interface Found {
  readonly address: string;
  readonly links: readonly number[];
}

/** The addresses at which it answers. */
export function addressesOf({ pairs, links }: Serving): readonly Found[] {
  return pairs.map(({ listening }, index) => ({ address: listening.address, links: links[index] ?? [] }));
}

/** Whether it may go on as it is. */
export function isAsBefore(
  { entry, links, pairs }: Serving,
  entries: readonly ListenEntry[],
  found: readonly Found[] | undefined,
): boolean {
  const isSame = found?.length === pairs.length && found.every(isAt);
  function isAt(each: Found, index: number): boolean {
    return pairs[index]?.listening.address === each.address && links[index]?.join() === each.links.join();
  }
  return isSame && entries.some((each) => isSameEntry(each, entry));
}

/** A reload reads all entries again. */
function isSameEntry(one: ListenEntry, other: ListenEntry): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}

export function linksOf(found: readonly Found[] | undefined): Serving["links"] {
  return (found ?? []).map(({ links }) => links);
}

/** What its rules let in. */
export function lanAddresses(
  { allow }: ListenEntry,
  pairs: readonly NamespaceSockets[],
  links: Serving["links"],
): LanAddress[] {
  return pairs.map(({ listening }, index) => ({ listening, allow, links: links[index] ?? [] }));
}
