/**
 * OwnerText: the container behind an address, for people.
 */
import type { AddressOwner } from "../src/api/owners.ts";

export function ownerOf(address: string, owners: readonly AddressOwner[]): AddressOwner | undefined {
  return owners.find((owner) => owner.address === address);
}

export function ownerText({ container, project }: AddressOwner): string {
  return project === null ? container : `${container} (project ${project})`;
}
