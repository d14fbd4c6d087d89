/**
 * Limits of names on the host, each with its reason.
 */
export const HOST_LIMITS = {
  /** Servers of the host's resolv.conf whose queries are captured: the C libraries use no more. */
  servers: 3,
  /** How long a server of the host has to say whether it knows the domain. */
  domainMs: 1_500,
  /** Interface addresses are read again at most this often for containers on subnets without one. */
  addressesMs: 100,
  /** Reverse zones of one subnet: more become one larger zone, whose other names are forwarded. */
  zonesOfSubnet: 16,
  /** How often to look for resolvers on the host that have started since, or whether a problem is gone. */
  checkEveryMs: 30_000,
  /** Control groups of resolvers that are told apart, and their depth: services are at the second level. */
  resolverGroups: 8,
  groupLevels: 6,
  /** Captured reverse zones: each is a comparison for every query of the host. Addresses in others have no names. */
  reverseZones: 64,
  /** How long the system bus and systemd-resolved have to reply: they answer from memory. */
  busMs: 10_000,
} as const;
