/** Names of services, tasks and containers of other machines on swarm networks. Without it, Docker's resolver answers all that their containers ask. */
export const SWARM = {
  report: async () => await import("./report.ts"),
  load: async () => await import("./swarm.ts"),
} as const;
