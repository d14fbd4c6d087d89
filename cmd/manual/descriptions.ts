/**
 * Meanings: what the manual says where the program says it to nobody else: keys of the settings file that are no flags, and
 * exit codes. Whoever adds one and leaves it out here is told by the compiler.
 */
import type { Key } from "../../src/config/settings-layer.ts";
import type { SwitchKey } from "../../src/config/switches.ts";
import type { EXIT } from "../exit-code.ts";
import type { FlagKey } from "../flags.ts";

export const KEY_DESCRIPTIONS: Readonly<Record<Exclude<Key, SwitchKey | FlagKey>, string>> = {
  networks: "servers for the containers of a network, by its name: {NAME: {dns: [...]}}",
  "forward.order": "in which order servers are asked: by health, strictly one after the other, or all at once",
  "forward.budget": "how long a whole answer may take",
  "forward.max-concurrent": "queries of one container that may be under way",
  "cache.size": "memory for the replies of servers, of all containers together",
  "cache.min-ttl": "what servers say a reply lives is raised to this",
  "cache.max-ttl": "and cut to this",
  "cache.max-negative-ttl": "denials live no longer than this; 0 keeps none",
  "cache.negative-ttl-without-soa": "how long a denial lives that does not say so itself",
  "cache.max-stale": "how long a reply that is over may stand in for servers that fail; 0: never",
  "kind.families": "which addresses the resolv.conf of a node names",
  "kind.route-localnet": "where route_localnet is set for the way loopback",
  "kind.expose": "whether neighbours of the node may ask, too",
  "kind.force": "whether port 53 of the node is taken although somebody listens there",
  "kind.host-docker-internal": "what becomes of host.docker.internal in pods",
  "metrics.containers": "how many containers have metrics of their own; the others are counted together",
  "forward.domain-needed": "whether names without a dot stay here, unless a route of their own says where they go",
  "forward.bogus-priv": "whether reverse names of private addresses stay here, unless a route of their own says so",
};

export const EXIT_DESCRIPTIONS: Readonly<Record<keyof typeof EXIT, string>> = {
  ok: "Done; for run: stopped by a signal, everything handed back.",
  failure: "Something failed on the way, or something is wrong where somebody asked.",
  usage:
    "The command line, the environment or the settings file cannot be understood; for the doctors: not everything could be looked at.",
  cannotServe: "dns11 cannot work here: capabilities, kernel, platform, or an engine whose namespaces are elsewhere.",
  locked: "Another instance serves this engine already.",
  noReply: "A lookup got no reply.",
};
