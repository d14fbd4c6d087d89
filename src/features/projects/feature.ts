import { BOOLEAN } from "../../config/kinds.ts";
import { one } from "../../config/setting.ts";

export const PROJECTS = {
  settings: {
    "project-names": one(BOOLEAN, true, "answer SERVICE.PROJECT with the containers of a Compose service", {
      strict: false,
    }),
  },
  report: async () => await import("./report.ts"),
  load: async () => await import("./projects.ts"),
} as const;
