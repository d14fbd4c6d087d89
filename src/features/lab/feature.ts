export const LAB = {
  load: async () => await import("./lab.ts"),
} as const;
