/**
 * The setting `listen` in a file: addresses of the host at which others than containers may ask, each with its line.
 */
import {
  addressBytes,
  addressText,
  isSameAddress,
  unmappedBytesOf,
  type AddressBlock,
  blockText,
  isBlockIn,
  readAddressBlock,
} from "../../base/model/address.ts";
import { isListenerAddress } from "../../base/model/listener-addresses.ts";
import { BadSettings } from "../../config/bad-settings.ts";
import { type Document, keyPlace } from "../../config/file/document.ts";
import { BOOLEAN, type Read, byName, listOf, mapOf, oneOrMore, quoteValue } from "../../config/kinds.ts";
import type { ListenEntry, ListenView } from "./feature.ts";
import { LAN_LIMITS } from "./limits.ts";

const LISTEN_DEFAULTS = { view: { kind: "published" }, forwards: false } as const;
const VIEW_FORMS = "published or network=NAME";

const ENTRY = mapOf({
  address: oneOrMore({ read: readAddress }),
  allow: listOf({ read: readBlock }),
  view: { read: readView },
  forward: BOOLEAN,
});

type WrittenListen = Read<typeof ENTRY>;

export const WRITTEN = byName("listen", ENTRY, "{lan: {address: 192.168.1.10, allow: [192.168.1.0/24]}}");

/** Also the last part of an id in reports. The record of a crash has room for an id of 64 bytes. */
const NAME = /^[a-z0-9]([a-z0-9._-]{0,55}[a-z0-9])?$/;

/** The entries of a file. Throws a Fault that lists what the kind cannot see, with its places. */
export function place(
  written: Readonly<Record<string, WrittenListen>>,
  document: Document,
  path: string,
): readonly ListenEntry[] {
  const mistakes: string[] = [];
  const at = (of: readonly string[]): string => keyPlace(document, path, of);
  const count = Object.keys(written).length;
  if (count > LAN_LIMITS.entries)
    mistakes.push(`${at(["listen"])}: has ${count} entries: use at most ${LAN_LIMITS.entries}`);
  const taken: { readonly address: string; readonly name: string }[] = [];
  const entries = Object.entries(written).map(([name, { address = [], allow = [], view, forward }]): ListenEntry => {
    const own = ["listen", name];
    if (!NAME.test(name))
      mistakes.push(`${at(own)}: invalid name: use at most 57 of a-z, 0-9, dot, dash and underscore, such as lan`);
    for (const problem of problemsOf(address, allow)) mistakes.push(`${at(own)}: ${problem}`);
    for (const each of address) {
      const other = taken.find((one) => isSameAddress(one.address, each));
      if (other !== undefined) mistakes.push(`${at(own)}: listen.${other.name} has the address ${each}, too`);
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
  BadSettings.throwAny(mistakes);
  return entries;
}

function problemsOf(addresses: readonly string[], allow: readonly AddressBlock[]): string[] {
  if (addresses.length === 0) return ["has no address: set address to one of this host, such as 192.168.1.10"];
  if (allow.length === 0) return ["does not say who may ask: set allow, such as [192.168.1.0/24]"];
  const problems: string[] = [];
  if (allow.length > LAN_LIMITS.blocks)
    problems.push(`allow has ${allow.length} blocks: use at most ${LAN_LIMITS.blocks}`);
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
  const bytes = typeof value === "string" && addressBytes(value) !== undefined ? unmappedBytesOf(value) : undefined;
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
  const view = typeof value === "string" ? parseView(value) : undefined;
  if (view !== undefined) return view;
  throw new Error(`invalid view ${quoteValue(value)}: use ${VIEW_FORMS}`);
}

/** Undefined where the text has none of the forms. */
function parseView(text: string): ListenView | undefined {
  if (text === "published") return { kind: "published" };
  const [, name] = /^network=(.+)$/s.exec(text) ?? [];
  return name === undefined ? undefined : { kind: "network", name };
}

/** No address of them is on the internet, so a block in them may be as large as they are. */
const PRIVATE = ["10.0.0.0/8", "100.64.0.0/10", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7"].flatMap(
  (text) => readAddressBlock(text) ?? [],
);
const LINK_LOCAL_IPV6: AddressBlock = { bytes: Uint8Array.of(0xfe, 0x80, ...new Uint8Array(14)), prefix: 10 };

/** The shortest prefix that a block with these bits may have. */
export function prefixMinOf(block: AddressBlock): number {
  const { ipv4, ipv6 } = LAN_LIMITS.prefixMin;
  const around = PRIVATE.find((each) => isBlockIn(block, each));
  return around?.prefix ?? (block.bytes.length === 4 ? ipv4 : ipv6);
}

/** Such an address means nothing without a link, so nobody can listen at it alone. */
export function isLinkLocal(block: AddressBlock): boolean {
  return isBlockIn(block, LINK_LOCAL_IPV6);
}
