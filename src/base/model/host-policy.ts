/**
 * HostPolicy: whether programs on the machine itself resolve container names, by which means, and below which domain.
 */

/**
 * `capture`: dns11 answers what programs ask the servers in /etc/resolv.conf for names of the domain. `resolved`:
 * systemd-resolved asks dns11 for them. `auto`: the second where programs ask systemd-resolved, else the first.
 */
export const HOST_MEANS = ["off", "auto", "resolved", "capture"] as const;

/** The means in use, and why this one. */
export interface HostMeansReport {
  readonly means: "resolved" | "capture";
  readonly why: string;
  /** The zones with names of services whose names resolve there, too. */
  readonly zones?: readonly string[];
}

export function hostMeansText({ means, why }: HostMeansReport): string {
  return `${means === "resolved" ? "through systemd-resolved" : "by capture"} (${why})`;
}

export interface HostPolicy {
  readonly means: (typeof HOST_MEANS)[number];
  /** In lower case, without dots at its ends. */
  readonly domain: string;
  /** The zones of the settings, which resolve on the host as well. */
  readonly zones: readonly string[];
}

export const HOST_DEFAULTS: HostPolicy = { means: "off", domain: "docker", zones: [] };
