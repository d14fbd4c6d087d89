/** What containers may ask, be answered and reach. Clients of the control socket may narrow it while dns11 runs. */
export const POLICY = {
  commands: {
    "policy apply": { group: "Run:", load: async () => ({ add: (await import("./command.ts")).addApply }) },
  },
  load: async () => await import("./policy.ts"),
} as const;
