/**
 * UpstreamFixes: what to change for another upstream server: the container, a file of the host, or the settings of dns11 or
 * dockerd, depending on where the servers of a name come from.
 */
import type { Cause } from "../../api/causes.ts";
import { serviceChange } from "./fixes.ts";
import type { KnownContainer } from "./known-container.ts";
import type { RouteState } from "./situation.ts";

/** The origin of servers that a container has by --dns. */
const OWN_SERVERS = "--dns of the container";
const HOST_FILE = "the host's current resolv.conf";
const SETTING = /^the setting (\S+)/;
const LABEL = /^label (\S+) of the container$/;

type Change = Pick<Cause, "advice" | "lastingFix">;

/** `servers`: those to replace. */
export function serverChange(
  { by = "", places = [], settingsFile }: Pick<RouteState, "by" | "places" | "settingsFile">,
  owner: KnownContainer,
  servers: readonly string[],
): Partial<Change> {
  const list = servers.join(", ");
  if (by === OWN_SERVERS) {
    const lastingFix = serviceChange(owner, "dns", `replace or remove ${list}`);
    return lastingFix === null
      ? { advice: `create ${owner.name} again with another --dns: Docker cannot change that of a container` }
      : { lastingFix };
  }
  const [, label] = LABEL.exec(by) ?? [];
  if (label !== undefined) {
    const lastingFix = serviceChange(owner, "labels", `change ${label}: replace ${list}`);
    return lastingFix === null ? { advice: `create ${owner.name} again with another label ${label}` } : { lastingFix };
  }
  const [, setting] = SETTING.exec(by) ?? [];
  if (setting !== undefined) {
    const where =
      settingsFile === undefined
        ? `--${setting} of dns11 run, and start it again`
        : `${settingsFile}, then run: dns11 reload`;
    return { advice: `replace ${list} in "${setting}" in ${where}` };
  }
  if (by === HOST_FILE) {
    const found = places.filter(({ server }) => servers.includes(server));
    if (found.length === 0) return { advice: `replace ${list} in /etc/resolv.conf of the Docker host` };
    const where = found.map(({ server, file, line }) => `${server} in line ${line} of ${file}`);
    return { advice: `on the Docker host, replace ${where.join(", ")}: dns11 reads the file again at once` };
  }
  return { advice: `replace ${list} in "dns" of dockerd (daemon.json or --dns), and start dockerd again` };
}
