/**
 * PublishedPlace: what a published container is to other machines, as text for people: its names, and where it is reached.
 */
import { addressText } from "../../base/model/address.ts";
import { type PublishedMember, hostOnMachine, portText } from "../names/zone/published-member.ts";

export interface PublishedPlace {
  /** First that of its service, then its own. */
  readonly names: readonly string[];
  readonly addresses: readonly string[];
  /** Each is written as NAME=PORT/PROTOCOL. */
  readonly ports: readonly string[];
}

export function publishedPlace(member: PublishedMember, zone: string, machine: string): PublishedPlace {
  const { project, service, isReady, v4, v6, ports } = member;
  const below = `${service}.${project}.${isReady ? "svc" : "endpoints"}.${zone}`;
  return {
    names: [below, `${hostOnMachine(member, machine)}.${below}`],
    addresses: [...v4, ...v6].map((each) => addressText(each)),
    ports: ports.map((each) => portText(each)),
  };
}
