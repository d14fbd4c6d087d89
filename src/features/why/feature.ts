/** Without a setting: it is there wherever a policy is. */
export const WHY = {
  load: async () => await import("./why.ts"),
} as const;
