/**
 * Reply text: a DNS reply as columns for people, with the containers behind its addresses and its extended errors.
 */
import type { AddressOwner } from "../../src/api/names.ts";
import type { RecordText, ReplyText } from "../../src/base/model/reply-text.ts";
import { printable } from "./printable.ts";
import { table } from "./table.ts";
import { type Display, PLAIN } from "./terminal.ts";
import { tasksText } from "../../src/base/model/swarm-place.ts";

/** Everything in the reply except the response code. */
export function replyLines(
  reply: Omit<ReplyText, "rcode">,
  owners: readonly AddressOwner[],
  display: Display = PLAIN,
): string {
  const { answers, authority, additional, extendedErrors, isTruncated, isUnreadable } = reply;
  return [
    section("", answers, owners, display),
    answers.length === 0 ? section("authority", authority, owners, display) : "",
    section("additional", additional, owners, display),
    ...extendedErrors.map(
      ({ code, name, text }) => `extended error ${code}, ${name}${text === "" ? "" : `: ${printable(text)}`}\n`,
    ),
    isTruncated ? "truncated\n" : "",
    isUnreadable ? "the reply has malformed records\n" : "",
  ].join("");
}

function section(
  title: string,
  records: readonly RecordText[],
  owners: readonly AddressOwner[],
  display: Display,
): string {
  if (records.length === 0) return "";
  const columns = ["NAME", "TTL", "TYPE", "DATA"];
  const hasOwners = records.some(({ data }) => ownerOf(data, owners) !== undefined);
  const rows = records.map(({ name, ttl, type, data }) => {
    const owner = ownerOf(data, owners);
    return [name, String(ttl), type, data, ...(owner === undefined ? [] : [ownerText(owner)])];
  });
  const heading = title === "" ? "" : `${title}:\n`;
  return heading + table(hasOwners ? [...columns, "CONTAINER"] : columns, rows, display);
}

export function milliseconds(ms: number): string {
  return `${ms.toFixed(1)} ms`;
}

export function ownerOf(address: string, owners: readonly AddressOwner[]): AddressOwner | undefined {
  return owners.find((owner) => owner.address === address);
}

/** The container behind an address, for people. */
export function ownerText({ container, project, swarm }: AddressOwner): string {
  if (swarm?.machine === null) return `swarm service ${container}, ${tasksText(swarm)}`;
  if (swarm !== undefined) return `${container} on machine ${swarm.machine}`;
  return project === null ? container : `${container} (project ${project})`;
}
