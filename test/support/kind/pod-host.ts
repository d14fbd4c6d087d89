/** What startPod() needs to know about a node, be it a container or a namespace. */
import { check } from "../program/command.ts";
import { inNetns } from "../rig/netns.ts";

export interface PodHost {
  readonly netnsPath: string;
  /** The iptables variant in which the rules for pods are written. */
  readonly iptables: "nft" | "legacy";
  resolvConf(): Promise<string>;
}

/** Set from outside: inside a container /proc/sys may be read-only. */
export async function setSysctls(netnsPath: string, settings: Readonly<Record<string, number>>): Promise<void> {
  const assignments = Object.entries(settings).map(([key, value]) => `${key}=${value}`);
  await checkIn(netnsPath, "sysctl", ["-qw", ...assignments]);
}

/**
 * The kernel limits ICMP errors: six in a row, then one a second for each peer; the others are dropped. A test that
 * counts refusals needs each of them. As paths below /proc/sys/net.
 */
export const NO_ICMP_RATE_LIMIT: readonly string[] = ["ipv4/icmp_ratelimit=0", "ipv6/icmp/ratelimit=0"];

/** Where it is off already: one host has many nodes. */
const unlimited = new Set<string>();

export async function disableIcmpRateLimit(netnsPath: string): Promise<void> {
  if (unlimited.has(netnsPath)) return;
  await checkIn(netnsPath, "sysctl", ["-qw", ...NO_ICMP_RATE_LIMIT.map((setting) => `net/${setting}`)]);
  unlimited.add(netnsPath);
}

/** Runs a program of the machine in the namespace, with the machine's files. */
export async function checkIn(
  netnsPath: string,
  command: string,
  args: readonly string[],
  input?: string,
): Promise<string> {
  const [first = "", ...rest] = inNetns(netnsPath, command, args);
  return await check(first, rest, { input });
}
