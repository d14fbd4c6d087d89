/** Without a setting: containers ask for it by a label. */
export const SEARCH = {
  load: async () => await import("./search.ts"),
} as const;
