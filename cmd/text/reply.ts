/**
 * Reply text: a DNS reply as columns for people, with the containers behind its addresses and its extended errors.
 */
import type { AddressOwner } from "../../src/api/names.ts";
import type { FeatureReport } from "../../src/features/contract.ts";
import type { RecordText, ReplyText } from "../../src/base/model/reply-text.ts";
import { printable } from "./printable.ts";
import { table } from "./table.ts";
import { type Display, PLAIN } from "./terminal.ts";

/** Features may know owners that are no containers of this engine. */
export type OwnerReports = readonly Pick<FeatureReport, "ownerText">[];

/** Everything in the reply except the response code. */
export function replyLines(
  reply: Omit<ReplyText, "rcode">,
  owners: readonly AddressOwner[],
  reports: OwnerReports,
  display: Display = PLAIN,
): string {
  const section = (title: string, records: readonly RecordText[]): string =>
    sectionText(title, records, owners, reports, display);
  const { answers, authority, additional, extendedErrors, isTruncated, isUnreadable } = reply;
  return [
    section("", answers),
    answers.length === 0 ? section("authority", authority) : "",
    section("additional", additional),
    ...extendedErrors.map(
      ({ code, name, text }) => `extended error ${code}, ${name}${text === "" ? "" : `: ${printable(text)}`}\n`,
    ),
    isTruncated ? "truncated\n" : "",
    isUnreadable ? "the reply has malformed records\n" : "",
  ].join("");
}

function sectionText(
  title: string,
  records: readonly RecordText[],
  owners: readonly AddressOwner[],
  reports: OwnerReports,
  display: Display,
): string {
  if (records.length === 0) return "";
  const columns = ["NAME", "TTL", "TYPE", "DATA"];
  const hasOwners = records.some(({ data }) => ownerOf(data, owners) !== undefined);
  const rows = records.map(({ name, ttl, type, data }) => {
    const owner = ownerOf(data, owners);
    return [name, String(ttl), type, data, ...(owner === undefined ? [] : [ownerText(owner, reports)])];
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

/** Who is behind an address, for people. */
export function ownerText(owner: AddressOwner, reports: OwnerReports): string {
  const { container, project } = owner;
  return textElsewhere(owner, reports) ?? (project === null ? container : `${container} (project ${project})`);
}

/** Undefined for a container of this engine. */
export function textElsewhere(owner: AddressOwner, reports: OwnerReports): string | undefined {
  return reports.map((each) => each.ownerText?.(owner)).find((text) => text !== undefined);
}
