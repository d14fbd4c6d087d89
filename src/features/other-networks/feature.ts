/** NAME.NETWORK of networks that a container is not on. The setting `visible` is not its own: zones and project names follow it, too. */
export const OTHER_NETWORKS = {
  load: async () => await import("./other-networks.ts"),
} as const;
