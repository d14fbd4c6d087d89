/**
 * Finding: what one look of the doctor's came to. Its code names what was looked at, and stays, so that programs can branch
 * on it; the sentences are for people, and may change.
 */

/** A warning is nothing that breaks names now; unknown is what could not be looked at. */
export type FindingState = "ok" | "warning" | "problem" | "unknown";

/** Everything that is looked at, with what it is called. */
export const CHECKS = {
  capabilities: "capabilities",
  kernel: "the kernel",
  engine: "the engine",
  dns11: "dns11",
  leftovers: "what a killed dns11 left",
  "host-resolv-conf": "the host's resolv.conf",
  namespace: "the namespace",
  attachment: "who answers",
  "resolv-conf": "resolv.conf",
  "resolv-options": "options of resolv.conf",
  search: "search list",
  loopback: "the interface lo",
  rules: "rules of dns11",
  "docker-rules": "rules of Docker",
  "foreign-rules": "rules of others",
  listener: "sockets of dns11",
  "port-53": "port 53",
  answers: "a query",
  conntrack: "connection tracking",
  "conntrack-stale": "old translations",
  upstream: "upstream",
  loop: "loop",
  libc: "the C library",
  "kind-resolv-conf": "the node's resolv.conf",
  "kind-rules": "rules of dns11 in the node",
  "kind-port-53": "port 53 of the node",
  "kind-answers": "a query in the node",
  "kind-docker": "Docker's resolver in the node",
  "kind-pod": "a pod",
  "route-localnet": "route_localnet",
} as const;

export type CheckCode = keyof typeof CHECKS;

export interface Finding {
  readonly code: CheckCode;
  readonly what: string;
  readonly state: FindingState;
  readonly detail: string;
  /** What to do about it, as a sentence of its own. */
  readonly remedy?: string;
}

/** A finding under the name that its check has. */
export function finding(code: CheckCode, state: FindingState, detail: string, remedy?: string): Finding {
  return { code, what: CHECKS[code], state, detail, ...(remedy !== undefined && { remedy }) };
}
