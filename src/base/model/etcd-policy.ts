/**
 * EtcdPolicy: the etcd cluster that names are read from, which of its keys are names, and how they are read.
 */

/**
 * What CoreDNS does with records and dns11 does not, unless it is asked to. `subtree`: a name answers with all records
 * below it. `text-only`: a record with a text has no CNAME.
 */
export const ETCD_QUIRKS = ["subtree", "text-only"] as const;
export type EtcdQuirk = (typeof ETCD_QUIRKS)[number];

export interface EtcdPolicy {
  /** URLs of the members; none: etcd is not used. */
  readonly endpoints: readonly string[];
  /** The first part of all keys, with a slash in front and none at its end. */
  readonly prefix: string;
  /** The domains whose names are in etcd. */
  readonly zones: readonly string[];
  /** The file with the certificates of the authority that has signed the members' certificates. */
  readonly ca: string | undefined;
  readonly user: string | undefined;
  readonly passwordFile: string | undefined;
  /** How long records are answered that etcd has not confirmed. */
  readonly staleSecondsMax: number;
  readonly quirks: readonly EtcdQuirk[];
  /** Undefined: nothing is written to etcd. */
  readonly publish: PublishPolicy | undefined;
}

/** How the containers of this machine are published for others. */
export interface PublishPolicy {
  /** The zone that the machines share: the first of the setting `zone`. */
  readonly zone: string;
  /** The label that names this machine; undefined: the host name of the engine. */
  readonly machine: string | undefined;
  /**
   * Other machines reach published ports at these, at most one of each family; without any, at the address from which
   * this machine connects to etcd.
   */
  readonly addresses: readonly string[];
  /** Networks whose container addresses other machines reach. */
  readonly routedNetworks: readonly string[];
  readonly leaseSeconds: number;
  /** Members on this machine come first in answers. */
  readonly isNearestFirst: boolean;
}

export const PUBLISH_DEFAULTS: Omit<PublishPolicy, "zone" | "machine"> = {
  addresses: [],
  routedNetworks: [],
  leaseSeconds: 30,
  isNearestFirst: false,
};

export const ETCD_DEFAULTS: EtcdPolicy = {
  endpoints: [],
  prefix: "/skydns",
  zones: [],
  ca: undefined,
  user: undefined,
  passwordFile: undefined,
  staleSecondsMax: 86_400,
  quirks: [],
  publish: undefined,
};
