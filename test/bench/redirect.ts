// Owns the rules that lead a container's queries to one name server or another: the same for all but dns11, which brings
// its own. They come before Docker's, and before dns11's.

import { stdoutOf } from "../support/program/command.ts";
import type { Container } from "../support/engine/container.ts";

export const RESOLVER = "127.0.0.11";

// To this port of the resolver's address, or again where they went before.
export async function redirectTo(client: Container, port: number | undefined): Promise<void> {
  const rules = ["add table ip beside", "delete table ip beside", ...(port === undefined ? [] : redirectRules(port))];
  stdoutOf(await client.enter("nft", ["-f", "-"], { input: `${rules.join("\n")}\n` }), "nft");
  // A connection that the kernel remembers goes on to whom it led: a socket that draws a used port would ask the last one.
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
