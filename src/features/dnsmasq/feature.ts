import type { FolderFormat } from "../../config/feature-entry.ts";
import { path } from "../../config/kinds.ts";
import { one } from "../../config/setting.ts";

/** Settings in a folder of dnsmasq: its servers, records and cache. */
export const DNSMASQ = {
  settings: {
    "dnsmasq-dir": one(
      path("/etc/dnsmasq.d"),
      undefined,
      "folder with the configuration of dnsmasq, followed while dns11 runs",
    ),
  },
  folders: {
    "dnsmasq-dir": { source: "dnsmasq", reader: async () => await import("./files.ts") } satisfies FolderFormat,
  },
} as const;
