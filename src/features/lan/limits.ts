/** Limits of the addresses of the host at which others than containers may ask. */
export const LAN_LIMITS = {
  entries: 8,
  blocks: 64,
  /** The shortest prefixes of blocks of public addresses that may ask. Whoever writes a shorter one means the internet. */
  prefixMin: { ipv4: 16, ipv6: 32 },
  /**
   * Packets of one source that the kernel lets through to such an address, in a second and at once; what is beyond is lost. A source is
   * an IPv4 address, or the first half of an IPv6 address. A query by TCP takes five. Whoever forges the address of a machine that
   * may ask has 100 KB sent to it in a second at most.
   */
  packetsPerSecond: 200,
  packetsBurst: 400,
  /** Sources that are counted at once, of each family; one more gets nothing until another has been quiet for that time. */
  sources: 16_384,
  sourceMs: 5_000,
} as const;
