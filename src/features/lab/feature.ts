const GROUP = "Test:";

export const LAB = {
  commands: {
    fault: { group: GROUP, load: async () => ({ add: (await import("./command.ts")).addFault }) },
    record: { group: GROUP, load: async () => ({ add: (await import("./command.ts")).addRecord }) },
    replay: { group: GROUP, load: async () => ({ add: (await import("./command.ts")).addReplay }) },
  },
  load: async () => await import("./lab.ts"),
} as const;
