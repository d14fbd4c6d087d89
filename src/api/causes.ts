/**
 * Causes: why a name fails in a container, and what helps, as part of explanations and failures. A code is stable, so that
 * programs can branch on it; the sentences are for people and may change.
 */

export type CauseCode =
  /** The name is that of a container on a network that the client is not on. */
  | "other-network"
  /** The same, but only in another Compose project. */
  | "other-project"
  /** The container with this name is not running. */
  | "not-running"
  /** The container is on no network with names. */
  | "no-dns-name"
  /** Another name on the client's networks is very similar. */
  | "similar-name"
  /** The container has an IPv6 address only. */
  | "no-ipv4"
  /** By now it resolves. */
  | "resolves-now"
  /** The container has another address than when the client last queried its name. */
  | "moved"
  /** The container is paused. */
  | "paused"
  /** An upstream server has an answer for what is a container's name elsewhere. */
  | "shadowed"
  /** Containers of several projects have the name on one network. */
  | "ambiguous"
  /** A swarm service has the name, and no running, healthy task. */
  | "no-healthy-task"
  /** Gossip of the swarm has lost all other machines, one of which may have the name. */
  | "swarm-alone"
  /** No container on this engine has the name. */
  | "unknown-name"
  /** Upstream servers report that the name does not exist. */
  | "does-not-exist"
  /** A rule of the settings, or of DNS, keeps the name from being forwarded. */
  | "not-forwarded"
  /** The client has no external network, so servers of the host are not queried for it. */
  | "internal-network"
  /** There is no upstream server. */
  | "no-upstream"
  /** All upstream servers for the name are down. */
  | "upstreams-down"
  /** The upstream servers are up, but fail for this name. */
  | "upstream-error"
  /** They are up, and refuse such names to this machine. */
  | "upstream-refused"
  /** They are up, and answer such names too late, or not at all. */
  | "upstream-slow"
  /** Docker's resolver fails for names that the host's servers have. */
  | "docker-broken"
  /** Names in local are announced by machines of the local network: nobody asks there, or nobody has announced it. */
  | "not-announced"
  /** dns11 should serve the container, but cannot. */
  | "not-served"
  /** Programs in the container query another server. */
  | "resolv-conf"
  /** Programs query other names because of a search list. */
  | "search-list"
  | "truncated"
  /** The container is on the network, but no longer has the name of its service there. */
  | "lost-alias"
  /** The container ends and is started again, over and over. */
  | "crash-loop"
  /** A has an answer and AAAA an error, or the other way round. */
  | "one-family"
  /** Programs try an IPv6 address first to which there is no route. */
  | "no-ipv6-route"
  /** The name leads to an address on a network that keeps its containers apart. */
  | "kept-apart"
  /** The Compose file has a service with this name, of which there is no container. */
  | "not-created"
  /** The container uses the network of one that is gone, or of one as it was before it was started again. */
  | "namespace-gone"
  /** The container with this name was removed lately. */
  | "removed"
  /** The container with this name has another one since it was renamed. */
  | "renamed"
  /** What was looked up is a URL, or has a port. */
  | "not-a-name"
  /** The name leads to a container in which nothing listens on the port, or for nobody else: it is not DNS. */
  | "not-listening"
  /** A name for the machine itself that containers on Linux have to be given. */
  | "host-gateway"
  /** A program's own files answer before any server is asked. */
  | "hosts-file"
  /** The container's nsswitch.conf has programs query no server, or query before they read its own files. */
  | "nsswitch"
  /** A server answers over UDP, but not over TCP, which this answer needs. */
  | "tcp-blocked"
  /** Of a server that is asked by TLS: there is no connection to its port. */
  | "tls-blocked"
  /** Nothing listens there, or what does speaks no TLS. */
  | "tls-absent"
  /** Its certificate is for another name. */
  | "tls-name"
  /** Its certificate is of no authority that the machine trusts. */
  | "tls-untrusted"
  /** Its certificate is not valid yet, or not any more; or the clock is wrong. */
  | "tls-time"
  /** The file of authorities cannot be used. */
  | "tls-authorities"
  /** A policy refuses the name to the container. */
  | "policy-denied";

const TLS = ["tls-blocked", "tls-absent", "tls-name", "tls-untrusted", "tls-time", "tls-authorities"] as const;

/** Names fail because of the state of servers, as a check of the servers would say, too. */
export const OF_SERVERS: ReadonlySet<string> = new Set<CauseCode>([
  ...(["upstreams-down", "upstream-error", "upstream-refused", "upstream-slow", "tcp-blocked"] as const),
  ...TLS,
]);

/** States that end without a change of the name: if another cause is found now, this one is over. */
export const PASSING: ReadonlySet<CauseCode> = new Set([
  ...(["upstreams-down", "tcp-blocked", "no-upstream", "internal-network", "crash-loop"] as const),
  ...(["no-healthy-task", "swarm-alone"] as const),
  ...TLS,
]);

/** A change of the Compose file. */
export interface LastingFix {
  /** null if it is not known. */
  readonly file: string | null;
  readonly service: string;
  /** The key to change, such as `services.api.networks`. */
  readonly key: string;
  readonly change: string;
  /** The command that applies it; missing if the labels of the container do not tell. */
  readonly command?: string;
}

export interface Cause {
  readonly code: CauseCode;
  /** For people. */
  readonly sentence: string;
  /** A command that can be run as it is. */
  readonly fix: string | null;
  /** What to do where no command can do it. */
  readonly advice?: string;
  readonly lastingFix: LastingFix | null;
  /** What has to change, such as a network: causes with the same code and this have one fix. Missing where `fix` says it. */
  readonly about?: string;
  /** It keeps the name of a container from resolving, until it is fixed. */
  readonly isBreaking: boolean;
}

/** What helps against a cause, or against several that are one. */
interface Fixes {
  readonly fixes: readonly string[];
  readonly advice?: string | undefined;
  readonly lastingFixes: readonly LastingFix[];
}

interface Remedy {
  /** Empty for the command that applies the change before it. */
  readonly label: "fix" | "and" | "for good" | "";
  readonly text: string;
  readonly isCommand: boolean;
}

export function fixesOf({ fix, advice, lastingFix }: Cause): Fixes {
  return { fixes: fix === null ? [] : [fix], advice, lastingFixes: lastingFix === null ? [] : [lastingFix] };
}

/** In the order in which somebody does it: what helps now, then what lasts. */
export function remediesOf({ fixes, advice, lastingFixes }: Fixes): Remedy[] {
  return [
    ...fixes.map((text) => ({ label: "fix", text, isCommand: true }) as const),
    ...(advice === undefined
      ? []
      : [{ label: fixes.length === 0 ? "fix" : "and", text: advice, isCommand: false } as const]),
    ...lastingFixes.flatMap((each) => [
      { label: "for good", text: lastingText(each), isCommand: false } as const,
      ...(each.command === undefined ? [] : [{ label: "", text: each.command, isCommand: true } as const]),
    ]),
  ];
}

export function lastingText({ file, key, change }: Pick<LastingFix, "file" | "key" | "change">): string {
  return `${file ?? "the Compose file"}: ${key}: ${change}`;
}

/** The error of the client for test suites when a name has not resolved in time. */
export interface NotResolved extends Error {
  readonly code: string;
  /** The command that helps, if there is one. */
  readonly remedy: string | undefined;
  /** What dns11 knows, the most likely cause first; its sentence is also in the message. Empty if it knows nothing. */
  readonly causes: readonly Cause[];
}
