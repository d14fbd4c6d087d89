/** A command in whose containers only some names are resolved and reached. It needs no setting, and nothing of it runs in dns11. */
export const SANDBOX = {
  commands: { sandbox: { group: "Run:", load: async () => await import("./command.ts") } },
} as const;
