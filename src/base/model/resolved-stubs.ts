/**
 * ResolvedStubs: the addresses of systemd-resolved in a resolv.conf: the full resolver and the proxy-only stub.
 */
export const RESOLVED_STUBS: ReadonlySet<string> = new Set(["127.0.0.53", "127.0.0.54"]);

/** Whether programs that read these nameservers ask systemd-resolved, and nobody else. */
export function areStubs(nameservers: readonly string[]): boolean {
  return nameservers.length > 0 && nameservers.every((address) => RESOLVED_STUBS.has(address));
}
