/**
 * DropCapabilities: the capabilities that a run keeps: those that it cannot work without, and a few that it uses where
 * it has them. It drops all others before it does anything else.
 */
import type { RunSettings } from "../config/settings.ts";
import { METRICS_OFF } from "../base/model/metrics-policy.ts";
import { CAPABILITIES } from "../container/preflight.ts";
import { dropCapabilities } from "../kernel/capabilities.ts";

/** A port below this takes a capability. */
const FIRST_UNPRIVILEGED_PORT = 1024;

/**
 * Beside those that checkCapabilities requires: for giving the control socket to the group docker, for reading settings
 * and resolv.conf files in folders of other users, and for iptables-legacy rules, ours or those that a killed instance
 * left.
 */
const OPTIONAL = ["CAP_CHOWN", "CAP_DAC_READ_SEARCH", "CAP_NET_RAW"];

/** Restarts the program in the same process where it has more; returns those in excess that it cannot drop. */
export function dropUnneededCapabilities({ capabilities, metrics }: RunSettings): readonly string[] {
  if (capabilities === "keep") return [];
  const port = metrics.address === METRICS_OFF ? FIRST_UNPRIVILEGED_PORT : Number(/\d+$/.exec(metrics.address)?.[0]);
  const forPort = port > 0 && port < FIRST_UNPRIVILEGED_PORT ? ["CAP_NET_BIND_SERVICE"] : [];
  return dropCapabilities([...CAPABILITIES.map(({ name }) => name), ...OPTIONAL, ...forPort]);
}
