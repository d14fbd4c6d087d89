/**
 * Finding: the result of one check of `dns11 doctor`. Its code is stable, so that programs can branch on it; the sentences are
 * for people and may change.
 */

/** A warning does not break name resolution now; unknown means that the check could not run. */
export type FindingState = "ok" | "warning" | "problem" | "unknown";

/** Every check with its title. */
export const CHECKS = {
  capabilities: "capabilities",
  kernel: "kernel",
  engine: "Docker Engine",
  dns11: "dns11",
  leftovers: "leftovers",
  "host-resolv-conf": "host resolv.conf",
  "host-names": "host names",
  namespace: "network namespace",
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
  "kind-resolv-conf": "node resolv.conf",
  "kind-rules": "dns11 rules in the node",
  "kind-port-53": "node port 53",
  "kind-answers": "query in the node",
  "kind-docker": "Docker's resolver in the node",
  "kind-pod": "test pod",
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
}

/** A finding with the title of its check. */
export function finding(code: CheckCode, state: FindingState, detail: string, remedy?: string): Finding {
  return { code, what: CHECKS[code], state, detail, ...(remedy !== undefined && { remedy }) };
}
