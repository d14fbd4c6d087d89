/**
 * HostsFile: what a container's /etc/hosts says of a name. C libraries read it before they query a server, so a program gets
 * what it says, whatever dns11 would answer. The text is the container's: it may write the file.
 */
import { bareName } from "../../base/dns/name.ts";
import { withoutComment } from "../../base/lib/without-comment.ts";
import { addressBytes } from "../../base/model/address.ts";
import type { ParsedQuestion } from "../../base/model/question-text.ts";

const FAMILY_BYTES: Readonly<Record<string, number>> = { A: 4, AAAA: 16 };
/** Addresses of one name that are reported. */
const ADDRESSES_MAX = 16;

/** The addresses of the type in question, in the order of the file. */
export function addressesInHosts(
  text: string,
  { name, typeName }: Pick<ParsedQuestion, "name" | "typeName">,
): string[] {
  const bytes = FAMILY_BYTES[typeName];
  if (bytes === undefined) return [];
  const wanted = bareName(name);
  const found = new Set<string>();
  for (const line of text.split("\n")) {
    const [address = "", ...names] = withoutComment(line).trim().split(/\s+/);
    if (found.size === ADDRESSES_MAX || addressBytes(address)?.length !== bytes) continue;
    if (names.some((each) => bareName(each) === wanted)) found.add(address);
  }
  return [...found];
}
