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
  /** What whoever asks about the container should know first: whether dns11 serves it, and why not. */
  readonly note?: ServedNote;
  /** What it has in common with findings of other containers; by default the detail. */
  readonly shared?: SharedCause;
}

export interface ServedNote {
  readonly isServed: boolean;
  readonly text: string;
}

/** Findings of one check with the same key have one cause. */
export interface SharedCause {
  readonly key: string;
  /** The cause in a few words, with `{}` for what it is about: in one finding, and in several with different ones. */
  readonly title: string;
  readonly titleOfMany?: string;
  readonly about: string;
  /** An explanation of the cause, and what comes of it here. */
  readonly why?: string;
  readonly symptom?: string;
}

/** A finding with the title of its check. */
export function finding(code: CheckCode, state: FindingState, detail: string, remedy?: string): Finding {
  return { code, what: CHECKS[code], state, detail, ...(remedy !== undefined && { remedy }) };
}
