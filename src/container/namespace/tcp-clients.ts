/**
 * Conversations: TCP connections of a namespace with its resolver that were under way when we came. They began with
 * Docker's resolver and end with it; led to us in the middle, they would be reset.
 */
import { LIMITS } from "../../base/limits.ts";
import { procText } from "../../kernel/proc-text.ts";
import { socketsAt } from "../../kernel/socket-list.ts";
import { codeOf } from "../../base/lib/fault.ts";
import { addressBytes } from "../../base/model/address.ts";

const NET = "/proc/thread-self/net";
const DNS_PORT = 53;

/** What a conversation with the resolver takes, all in its namespace: the resolver's listener, and both ends. */
const LISTENER = 1;
const RESOLVER_SOCKET = 1;
const CLIENT_SOCKET = 1;

/**
 * The clients' ports, as the namespace that the thread is in lists them; nobody but the resolver listens for us there yet.
 * For a list the kernel walks the connections of all namespaces, which takes milliseconds; but it counts them for each, so
 * that no list is asked for where a container has only just started. Where it has very many, none is spared: a list of them
 * would keep everybody waiting, and a client whose conversation breaks asks again.
 */
export function tcpClientPortsOf(resolver: string): number[] {
  const v4 = socketsInUse("sockstat", "TCP");
  const v6 = socketsInUse("sockstat6", "TCP6");
  if (v4 < LISTENER + RESOLVER_SOCKET || v4 + v6 > LIMITS.sparingSockets) return [];
  const address = addressBytes(resolver) ?? new Uint8Array(4);
  const ports: number[] = [];
  if (v4 >= LISTENER + RESOLVER_SOCKET + CLIENT_SOCKET) ports.push(...portsTo(4, address));
  // A client may speak IPv4 through a socket of IPv6, as Java does.
  if (v6 >= CLIENT_SOCKET) ports.push(...portsTo(6, address));
  return ports.slice(0, LIMITS.sparedConversations);
}

function portsTo(family: 4 | 6, address: Uint8Array): number[] {
  try {
    const sockets = socketsAt({ protocol: "tcp", family, state: "connected", end: "remote", address, port: DNS_PORT });
    return sockets.map(({ local }) => local.port);
  } catch (error) {
    if (TOO_MANY.has(codeOf(error) ?? "")) return [];
    throw error;
  }
}

/** How it is said that a list is longer than what is looked at. */
const TOO_MANY = new Set(["TOO_MANY", "TOO_LONG"]);

function socketsInUse(file: "sockstat" | "sockstat6", protocol: "TCP" | "TCP6"): number {
  const text = procText(`${NET}/${file}`);
  // A kernel without IPv6 has no such file.
  if (text === undefined) return 0;
  return Number(new RegExp(`^${protocol}: inuse (\\d+)`, "m").exec(text)?.[1] ?? Number.POSITIVE_INFINITY);
}
