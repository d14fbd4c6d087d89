export const POLICY = {
  load: async () => await import("./policy.ts"),
} as const;
