/**
 * Situation: everything that causes are derived from: a question and its result in one container, and what is known about
 * all containers and the upstream servers of the name. Nothing here is found out by a query.
 */
import { bareName } from "../../base/dns/name.ts";
import type { Cause, CauseCode, LastingFix } from "../../api/causes.ts";
import type { ResolvConf } from "../../container/watch/resolv-conf.ts";
import type { FormerAddress, FormerName } from "../../container/registry/former-addresses.ts";
import type { TlsFailure } from "../../base/model/view.ts";
import type { HeldName } from "../../base/model/visible-names.ts";
import type { KnownContainer, KnownContainers } from "./known-container.ts";

/** The upstream servers for a name. */
export interface RouteState {
  /** The domain of the route; "." for all names. */
  readonly domain: string;
  readonly by: string | undefined;
  readonly isLocal: boolean;
  /** Nothing is forwarded for whoever asks. */
  readonly isRefused?: boolean;
  readonly servers: readonly {
    readonly server: string;
    readonly isDown: boolean;
    /** Docker's own resolver. */
    readonly isDocker?: boolean;
    /** It is asked only when those before it cannot answer. */
    readonly isBackup?: boolean;
    readonly reason: string | undefined;
    /** It answers over UDP, and a moment ago did not over TCP. */
    readonly isTcpBlocked?: boolean;
    /** Why it could not be asked by TLS last, and what to do. */
    readonly tls?: (TlsFailure & { readonly advice: string }) | undefined;
    /** How it failed names of this zone last: a response code, "late" or "silent". */
    readonly failed?: { readonly what: string; readonly tookMs?: number } | undefined;
    /** How long most of its answers take at least. */
    readonly leastMs?: number | undefined;
  }[];
  /** Where servers of the host are listed. */
  readonly places?: readonly { readonly server: string; readonly file: string; readonly line: number }[];
  /** The settings file of dns11, if it has one. */
  readonly settingsFile?: string | undefined;
  /** Servers that are left out, because the container has no external network. */
  readonly withheld: readonly string[];
  /** Containers that cannot be queried, each with the reason. */
  readonly missing: readonly string[];
}

/** A container that has another address than a while ago. */
export interface Move {
  readonly containerId: string;
  readonly container: string;
  readonly networkName: string;
  /** Lower case. */
  readonly names: readonly string[];
  readonly from: string;
  readonly to: string;
  /** A time of the clock of `performance.now`. */
  readonly atMs: number;
}

export interface ApartPlace {
  readonly container: string;
  readonly network: string;
  /** The option that does it. */
  readonly by: string;
  /** The address there is among those that were answered. */
  readonly isAnswered: boolean;
  /** Another network that both are on, where they reach each other. */
  readonly other: string | undefined;
  /** Another network of the client, where this container could be. */
  readonly joinable: string | undefined;
}

/** A name that fails on purpose. */
export interface Refusal {
  readonly cause: Cause;
  /** No source of this machine has a say in it, so nothing else is the cause. */
  readonly isCertain: boolean;
}

/** The `failure` of a name that could not be queried: whether it fails is not known. */
export const NOT_QUERIED = "not queried";

export interface Situation {
  /** The container whose programs query, and the one whose network namespace it uses; usually the same. */
  readonly client: KnownContainer;
  readonly owner: KnownContainer;
  readonly name: string;
  readonly typeName: string;
  /** A response code, NODATA or NOT_QUERIED; undefined if there was an answer. */
  readonly failure: string | undefined;
  /** The answer or failure came from upstream servers, or from the cache. */
  readonly isFromUpstream: boolean;
  /** The server that has just given the answer or failure, if one was asked. */
  readonly server?: string | undefined;
  /** dns11 has denied the name itself, so no server was asked. */
  readonly isDenied?: boolean;
  readonly isTruncated: boolean;
  /** What the other type of address gives, A or AAAA; without a failure, it has an answer. */
  readonly otherFamily?: { readonly type: string; readonly failure: string | undefined } | undefined;
  /** Addresses of IPv6 that programs try, and to which there is no route. */
  readonly unroutable?: { readonly addresses: readonly string[]; readonly from: string } | undefined;
  /** The containers that have the name on a network of the client which keeps its containers apart. */
  readonly apart?: readonly ApartPlace[] | undefined;
  /** Why the name is not forwarded: only Docker's resolver may know it. */
  readonly held?: HeldName | undefined;
  /** A feature refuses the name now. */
  readonly refusal?: Refusal | undefined;
  /** The answer is a local decision about a special name. */
  readonly isSpecial: boolean;
  readonly route: RouteState | undefined;
  /** What a feature knows of a name that no container of this engine has. */
  readonly ofFeature?: Cause | undefined;
  /** The zone of dns11's own that the name is below, and which of its sources has it. */
  readonly ownZone?: { readonly zone: string; readonly source: string } | undefined;
  /** Containers with the name that have moved since the client last queried it. */
  readonly moves: readonly (Move & { readonly agoMs: number })[];
  readonly known: KnownContainers;
  /** What containers have left lately, the oldest first. */
  readonly former?: readonly FormerAddress[];
  /** What running containers were called, the oldest first. */
  readonly formerNames?: readonly FormerName[];
  /** Of services with one name, a client gets that of its own project. */
  readonly prefersOwnProject: boolean;
  /** The addresses at which dns11 answers the client. */
  readonly resolvers: readonly string[];
  /** A file of a user that is mounted over its resolv.conf: it is not read. */
  readonly mountedResolvConf?: string | undefined;
  readonly resolvConf: Pick<ResolvConf, "nameservers" | "search" | "options"> | undefined;
  readonly nowMs: number;
}

interface CauseParts {
  readonly fix?: string | null;
  readonly advice?: string;
  readonly about?: string;
  readonly lastingFix?: LastingFix | null;
  readonly isBreaking?: boolean;
}

export function isSingleLabel(name: string): boolean {
  return !bareName(name).includes(".");
}

export function cause(code: CauseCode, sentence: string, parts: CauseParts = {}): Cause {
  return { code, sentence, fix: null, lastingFix: null, isBreaking: false, ...parts };
}
