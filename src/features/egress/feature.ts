import { BOOLEAN } from "../../config/kinds.ts";
import { one } from "../../config/setting.ts";

export const EGRESS = {
  settings: { egress: one(BOOLEAN, false, "record where containers connect to, for dns11 egress") },
  commands: { egress: { group: "Look:", load: async () => await import("./command.ts") } },
  load: async () => await import("./egress.ts"),
} as const;
