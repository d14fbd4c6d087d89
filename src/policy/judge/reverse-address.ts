/**
 * ReverseAddress: the address that a name below in-addr.arpa or ip6.arpa is the reverse name of.
 */
import { presentation } from "../../base/dns/name.ts";
import { addressBytes, plain } from "../../base/model/address.ts";
import type { QuestionName } from "../../base/model/visible-names.ts";

const V4 = /^(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.in-addr\.arpa$/;
const V6 = /^(?:[0-9a-f]\.){32}ip6\.arpa$/;

/** Undefined for any other name; of a mapped IPv4 address, that address. */
export function reverseAddress({ folded, foldedLength }: QuestionName): Uint8Array | undefined {
  const name = presentation(folded, 0, foldedLength);
  const [, ...parts] = V4.exec(name) ?? [];
  if (parts.length > 0) return addressBytes(parts.toReversed().join("."));
  if (!V6.test(name)) return undefined;
  const digits = name.split(".").slice(0, 32).toReversed().join("");
  return plain(digits.match(/..../g)?.join(":") ?? "");
}
