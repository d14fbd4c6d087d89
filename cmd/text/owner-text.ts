/**
 * OwnerText: the container behind an address, for people.
 */
import type { AddressOwner } from "../../src/api/owners.ts";
import { tasksText } from "../../src/base/model/swarm-place.ts";

export function ownerOf(address: string, owners: readonly AddressOwner[]): AddressOwner | undefined {
  return owners.find((owner) => owner.address === address);
}

export function ownerText({ container, project, swarm }: AddressOwner): string {
  if (swarm?.machine === null) return `swarm service ${container}, ${tasksText(swarm)}`;
  if (swarm !== undefined) return `${container} on machine ${swarm.machine}`;
  return project === null ? container : `${container} (project ${project})`;
}
