/**
 * Host names check: whether container names resolve on the machine itself, and which of its programs do not see them.
 */
import type { Status } from "../../api/status.ts";
import { asksResolved } from "../../container/host/resolved/resolved-use.ts";
import { type EngineHost, readEngineFile } from "../../container/namespace/engine-host.ts";
import { type Finding, finding } from "../../base/model/finding.ts";
import { hostMeansText } from "../../base/model/host-policy.ts";

const HOST = "host";
const LIMITS_OF_CAPTURE =
  "except by TCP, which goes to the server asked, and from sockets bound to an interface other than lo, which get no answer";

/** Finds nothing where host names are off or dns11 does not run. */
export function hostNamesFindings(
  { settings, containers }: Pick<Status, "settings" | "containers">,
  host: Pick<EngineHost, "root">,
): Finding[] {
  if ((settings["host-names"]?.value ?? "off") === "off") return [];
  const { state, reason = "", hostNames, warning } = containers.find(({ id }) => id === HOST) ?? { state: "opening" };
  if (state === "opening" || state === "verifying")
    return [finding("host-names", "warning", "not ready yet", "Run `dns11 doctor` again in a moment.")];
  if (state !== "attached") return [finding("host-names", "problem", reason, "The reason says what to change.")];
  const domains = [String(settings["host-domain"]?.value), ...(hostNames?.zones ?? [])];
  const how = hostNames === undefined ? "" : ` ${hostMeansText(hostNames)}`;
  const works = `names below ${domains.map((each) => `"${each}"`).join(" and ")} resolve on this machine${how}`;
  if (warning !== undefined)
    return [finding("host-names", "warning", `${works}; ${warning}`, "The warning says what to change.")];
  if (hostNames?.means === "resolved") return [finding("host-names", "ok", works)];
  const detail = `${works}, ${LIMITS_OF_CAPTURE}`;
  if (!asksResolved(readEngineFile(host, "/etc/nsswitch.conf") ?? "")) return [finding("host-names", "ok", detail)];
  return [
    finding(
      "host-names",
      "warning",
      `${detail}; glibc asks systemd-resolved without DNS (nss-resolve), so its programs do not see them`,
      'Use --host-names=auto where systemd-resolved runs, or remove "resolve" from the line "hosts:" of /etc/nsswitch.conf.',
    ),
  ];
}
