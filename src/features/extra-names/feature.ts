/** Wildcards, and the names of a label. Without a setting: it is there wherever strict mode is not. */
export const EXTRA_NAMES = {
  load: async () => await import("./extra-names.ts"),
} as const;
