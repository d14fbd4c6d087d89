/**
 * Which capabilities a run has: those that it cannot work without, and a few that it can, where it is given them. Whatever
 * else it was started with it gives up before it does anything.
 */
import type { RunSettings } from "../config/settings.ts";
import { METRICS_OFF } from "../base/model/metrics-policy.ts";
import { CAPABILITIES } from "../container/preflight.ts";
import { dropCapabilities } from "../kernel/capabilities.ts";

/** Below this a port takes a capability. */
const PORTS_FOR_ALL_FROM = 1024;

/**
 * Beside what checkCapabilities insists on: giving the control socket to the group docker, reading settings and lists of
 * nameservers in folders that are not root's, and rules of the older iptables, ours or those that a killed instance left.
 */
const USEFUL = ["CAP_CHOWN", "CAP_DAC_READ_SEARCH", "CAP_NET_RAW"];

/** Starts the program anew, in the same process, where it has more; returns what it has too much, and cannot give up. */
export function dropUnneededCapabilities({ capabilities, metrics }: RunSettings): readonly string[] {
  if (capabilities === "keep") return [];
  const port = metrics.address === METRICS_OFF ? PORTS_FOR_ALL_FROM : Number(/\d+$/.exec(metrics.address)?.[0]);
  const forPort = port > 0 && port < PORTS_FOR_ALL_FROM ? ["CAP_NET_BIND_SERVICE"] : [];
  return dropCapabilities([...CAPABILITIES.map(({ name }) => name), ...USEFUL, ...forPort]);
}
