/**
 * Finding: the result of one check of `dns11 doctor`. Its code is stable, so that programs can branch on it; the sentences are
 * for people and may change.
 */

/** A warning does not break name resolution now; unknown means that the check could not run. */
export type FindingState = "ok" | "warning" | "problem" | "unknown";

export interface Check {
  readonly title: string;
  /** What may explain its finding, if it is a problem of the same container; the first that applies does. */
  readonly explainedBy?: readonly string[];
  /** A running dns11 may be able to repair what it finds. */
  readonly isRepairable?: boolean;
}

/** By their codes. */
export type Checks = Readonly<Record<string, Check>>;

/** Those of the core; a feature has its own. */
export const CHECKS = {
  capabilities: { title: "capabilities" },
  rootless: { title: "rootless engine" },
  kernel: { title: "kernel" },
  engine: { title: "Docker Engine" },
  dns11: { title: "dns11" },
  leftovers: { title: "leftovers" },
  "host-resolv-conf": { title: "host resolv.conf" },
  forwarding: { title: "forwarding" },
  namespace: { title: "network namespace" },
  "container-state": { title: "container" },
  attachment: { title: "resolver", explainedBy: ["loopback", "foreign-rules", "conntrack"], isRepairable: true },
  "resolv-conf": { title: "resolv.conf" },
  "resolv-options": { title: "resolv.conf options" },
  search: { title: "search list" },
  loopback: { title: "loopback interface" },
  rules: { title: "dns11 rules", isRepairable: true },
  "docker-rules": { title: "Docker rules", explainedBy: ["loopback"] },
  "foreign-rules": { title: "other rules" },
  listener: { title: "dns11 sockets", explainedBy: ["loopback"], isRepairable: true },
  "port-53": { title: "port 53" },
  answers: {
    title: "query",
    explainedBy: ["loopback", "foreign-rules", "listener", "rules", "conntrack", "docker-rules", "attachment"],
    isRepairable: true,
  },
  conntrack: { title: "connection tracking" },
  "conntrack-stale": { title: "stale conntrack entries", explainedBy: ["foreign-rules"] },
  upstream: { title: "upstream" },
  loop: { title: "forwarding loop" },
  libc: { title: "C library" },
  "failing-names": { title: "failing names", explainedBy: ["upstream"] },
  networks: { title: "networks" },
} as const satisfies Checks;

export type CheckCode = keyof typeof CHECKS;

export interface Finding {
  /** Of its check. */
  readonly code: string;
  readonly what: string;
  readonly state: FindingState;
  readonly detail: string;
  /** What to do about it: complete sentences, with a command where there is one. */
  readonly remedy?: string;
  /** The remedy as a command, and as a change that lasts, where both are known. */
  readonly fixNow?: string;
  readonly fixForGood?: string;
  /** The command that applies the lasting change. */
  readonly commandForGood?: string;
  /** What a reader should know about the container first: whether dns11 serves it, and why not. */
  readonly note?: ServedNote;
  /** What it has in common with findings about other containers; by default the detail. */
  readonly shared?: SharedCause;
}

export interface ServedNote {
  readonly isServed: boolean;
  readonly text: string;
}

/** Findings of one check with the same key have one cause. */
export interface SharedCause {
  readonly key: string;
  /** Of a name that fails: the code of why. */
  readonly cause?: string;
  /** The cause in a few words, with `{}` for its subject: in one finding, and in several with different subjects. */
  readonly title: string;
  readonly titleOfMany?: string;
  readonly about: string;
  /** An explanation of the cause, and its effect here. */
  readonly why?: string;
  readonly symptom?: string;
}

type MakeFinding<Code> = (code: Code, state: FindingState, detail: string, remedy?: string) => Finding;

/** Makes findings of these checks, each with the title of its check. */
export function findingsOf<Code extends string>(checks: Readonly<Record<Code, Check>>): MakeFinding<Code> {
  return (code, state, detail, remedy) => {
    const { title: what } = checks[code];
    return { code, what, state, detail, ...(remedy !== undefined && { remedy }) };
  };
}

export const finding: MakeFinding<CheckCode> = findingsOf(CHECKS);

/**
 * Codes for why a container is not served, shown by status; docs/codes.md explains each. These skip a container because of what it is, or
 * because of a setting.
 */
export const SKIP_CODES = [
  "host-network",
  "no-network",
  "shares-namespace",
  "default-network-only",
  "no-nameserver",
  "own-stack",
  "listen",
  "opted-out",
  "kind-detached",
  "quarantined",
  "not-selected",
  "host-names",
] as const;

/** Attached, but a file is mounted over its resolv.conf, and nothing has queried dns11. */
export const NOT_ASKED = "not-asked";

export type SkipCode = (typeof SKIP_CODES)[number];

/** The container should be served, but is not yet or no longer. For other failures see the reason. */
export const FAILURE_CODES = [
  "NAMESPACE_GONE",
  "NAMESPACE_IS_HOST",
  "NAMESPACE_NOT_READY",
  "PID_ELSEWHERE",
  "PID_NOT_CONTAINER",
  "OWNED_ELSEWHERE",
  "ATTACH_FAILED",
  "REFIT_FAILED",
  "PROBE_FAILED",
  "UNVERIFIED",
  "NO_DESCRIPTORS",
  "RULES_LOCKED",
] as const;

export type FailureCode = (typeof FAILURE_CODES)[number];

/**
 * The doctor's result as a stream, line by line: each finding as it is made, then the problems that they come to.
 * Something that is wrong, in one or several containers.
 */
export interface DoctorProblem {
  readonly state: "problem" | "warning" | "unknown";
  /** The cause in one sentence. */
  readonly title: string;
  readonly why: readonly string[];
  /** What it affects: names of containers, or `Docker host`. */
  readonly subjects: readonly string[];
  readonly symptoms: readonly { readonly text: string; readonly subjects: readonly string[] }[];
  readonly fixNow: readonly string[];
  readonly fixForGood: readonly string[];
  /** Commands that apply those changes; missing if none is known. */
  readonly commandsForGood?: readonly string[];
  /** A cause without such fixes has these instead. */
  readonly remedies: readonly string[];
}

/** The last line has `problems`, or `error` if the doctor could not finish. */
export type DoctorLine =
  | { readonly subject: string; readonly finding: Finding }
  | { readonly problems: readonly DoctorProblem[] }
  | { readonly error: string; readonly code: string; readonly remedy?: string };
