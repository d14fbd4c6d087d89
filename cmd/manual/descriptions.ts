/**
 * Descriptions for the manual of what the help does not show: settings keys without a flag, and exit codes. The types
 * require an entry for each.
 */
import type { Key } from "../../src/config/settings-layer.ts";
import type { SwitchKey } from "../../src/config/switches.ts";
import type { EXIT } from "../exit-code.ts";
import type { FlagKey } from "../flags.ts";

export const KEY_DESCRIPTIONS: Readonly<Record<Exclude<Key, SwitchKey | FlagKey>, string>> = {
  networks: "upstream servers for the containers of a network, by network name: {NAME: {dns: [...]}}",
  records:
    "names that containers resolve, with their records: {NAME: ADDRESS} or {NAME: {cname: NAME}}; also below networks.NAME and projects.NAME",
  "forward.order": "order of upstream servers: by health, one after the other as listed, or all at once",
  "forward.budget": "time limit for the answer to a query, including all retries",
  "forward.max-concurrent": "concurrent forwarded queries per container",
  "cache.size": "memory for cached replies of all containers",
  "cache.min-ttl": "lower limit for the TTL of cached replies",
  "cache.max-ttl": "upper limit for the TTL of cached replies",
  "cache.max-negative-ttl": "upper limit for the TTL of negative replies (NXDOMAIN, NODATA); 0 does not cache them",
  "cache.negative-ttl-without-soa": "TTL of negative replies without an SOA record",
  "cache.max-stale": "how long an expired reply may be served when upstream servers fail; 0 disables it",
  "kind.families": "address families of the nameservers in a node's resolv.conf",
  "kind.route-localnet": "interfaces on which route_localnet is enabled in the mode loopback",
  "kind.expose": "answer queries from other containers on the networks of the node as well",
  "kind.force": "use port 53 of the node even if another process listens on it",
  "kind.host-docker-internal": "how host.docker.internal resolves in pods",
  "metrics.containers": "number of containers with metrics of their own; the others are counted together",
  "forward.missing-container":
    "names whose only upstream servers are containers that do not run: they fail, or the next route applies",
  "etcd.endpoints":
    "client URLs of the members of an etcd cluster whose records containers resolve: [http://10.0.0.5:2379]",
  "etcd.prefix": "first part of the keys of all records",
  "etcd.zones": "domains whose names are in etcd; reverse zones such as 0.10.in-addr.arpa among them",
  "etcd.ca": "file with the certificates of the authority that signed those of the members, in PEM",
  "etcd.user": "user of etcd; it needs permission to read the keys below the prefix",
  "etcd.password-file": "file with that user's password",
  "etcd.max-stale": "how long the last known records are answered while etcd cannot be reached; then queries fail",
  "etcd.quirks":
    "what CoreDNS does and dns11 does not: subtree (a name answers with all records below it), text-only (a record with a text is no CNAME)",
  "etcd.publish": "write the containers of this machine to etcd, and resolve those that other machines have written",
  "etcd.machine": "name of this machine in etcd; without it, the host name of the engine",
  "etcd.address":
    "addresses at which other machines reach the published ports of this one; without it, the one that connects to etcd",
  "etcd.routed-networks": "networks whose containers other machines reach at their own addresses",
  "etcd.lease": "how long the containers of a machine are in etcd after it has failed",
  "etcd.nearest-first": "answer with the members of a service on this machine first",
  "forward.domain-needed": "do not forward names without a dot, unless a route names them",
  "forward.bogus-priv": "do not forward reverse queries for private addresses, unless a route names them",
};

export const EXIT_DESCRIPTIONS: Readonly<Record<keyof typeof EXIT, string>> = {
  ok: "Success. For run: stopped by a signal, all containers handed back.",
  failure: "The operation failed, or a check found a problem.",
  usage:
    "The command line, the environment or the settings file is invalid; there is no such container, node or project. For the doctor commands: some checks could not be done.",
  cannotServe: "dns11 cannot work here: capabilities, kernel, platform, or an engine whose namespaces are elsewhere.",
  locked: "Another instance already serves this engine.",
  noReply: "A lookup got no reply.",
};
