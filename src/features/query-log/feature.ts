import { BOOLEAN } from "../../config/kinds.ts";
import { featureValues, one } from "../../config/setting.ts";
import type { Settings } from "../../config/settings.ts";

const settings = { "queries.log": one(BOOLEAN, false, "log every query", { flag: "query-log" }) };

export const QUERY_LOG = {
  settings,
  conflicts: (all: Settings): readonly (readonly ["queries.log", string])[] =>
    featureValues(settings, all)["queries.log"] && all.queries.names === "off"
      ? [["queries.log", "has no effect with queries.names: off. Use queries.names: hidden, or remove this setting"]]
      : [],
  load: async () => await import("./query-log.ts"),
} as const;
