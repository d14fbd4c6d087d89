// Rules that redirect a container's queries to one of the name servers, the same for all except dns11, which has its
// own. They have priority over Docker's and dns11's.

import { stdoutOf } from "../support/program/command.ts";
import type { Container } from "../support/engine/container.ts";

export const RESOLVER = "127.0.0.11";

// Redirects to this port of the resolver's address, or removes the redirect.
export async function redirectTo(client: Container, port: number | undefined): Promise<void> {
  const rules = ["add table ip beside", "delete table ip beside", ...(port === undefined ? [] : redirectRules(port))];
  stdoutOf(await client.enter("nft", ["-f", "-"], { input: `${rules.join("\n")}\n` }), "nft");
  // Flush conntrack: a socket that reuses a source port would still reach the previous server.
  stdoutOf(await client.enter("conntrack", ["--flush"]), "conntrack");
}

function redirectRules(port: number): string[] {
  return [
    "add table ip beside",
    "add chain ip beside output { type nat hook output priority -110; }",
    `add rule ip beside output ip daddr ${RESOLVER} udp dport 53 dnat to ${RESOLVER}:${port}`,
    `add rule ip beside output ip daddr ${RESOLVER} tcp dport 53 dnat to ${RESOLVER}:${port}`,
  ];
}
