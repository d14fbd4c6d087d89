/**
 * Restart: what a run has to be before its threads are: with those capabilities that it cannot work without and a few that it
 * uses where it has them, and with a pool of threads in which others' locks can be waited for. It restarts in the same process
 * where it is not so.
 */
import type { RunSettings } from "../config/settings.ts";
import { METRICS_OFF } from "../base/model/metrics-policy.ts";
import { CAPABILITIES } from "../container/preflight.ts";
import { restartWith } from "../kernel/capabilities.ts";
import { POOL_THREADS, POOL_VARIABLE } from "../base/limits.ts";

/** A port below this takes a capability. */
const FIRST_UNPRIVILEGED_PORT = 1024;

/**
 * Beside those that checkCapabilities requires: for giving the control socket to the group docker, and for reading settings
 * and resolv.conf files in folders of other users.
 */
const OPTIONAL = ["CAP_CHOWN", "CAP_DAC_READ_SEARCH"];

/** Returns the capabilities in excess that it cannot drop. */
export function restartIfNeeded({ metrics }: RunSettings): readonly string[] {
  const port = metrics.address === METRICS_OFF ? FIRST_UNPRIVILEGED_PORT : Number(/\d+$/.exec(metrics.address)?.[0]);
  const forPort = port > 0 && port < FIRST_UNPRIVILEGED_PORT ? ["CAP_NET_BIND_SERVICE"] : [];
  const needed = [...CAPABILITIES.map(({ name }) => name), ...OPTIONAL, ...forPort];
  return restartWith(needed, { [POOL_VARIABLE]: String(POOL_THREADS) });
}
