/**
 * Finding: the result of one check of `dns11 doctor`. Its code is stable, so that programs can branch on it; the sentences are
 * for people and may change.
 */

/** A warning does not break name resolution now; unknown means that the check could not run. */
export type FindingState = "ok" | "warning" | "problem" | "unknown";

export interface Check {
  readonly title: string;
  /** For docs/codes.md. */
  readonly examines: string;
  /** What may explain its finding, if it is a problem of the same container; the first that applies does. */
  readonly explainedBy?: readonly string[];
  /** A running dns11 may be able to repair what it finds. */
  readonly isRepairable?: boolean;
}

/** By their codes. */
export type Checks = Readonly<Record<string, Check>>;

/** Those of the core; a feature has its own. */
export const CHECKS = {
  capabilities: {
    title: "capabilities",
    examines: "the capabilities that dns11 needs to look into containers and to serve them",
  },
  rootless: {
    title: "rootless engine",
    examines: "whether the user's [rootless engine](rootless.md) can be entered; root and other users are refused",
  },
  kernel: { title: "kernel", examines: "whether the kernel accepts dns11's rules" },
  engine: { title: "Docker Engine", examines: "whether the engine answers, and can be served" },
  dns11: { title: "dns11", examines: "whether dns11 is running, ready, or hung" },
  leftovers: { title: "leftovers", examines: "what a killed dns11 left in the state directory" },
  "host-resolv-conf": { title: "host resolv.conf", examines: "which servers the engine's host uses" },
  forwarding: {
    title: "forwarding",
    examines:
      "where Docker uses nftables on the host: whether a chain of another program drops what its containers send, such as the policy that a dockerd with iptables has left",
  },
  namespace: { title: "network namespace", examines: "whether the container's namespace can be entered" },
  "container-state": {
    title: "container",
    examines:
      "a container that ends and is started again, over and over, and one that uses the network of a container that has been made or started again; its log, or the command, comes with it",
  },
  attachment: {
    title: "resolver",
    examines:
      "whether dns11 serves the container, since when, and if not, why; a warning for a Compose service on the default bridge, where Docker has no DNS for container names",
    explainedBy: ["loopback", "foreign-rules", "conntrack"],
    isRepairable: true,
  },
  "resolv-conf": { title: "resolv.conf", examines: "whether the container's file names 127.0.0.11, and who wrote it" },
  "resolv-options": { title: "resolv.conf options", examines: "options that the C library ignores silently" },
  search: {
    title: "search list",
    examines:
      "how many queries a name costs with this search list and ndots; a domain that returns an address for every name",
  },
  loopback: { title: "loopback interface", examines: "whether lo is up and has its address" },
  rules: {
    title: "dns11 rules",
    examines: "whether dns11's table is installed, and which process owns it",
    isRepairable: true,
  },
  "docker-rules": {
    title: "Docker rules",
    examines: "Docker's own rules (iptables, iptables-legacy or nftables), and its resolver, the fallback of dns11",
    explainedBy: ["loopback"],
  },
  "foreign-rules": {
    title: "other rules",
    examines:
      "rules of other programs (nftables and iptables-legacy) that redirect or drop queries to port 53; a problem only if queries do not get through",
  },
  listener: {
    title: "dns11 sockets",
    examines: "whether dns11's sockets are open",
    explainedBy: ["loopback"],
    isRepairable: true,
  },
  "port-53": { title: "port 53", examines: "a DNS server of the container's own on port 53" },
  answers: {
    title: "query",
    examines: "queries for the container's own name, through the redirect rules, by UDP and TCP",
    explainedBy: ["loopback", "foreign-rules", "listener", "rules", "conntrack", "docker-rules", "attachment"],
    isRepairable: true,
  },
  conntrack: { title: "connection tracking", examines: "whether the connection tracking table has space" },
  "conntrack-stale": {
    title: "stale conntrack entries",
    examines: "conntrack entries that translate queries to ports on which nothing listens any more",
    explainedBy: ["foreign-rules"],
  },
  upstream: {
    title: "upstream",
    examines:
      "each server, queried from where it is used for that container, by UDP and TCP, with time and response code",
  },
  loop: { title: "forwarding loop", examines: "forwarding loops: a server that sends queries back" },
  libc: { title: "C library", examines: "musl or glibc, and the limitations of that version" },
  "failing-names": {
    title: "failing names",
    examines:
      "names that fail, from a running dns11; a problem only if the cause is known and a container's name failed for it within five minutes and has not resolved since. Two services behind one name on one network are a warning",
    explainedBy: ["upstream"],
  },
  networks: {
    title: "networks",
    examines:
      "networks that keep their containers apart (`enable_icc=false`): names there lead to addresses that nobody can connect to",
  },
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
