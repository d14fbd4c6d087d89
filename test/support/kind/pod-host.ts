/**
 * Owns what a place must tell for pods to be put behind it, be it a container or a namespace that plays a node.
 */
import { check } from "../program/command.ts";
import { inNetns } from "../rig/netns.ts";

export interface PodHost {
  readonly netnsPath: string;
  /** Which of the two iptables the rules of pods are written with. */
  readonly iptables: "nft" | "legacy";
  resolvConf(): Promise<string>;
}

/** From the machine, for inside a container the settings may be read-only. */
export async function setSysctl(netnsPath: string, key: string, value: number): Promise<void> {
  await checkIn(netnsPath, "sysctl", ["-qw", `${key}=${value}`]);
}

/**
 * A kernel tells a peer that nobody listens six times in a row, then once a second, and to all others it is silence. A
 * test that counts refusals needs each of them.
 */
export async function disableIcmpRateLimit(netnsPath: string): Promise<void> {
  await setSysctl(netnsPath, "net.ipv4.icmp_ratelimit", 0);
  await setSysctl(netnsPath, "net.ipv6.icmp.ratelimit", 0);
}

/** A program of the machine in the namespace, with the machine's own files. */
export async function checkIn(
  netnsPath: string,
  command: string,
  args: readonly string[],
  input?: string,
): Promise<string> {
  const [first = "", ...rest] = inNetns(netnsPath, command, args);
  return await check(first, rest, { input });
}
