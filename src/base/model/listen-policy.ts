/**
 * ListenPolicy: addresses of the host at which dns11 answers whoever is no container that it knows: other machines of a LAN, or a
 * network of build steps. Each has the blocks of addresses that may ask there, and what they get.
 */
import type { AddressBlock } from "./address-block.ts";

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
  /** The shortest prefixes of blocks that may ask: 10.0.0.0/8 and fc00::/7. Whoever writes a shorter one means the internet. */
  prefixMin: { ipv4: 8, ipv6: 7 },
} as const;
