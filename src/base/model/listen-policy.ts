/**
 * ListenPolicy: addresses of the host at which dns11 answers whoever is no container that it knows: other machines of a LAN, or a
 * network of build steps. Each has the blocks of addresses that may ask there, and what they get.
 */
import { type AddressBlock, isBlockIn, readAddressBlock } from "./address-block.ts";

/** `published`: containers with published ports, at the machine's own address. A network: what a container on it gets. */
export type ListenView = { readonly kind: "published" } | { readonly kind: "network"; readonly name: string };

export const LISTEN_VIEW_FORMS = "published or network=NAME";

/** Undefined where the text has none of the forms. */
export function parseListenView(text: string): ListenView | undefined {
  if (text === "published") return { kind: "published" };
  const [, name] = /^network=(.+)$/s.exec(text) ?? [];
  return name === undefined ? undefined : { kind: "network", name };
}

export function listenViewText(view: ListenView): string {
  return view.kind === "published" ? "published" : `network=${view.name}`;
}

export interface ListenEntry {
  readonly name: string;
  /** At most one of each family. */
  readonly addresses: readonly string[];
  /** Nobody else gets a reply. */
  readonly allow: readonly AddressBlock[];
  readonly view: ListenView;
  /** Whether other names are forwarded for those who may ask. */
  readonly forwards: boolean;
}

export const LISTEN_DEFAULTS = { view: { kind: "published" }, forwards: false } as const;

/** The id and the name of an entry in reports, which no container can have. */
export function listenId(name: string): string {
  return `listen:${name}`;
}

export function isListenId(id: string): boolean {
  return id.startsWith("listen:");
}

export const LISTEN_LIMITS = {
  entries: 8,
  addresses: 2,
  blocks: 64,
  /** The shortest prefixes of blocks of public addresses that may ask. Whoever writes a shorter one means the internet. */
  prefixMin: { ipv4: 16, ipv6: 32 },
} as const;

/** No address of them is on the internet, so a block in them may be as large as they are. */
const PRIVATE = ["10.0.0.0/8", "100.64.0.0/10", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7"].flatMap(
  (text) => readAddressBlock(text) ?? [],
);
const LINK_LOCAL_IPV6: AddressBlock = { bytes: Uint8Array.of(0xfe, 0x80, ...new Uint8Array(14)), prefix: 10 };

/** The shortest prefix that a block with these bits may have. */
export function prefixMinOf(block: AddressBlock): number {
  const { ipv4, ipv6 } = LISTEN_LIMITS.prefixMin;
  const around = PRIVATE.find((each) => isBlockIn(block, each));
  return around?.prefix ?? (block.bytes.length === 4 ? ipv4 : ipv6);
}

/** Such an address means nothing without a link, so nobody can listen at it alone. */
export function isLinkLocal(block: AddressBlock): boolean {
  return isBlockIn(block, LINK_LOCAL_IPV6);
}
