import { LISTENER_ADDRESSES } from "../../base/model/listener-addresses.ts";
import { BOOLEAN, NETWORK_NAME } from "../../config/kinds.ts";
import { featureValues, one } from "../../config/setting.ts";
import type { Settings } from "../../config/settings.ts";

const settings = {
  listener: one(
    BOOLEAN,
    false,
    `answer containers at ${LISTENER_ADDRESSES.ipv4} and ${LISTENER_ADDRESSES.ipv6} of the host, too, where their queries do not reach 127.0.0.11`,
  ),
  builds: one(
    NETWORK_NAME,
    undefined,
    "let RUN steps of docker build that ask the listener resolve the names of this Docker network",
  ),
};

export const LISTENER = {
  settings,
  conflicts: (all: Settings): readonly (readonly ["builds", string])[] => {
    const { listener, builds } = featureValues(settings, all);
    if (builds === undefined || listener) return [];
    const what =
      "has no effect without the listener, which steps of builds ask: set listener: true, or remove this setting";
    return [["builds", what]];
  },
  report: async () => await import("./report.ts"),
  cleanup: async () => await import("./opening.ts"),
  load: async () => await import("./listener.ts"),
} as const;
