/**
 * HostsText: reads records in the format of /etc/hosts: an address and its names on each line. The first name of an
 * address is also its reverse name, as a program that reads the file itself would find it.
 */
import { presentation } from "../../base/dns/name.ts";
import { TYPE } from "../../base/dns/record-type.ts";
import { withoutComment } from "../../base/lib/text.ts";
import { reverseLabels } from "../../base/model/address.ts";
import { type DeclaredName, type DeclaredRecord, EVERYBODY } from "../../base/model/declared-name.ts";
import { quoteValue } from "../../config/kinds.ts";
import { readAnyAddress, readOwner, readTarget } from "../../config/records/record-data.ts";

interface HostsResult {
  readonly names: readonly DeclaredName[];
  /** Each with file and line. */
  readonly mistakes: readonly string[];
}

interface Entry {
  readonly where: string;
  readonly records: DeclaredRecord[];
  readonly isDerived?: true;
}

/** `path` is for the places of the names. */
export function readHostsText(text: string, path: string): HostsResult {
  const entries = new Map<string, Entry>();
  const mistakes: string[] = [];
  for (const [index, line] of text.split("\n").entries()) {
    const where = `${path}:${index + 1}:1`;
    const words = withoutComment(line).split(/[\s\0]+/);
    const [address, ...names] = words.filter((word) => word !== "");
    if (address === undefined) continue;
    try {
      addLine(entries, address, names, where);
    } catch (error) {
      mistakes.push(`${where}: ${(error as Error).message}`);
    }
  }
  const names = [...entries].map(([name, entry]): DeclaredName => ({
    name,
    ...entry,
    scope: EVERYBODY,
    ttlSeconds: undefined,
    alias: undefined,
    containers: [],
  }));
  return { names, mistakes };
}

function addLine(entries: Map<string, Entry>, address: string, names: readonly string[], where: string): void {
  const { type, data } = addressOf(address);
  const [first] = names;
  if (first === undefined)
    throw new Error(`the address ${quoteValue(address)} has no name: add one, or remove the line`);
  for (const owner of new Set(names.map((name) => readOwner(name)))) {
    const text = `${type === TYPE.A ? "A" : "AAAA"} ${address}`;
    const entry = entries.get(owner) ?? { where, records: [] };
    if (entry.records.every((each) => each.text !== text)) entry.records.push({ type, data, text });
    entries.set(owner, entry);
  }
  const labels = reverseLabels(data);
  const reverse = `${presentation(labels, 0, labels.length)}.${type === TYPE.A ? "in-addr" : "ip6"}.arpa`;
  if (entries.has(reverse) || first.startsWith("*")) return;
  const pointer = { type: TYPE.PTR, data: readTarget(first), text: `PTR ${first}` };
  entries.set(reverse, { where, records: [pointer], isDerived: true });
}

function addressOf(text: string): ReturnType<typeof readAnyAddress> {
  try {
    return readAnyAddress(text);
  } catch {
    throw new Error(`invalid address ${quoteValue(text)}: a line begins with an IP address, and names follow it`);
  }
}
