/**
 * Host names check: whether container names resolve on the machine itself, and which of its programs do not see them.
 */
import type { Status } from "../../api/status.ts";
import { type EngineHost, readEngineFile } from "../../container/namespace/engine-host.ts";
import { type Finding, finding } from "../../base/model/finding.ts";

const HOST = "host";
const LIMITS_OF_CAPTURE =
  "except by TCP, which goes to the server asked, and from sockets bound to an interface other than lo, which get no answer";

/** Nothing where host names are off or dns11 does not run. */
export function hostNamesFindings(
  { settings, containers }: Pick<Status, "settings" | "containers">,
  host: Pick<EngineHost, "root">,
): Finding[] {
  if ((settings["host-names"]?.value ?? "off") === "off") return [];
  const { state, reason = "" } = containers.find(({ id }) => id === HOST) ?? { state: "opening" };
  if (state === "opening" || state === "verifying")
    return [finding("host-names", "warning", "not ready yet", "Run `dns11 doctor` again in a moment.")];
  if (state !== "attached") return [finding("host-names", "problem", reason, "The reason says what to change.")];
  const domain = String(settings["host-domain"]?.value);
  const detail = `names below "${domain}" resolve on this machine, ${LIMITS_OF_CAPTURE}`;
  if (!asksResolved(readEngineFile(host, "/etc/nsswitch.conf") ?? "")) return [finding("host-names", "ok", detail)];
  return [
    finding(
      "host-names",
      "warning",
      `${detail}; glibc asks systemd-resolved without DNS (nss-resolve), so its programs do not see them`,
      'Remove "resolve" from the line "hosts:" of /etc/nsswitch.conf: glibc then asks the server in /etc/resolv.conf.',
    ),
  ];
}

/** Whether glibc asks systemd-resolved directly, before or instead of the servers of resolv.conf. */
export function asksResolved(nsswitch: string): boolean {
  const words = /^\s*hosts:(.*)$/m.exec(nsswitch)?.[1]?.split(/\s+/) ?? [];
  const [resolve, dns] = [words.indexOf("resolve"), words.indexOf("dns")];
  return resolve !== -1 && (dns === -1 || resolve < dns);
}
