/**
 * Conversations: TCP connections of a namespace with its resolver that were under way when we came. They began with
 * Docker's resolver and end with it; led to us in the middle, they would be reset.
 */
import { readFileSync } from "node:fs";

import { addressBytes } from "../../model/address.ts";

const ESTABLISHED = "01";
const DNS_PORT = 53;

/** Both ends of a conversation with the resolver are sockets of the namespace. */
const ENDS = 2;

/** The clients' ports, as the namespace that the thread is in lists them. */
export function conversationsWith(resolver: string): number[] {
  // For the list the kernel walks the connections of all namespaces, which takes milliseconds; it counts them for each.
  if (socketsInUse() < ENDS) return [];
  const remote = `${hexOf(resolver)}:${DNS_PORT.toString(16).padStart(4, "0").toUpperCase()}`;
  return readFileSync("/proc/thread-self/net/tcp", "utf8")
    .split("\n")
    .map((line) => line.trim().split(/\s+/))
    .filter(([, , to, state]) => to === remote && state === ESTABLISHED)
    .map(([, from = ""]) => Number.parseInt(from.slice(from.indexOf(":") + 1), 16));
}

function socketsInUse(): number {
  const text = readFileSync("/proc/thread-self/net/sockstat", "utf8");
  return Number(/^TCP: inuse (\d+)/m.exec(text)?.[1] ?? Number.POSITIVE_INFINITY);
}

/** An address as the kernel prints the number it is in the machine's order. */
function hexOf(address: string): string {
  const bytes = addressBytes(address) ?? new Uint8Array(4);
  const [number = 0] = new Uint32Array(bytes.slice().buffer);
  return number.toString(16).padStart(8, "0").toUpperCase();
}
