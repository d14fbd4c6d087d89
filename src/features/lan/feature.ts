import { type AddressBlock, blockText } from "../../base/model/address.ts";
import { type MapSetting, mapValues } from "../../config/setting.ts";
import type { Settings } from "../../config/settings.ts";

/** `published`: containers with published ports, at the machine's own address. A network: what a container on it gets. */
export type ListenView = { readonly kind: "published" } | { readonly kind: "network"; readonly name: string };

/** An address of the host at which others than containers may ask, such as other machines: who, and what they get. */
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

const maps = {
  listen: {
    fallback: [],
    help: "addresses of the host at which others than containers may ask, and who: {NAME: {address: 192.168.1.10, allow: [192.168.1.0/24]}}",
    write: (entries) =>
      Object.fromEntries(
        entries.map(({ name, addresses, allow, view, forwards }) => [
          name,
          {
            address: addresses,
            allow: allow.map((each) => blockText(each)),
            view: listenViewText(view),
            forward: forwards,
          },
        ]),
      ),
    file: async () => await import("./file-schema.ts"),
  } satisfies MapSetting<readonly ListenEntry[]>,
};

export const LAN = {
  maps,
  hasNamesBelowHostDomain: (all: Pick<Settings, "features">): boolean =>
    entriesOf(all).some(({ view }) => view.kind === "published"),
  report: async () => await import("./report.ts"),
  load: async () => await import("./lan.ts"),
} as const;

export function entriesOf(all: Pick<Settings, "features">): readonly ListenEntry[] {
  return mapValues(maps, all).listen;
}

export function listenViewText(view: ListenView): string {
  return view.kind === "published" ? "published" : `network=${view.name}`;
}
