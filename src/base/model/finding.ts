/**
 * Finding: the result of one check of `dns11 doctor`. Its code is stable, so that programs can branch on it; the sentences are
 * for people and may change.
 */

/** A warning does not break name resolution now; unknown means that the check could not run. */
export type FindingState = "ok" | "warning" | "problem" | "unknown";

/** Every check with its title. */
export const CHECKS = {
  capabilities: "capabilities",
  rootless: "rootless engine",
  kernel: "kernel",
  engine: "Docker Engine",
  dns11: "dns11",
  leftovers: "leftovers",
  "host-resolv-conf": "host resolv.conf",
  "host-names": "host names",
  "host-listener": "listener on the host",
  "listener-query": "query to the listener",
  listen: "other machines",
  mdns: "names of the local network",
  forwarding: "forwarding",
  etcd: "etcd",
  "etcd-records": "records in etcd",
  "etcd-publishing": "publishing to etcd",
  kubernetes: "names of Kubernetes",
  namespace: "network namespace",
  "container-state": "container",
  attachment: "resolver",
  "resolv-conf": "resolv.conf",
  "resolv-options": "resolv.conf options",
  search: "search list",
  loopback: "loopback interface",
  rules: "dns11 rules",
  "docker-rules": "Docker rules",
  "foreign-rules": "other rules",
  listener: "dns11 sockets",
  "port-53": "port 53",
  answers: "query",
  conntrack: "connection tracking",
  "conntrack-stale": "stale conntrack entries",
  upstream: "upstream",
  loop: "forwarding loop",
  libc: "C library",
  "failing-names": "failing names",
  "project-names": "project names",
  swarm: "swarm",
  networks: "networks",
  records: "declared names",
  policy: "policy",
  "kind-resolv-conf": "node resolv.conf",
  "kind-rules": "dns11 rules in the node",
  "kind-port-53": "node port 53",
  "kind-answers": "query in the node",
  "kind-docker": "Docker's resolver in the node",
  "kind-pod": "test pod",
  "kind-services": "Services from the machine",
  "route-localnet": "route_localnet",
} as const;

export type CheckCode = keyof typeof CHECKS;

export interface Finding {
  readonly code: CheckCode;
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

/** A finding with the title of its check. */
export function finding(code: CheckCode, state: FindingState, detail: string, remedy?: string): Finding {
  return { code, what: CHECKS[code], state, detail, ...(remedy !== undefined && { remedy }) };
}

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
