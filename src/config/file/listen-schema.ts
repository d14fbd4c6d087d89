/**
 * ListenSchema: the addresses of the host in the settings file at which others than containers may ask, each with its line.
 */
import type * as z from "zod";

import { type AddressBlock, blockText, readAddressBlock } from "../../base/model/address-block.ts";
import { addressBytes, addressText, isSameAddress, plain } from "../../base/model/address.ts";
import { isListenerAddress } from "../../base/model/listener-addresses.ts";
import {
  LISTEN_DEFAULTS,
  LISTEN_LIMITS,
  LISTEN_VIEW_FORMS,
  type ListenEntry,
  type ListenView,
  isLinkLocal,
  parseListenView,
  prefixMinOf,
} from "../../base/model/listen-policy.ts";
import { BadSettings, MISTAKES_SHOWN_MAX } from "../bad-settings.ts";
import { BOOLEAN, quoteValue } from "../kinds.ts";
import type { Document } from "./document.ts";
import { byName, leaf, list, map, oneOrMore } from "./schema-parts.ts";

const ENTRY = map({
  address: oneOrMore(readAddress),
  allow: list(readBlock),
  view: leaf(readView).optional(),
  forward: leaf((value) => BOOLEAN.read(value)).optional(),
});

export type WrittenListen = z.output<typeof ENTRY>;

export const LISTEN = byName("listen", ENTRY, "{lan: {address: 192.168.1.10, allow: [192.168.1.0/24]}}");

/** Also the last part of an id in reports. The record of a crash has room for an id of 64 bytes. */
const NAME = /^[a-z0-9]([a-z0-9._-]{0,55}[a-z0-9])?$/;

/** The entries of a file. Throws a Fault that lists what the schema cannot see, with its places. */
export function placedListen(
  written: Readonly<Record<string, WrittenListen>>,
  document: Document,
  path: string,
): readonly ListenEntry[] {
  const mistakes: string[] = [];
  const at = (of: readonly PropertyKey[]): string => {
    const { line, column } = document.keyPositionOf(of);
    return `${path}:${line}:${column}: ${of.map(String).join(".")}`;
  };
  const count = Object.keys(written).length;
  if (count > LISTEN_LIMITS.entries)
    mistakes.push(`${at(["listen"])}: has ${count} entries: use at most ${LISTEN_LIMITS.entries}`);
  const taken: { readonly address: string; readonly name: string }[] = [];
  const entries = Object.entries(written).map(([name, { address = [], allow = [], view, forward }]): ListenEntry => {
    const place = ["listen", name];
    if (!NAME.test(name))
      mistakes.push(`${at(place)}: invalid name: use at most 57 of a-z, 0-9, dot, dash and underscore, such as lan`);
    for (const problem of problemsOf(address, allow)) mistakes.push(`${at(place)}: ${problem}`);
    for (const each of address) {
      const other = taken.find((one) => isSameAddress(one.address, each));
      if (other !== undefined) mistakes.push(`${at(place)}: listen.${other.name} has the address ${each}, too`);
      taken.push({ address: each, name });
    }
    return {
      name,
      addresses: address,
      allow,
      view: view ?? LISTEN_DEFAULTS.view,
      forwards: forward ?? LISTEN_DEFAULTS.forwards,
    };
  });
  if (mistakes.length > 0) throw new BadSettings(mistakes.slice(0, MISTAKES_SHOWN_MAX), mistakes.length);
  return entries;
}

function problemsOf(addresses: readonly string[], allow: readonly AddressBlock[]): string[] {
  if (addresses.length === 0) return ["has no address: set address to one of this host, such as 192.168.1.10"];
  if (allow.length === 0) return ["does not say who may ask: set allow, such as [192.168.1.0/24]"];
  const problems: string[] = [];
  if (allow.length > LISTEN_LIMITS.blocks)
    problems.push(`allow has ${allow.length} blocks: use at most ${LISTEN_LIMITS.blocks}`);
  for (const [family, bytes] of [
    ["IPv4", 4],
    ["IPv6", 16],
  ] as const) {
    const own = addresses.filter((each) => addressBytes(each)?.length === bytes);
    const others = allow.filter((each) => each.bytes.length === bytes);
    if (own.length > 1)
      problems.push(`has ${own.length} ${family} addresses: use one, and another entry for each other one`);
    if (own.length > 0 && others.length === 0)
      problems.push(`nobody may ask at ${own[0]}: add a block of ${family} addresses to allow, or remove the address`);
    if (own.length === 0 && others[0] !== undefined)
      problems.push(`allow has ${blockText(others[0])}, but the entry has no ${family} address`);
  }
  return problems;
}

/** One that means this machine alone. */
function readAddress(value: unknown): string {
  const bytes = typeof value === "string" && addressBytes(value) !== undefined ? plain(value) : undefined;
  if (bytes === undefined || String(value).includes("%"))
    throw new Error(`invalid address ${quoteValue(value)}: use an IP address of this host, such as 192.168.1.10`);
  const text = addressText(bytes);
  const [first = 0] = bytes;
  if (bytes.every((each) => each === 0))
    throw new Error(`invalid address ${quoteValue(value)}: name each address, because ${text} stands for all of them`);
  if (bytes.length === 4 ? first >= 224 : first === 0xff)
    throw new Error(`invalid address ${quoteValue(value)}: it is no address of one machine`);
  if (isLinkLocal({ bytes, prefix: bytes.length * 8 }))
    throw new Error(
      `invalid address ${quoteValue(value)}: it is link-local: use a global or a private one, such as fd00:1::10`,
    );
  if (isListenerAddress(text))
    throw new Error(
      `invalid address ${quoteValue(value)}: it is that of the setting listener, which is for containers`,
    );
  return text;
}

function readBlock(value: unknown): AddressBlock {
  const block = typeof value === "string" ? readAddressBlock(value) : undefined;
  if (block === undefined)
    throw new Error(`invalid block of addresses ${quoteValue(value)}: use one such as 192.168.1.0/24 or fd00:1::/64`);
  if (isLinkLocal(block))
    throw new Error(
      `invalid block of addresses ${quoteValue(value)}: it is link-local: use global or private ones, such as fd00:1::/64`,
    );
  const prefixMin = prefixMinOf(block);
  if (block.prefix >= prefixMin) return block;
  throw new Error(
    `invalid block of addresses ${quoteValue(value)}: it is much of the internet, and dns11 is no public server: ` +
      `use a prefix of ${prefixMin} bits or more`,
  );
}

function readView(value: unknown): ListenView {
  const view = typeof value === "string" ? parseListenView(value) : undefined;
  if (view !== undefined) return view;
  throw new Error(`invalid view ${quoteValue(value)}: use ${LISTEN_VIEW_FORMS}`);
}
