/** Policies that clients of the control socket make while dns11 runs. They need no setting: they can only narrow what there is. */
export const POLICY_LEASES = {
  commands: {
    "policy apply": { group: "Run:", load: async () => ({ add: (await import("./command.ts")).addApply }) },
  },
  load: async () => await import("./policy-leases.ts"),
} as const;
