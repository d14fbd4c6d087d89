import type { FolderFormat } from "../../config/feature-entry.ts";
import { path } from "../../config/kinds.ts";
import { one } from "../../config/setting.ts";

/** Settings in a mounted ConfigMap of kube-dns: its servers. */
export const KUBE_DNS = {
  settings: {
    "kube-dns-dir": one(
      path("/etc/kube-dns"),
      undefined,
      "folder with the ConfigMap of kube-dns (stubDomains, upstreamNameservers), followed while dns11 runs",
    ),
  },
  folders: {
    "kube-dns-dir": { source: "kube-dns", reader: async () => await import("./config-map.ts") } satisfies FolderFormat,
  },
} as const;
