/**
 * Lease: the lines of `POST /v1/lease`, a request that stays open. Each line that a client sends adds or removes a rule, and is
 * answered by a line once it is in force. When the connection ends, so does everything that it added.
 */

/** Which containers are meant, also ones that start later; without any field, all. */
export interface LeaseScope {
  /** A name, the beginning of an ID, or a Compose service. */
  readonly container?: string;
  /** A Compose project, and a service of it. */
  readonly project?: string;
  readonly service?: string;
  /** On this network. */
  readonly network?: string;
  /** A label, as `KEY` or `KEY=VALUE`. */
  readonly label?: string;
}

export const RULE_ACTIONS = [
  "nxdomain",
  "nodata",
  "servfail",
  "refused",
  "drop",
  "delay",
  "truncate",
  "answer",
  "sequence",
  "only",
] as const;
export type RuleActionName = (typeof RULE_ACTIONS)[number];

/** An answer as in the settings' `records`: an address, a list of them, or a map of records; or a response code. */
export type RuleAnswer = unknown;

export interface RuleRequest {
  /** `x.test` that name, `*.x.test` one label more, `**.x.test` any number more, `**` every name. Not for `only`. */
  readonly name?: string;
  readonly action: RuleActionName;
  readonly in?: LeaseScope;
  /** Only queries of these types. */
  readonly types?: readonly string[];
  /** Only queries over this. */
  readonly over?: "udp" | "tcp";
  /** Only the first so many of each type. */
  readonly count?: number;
  /** The first of so many of each type, again and again. */
  readonly every?: number;
  /** Each with this probability; the same seed gives the same sequence. */
  readonly probability?: number;
  readonly seed?: number;
  /** Names are counted each on its own. */
  readonly perName?: boolean;
  /** Of `delay`: how long, at most 60,000, and by how much more or less. */
  readonly ms?: number;
  readonly jitter?: number;
  /** Of `answer`. */
  readonly answer?: RuleAnswer;
  /** Of `sequence`; the last one stays. */
  readonly answers?: readonly RuleAnswer[];
  /** Of `answer` and `sequence`, in seconds: 1 without it. */
  readonly ttl?: number;
  /** Of `only`: what still resolves, nothing if it is missing; and how everything else fails: NXDOMAIN by default. */
  readonly names?: readonly string[];
  readonly fail?: "nxdomain" | "servfail" | "refused";
}

/** One of them. */
export interface LeaseRequest {
  readonly rule?: RuleRequest;
  /** Sends what these containers ask and are answered, as lines `recorded`. */
  readonly record?: { readonly in?: LeaseScope };
  /** The id of a rule, or of a recording. */
  readonly remove?: number;
  readonly report?: true;
}

/** Each has the number of the line that it answers, beginning with 1. */
export type LeaseReply =
  | { readonly line: number; readonly id: number; /** Served at present. */ readonly containers: number }
  | { readonly line: number; readonly removed: number }
  | { readonly line: number; readonly report: RuleReport }
  | { readonly line: number; readonly error: string; readonly code: string }
  | { readonly recorded: readonly RecordedQuery[]; readonly missed: number };

/** What the rules of a lease have done. */
export interface RuleReport {
  readonly rules: readonly RuleUseReport[];
}

export interface RuleUseReport {
  readonly id: number;
  readonly name: string;
  readonly action: RuleActionName;
  /** What it does, for people. */
  readonly text: string;
  /** Queries for its name, and those of them that it applied to. */
  readonly matched: number;
  readonly applied: number;
  readonly containers: readonly { readonly container: string; readonly matched: number; readonly applied: number }[];
  /** Of `only`: what it refused, and how much more than is listed. */
  readonly refused?: readonly {
    readonly container: string;
    readonly name: string;
    readonly type: string;
    readonly count: number;
  }[];
  readonly refusedOthers?: number;
}

/** One query on a tape. */
export interface RecordedQuery {
  readonly container: string;
  readonly project: string | null;
  readonly service: string | null;
  readonly name: string;
  readonly type: string;
  /** "NONE" if there was no reply. */
  readonly rcode: string;
  /** The names that CNAMEs led to. */
  readonly cnames: readonly string[];
  /** The records by type, as in the settings' `records`. */
  readonly records: Readonly<Record<string, readonly string[]>>;
  /** Of the first record; null without any. */
  readonly ttl: number | null;
  /** The name of a container, or a declared one: dns11 answered it itself. */
  readonly isLocal: boolean;
  /** A rule had a say in it, so it is not what the container gets without one: a tape leaves it out. */
  readonly isRuled: boolean;
  /** Since the recording began. */
  readonly ms: number;
}

/** A lease that is open, as `GET /v1/leases` lists it. */
export interface LeaseSummary {
  readonly lease: number;
  /** The process that holds it; 0 if it is in another PID namespace. */
  readonly pid: number;
  /** Its command; empty if it is not known. */
  readonly command: string;
  readonly since: string;
  readonly isRecording: boolean;
  readonly rules: readonly RuleUseReport[];
}

export interface LeasesReport {
  readonly leases: readonly LeaseSummary[];
}
