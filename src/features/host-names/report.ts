import type { ContainerStatus, HostMeansReport } from "../../api/status.ts";
import { type Finding, findingsOf } from "../../base/model/finding.ts";
import { areStubs } from "../../base/model/listener-addresses.ts";
import type { CheckedMachine, StatusLine } from "../contract.ts";

export const checks = {
  "host-names": {
    title: "host names",
    examines: "whether container names resolve on the machine itself, and which of its programs do not see them",
  },
};
const finding = findingsOf(checks);

/** The host's own entry among containers. */
export const HOST_ID = "host";
/** Which sources of names its programs ask. */
export const NSSWITCH = "/etc/nsswitch.conf";
const LIMITS_OF_CAPTURE =
  "except by TCP, which goes to the server asked, and from sockets bound to an interface other than lo, which get no answer";

export function containerLines({ hostNames }: Pick<ContainerStatus, "hostNames">): StatusLine[] {
  if (hostNames === undefined) return [];
  const { zones } = hostNames;
  return [
    { label: "means", text: hostMeansText(hostNames) },
    ...(zones === undefined ? [] : [{ label: "zones", text: zones.join(", ") }]),
  ];
}

/** Whether container names resolve on the machine itself, and which of its programs do not see them. Nothing where they are off. */
export function findings({ status, readHostFile }: Pick<CheckedMachine, "status" | "readHostFile">): Finding[] {
  if (status === undefined) return [];
  const { settings, containers } = status;
  if ((settings["host-names"]?.value ?? "off") === "off") return [];
  const {
    state,
    reason = "",
    hostNames,
    warning,
  } = containers.find(({ id }) => id === HOST_ID) ?? { state: "opening" };
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
  if (!asksResolved(readHostFile(NSSWITCH) ?? "")) return [finding("host-names", "ok", detail)];
  return [
    finding(
      "host-names",
      "warning",
      `${detail}; glibc asks systemd-resolved without DNS (nss-resolve), so its programs do not see them`,
      'Use --host-names=auto where systemd-resolved runs, or remove "resolve" from the line "hosts:" of /etc/nsswitch.conf.',
    ),
  ];
}

export function hostMeansText({ means, why }: HostMeansReport): string {
  return `${means === "resolved" ? "through systemd-resolved" : "by capture"} (${why})`;
}

/**
 * How the programs of a host ask systemd-resolved, in words: by DNS, because its stub is in /etc/resolv.conf, or without DNS, because
 * nss-resolve is in /etc/nsswitch.conf. Undefined if neither is so: then its links do not matter to them.
 */
export function resolvedUse(nsswitch: string, nameservers: readonly string[]): string | undefined {
  if (areStubs(nameservers)) return "its stub is in /etc/resolv.conf";
  return asksResolved(nsswitch) ? "nss-resolve is in /etc/nsswitch.conf" : undefined;
}

/** Whether glibc asks systemd-resolved directly, before or instead of the servers of resolv.conf. */
export function asksResolved(nsswitch: string): boolean {
  const words = /^\s*hosts:(.*)$/m.exec(nsswitch)?.[1]?.split(/\s+/) ?? [];
  const [resolve, dns] = [words.indexOf("resolve"), words.indexOf("dns")];
  return resolve !== -1 && (dns === -1 || resolve < dns);
}
