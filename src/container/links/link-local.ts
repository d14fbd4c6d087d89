/**
 * LinkLocal: the link-local IPv6 address that the kernel forms from a MAC address (RFC 4291, appendix A).
 */
const FLIP_UNIVERSAL = 0x02;

export function linkLocalOf(mac: string): string {
  const bytes = mac.split(":").map((part) => Number.parseInt(part, 16));
  const [a = 0, b = 0, c = 0, d = 0, e = 0, f = 0] = bytes;
  const groups = [((a ^ FLIP_UNIVERSAL) << 8) | b, (c << 8) | 0xff, 0xfe00 | d, (e << 8) | f];
  return `fe80::${groups.map((group) => group.toString(16)).join(":")}`;
}
