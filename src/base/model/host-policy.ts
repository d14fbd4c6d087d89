/**
 * HostPolicy: whether programs on the machine itself resolve container names, by which means, and below which domain.
 */

/** `capture`: dns11 answers what programs ask the servers in /etc/resolv.conf for names of the domain. */
export const HOST_MEANS = ["off", "capture"] as const;

export interface HostPolicy {
  readonly means: (typeof HOST_MEANS)[number];
  /** In lower case, without dots at its ends. */
  readonly domain: string;
}

export const HOST_DEFAULTS: HostPolicy = { means: "off", domain: "docker" };
