/**
 * ListenerAddresses: where dns11 answers outside of containers' namespaces. They are the same on every machine, so that a file of settings,
 * or an image, can name them. In a container's list of servers they stand for the host's servers, because dns11 would query itself.
 */
import { addressBytes, isSameAddress } from "./address.ts";

export const LISTENER_ADDRESSES = {
  /** Link-local: no network has it, and no router forwards to it. */
  ipv4: "169.254.53.53",
  /** In the unique local prefix that spells "dns11". */
  ipv6: "fd64:6e73:3131::53",
} as const;

/**
 * "dns2" and "dns3". The listener's rules mark arriving packets: those of a known container, and those of one that may just have started.
 */
export const LISTENER_MARKS = { known: 0x646e7332, new: 0x646e7333 } as const;

export function isListenerAddress(text: string): boolean {
  return Object.values(LISTENER_ADDRESSES).some((each) => isSameAddress(each, text));
}

export function listenerAddressBytes(): readonly Uint8Array[] {
  return Object.values(LISTENER_ADDRESSES).flatMap((address) => addressBytes(address) ?? []);
}

/**
 * The addresses of systemd-resolved in a resolv.conf: the full resolver and the proxy-only stub.
 */
export const RESOLVED_STUBS: ReadonlySet<string> = new Set(["127.0.0.53", "127.0.0.54"]);

/** Whether programs that read these nameservers query systemd-resolved only. */
export function areStubs(nameservers: readonly string[]): boolean {
  return nameservers.length > 0 && nameservers.every((address) => RESOLVED_STUBS.has(address));
}
