/**
 * TcpClients: clients with an open TCP connection to a resolver whose queries we capture, at the time we attach. These
 * connections must stay with that resolver, Docker's or one outside; redirected to us they would be reset.
 */
import { LIMITS } from "../../base/limits.ts";
import { procText } from "../../kernel/proc-text.ts";
import { socketsAt } from "../../kernel/socket-list.ts";
import { codeOf } from "../../base/lib/fault.ts";
import { addressBytes } from "../../base/model/address.ts";
import { DOCKER_RESOLVER } from "../capture/capture.ts";

const NET = "/proc/thread-self/net";
const DNS_PORT = 53;

/** The sockets of one connection to Docker's resolver that are in its namespace beside the client's: both of its own. */
const LISTENER = 1;
const RESOLVER_SOCKET = 1;
const CLIENT_SOCKET = 1;

/**
 * The client ports in the namespace that the thread is in. To list connections the kernel walks those of all
 * namespaces, which takes milliseconds, but it has a count for each namespace, so a container that has just started
 * needs no list. A namespace with very many sockets gets no exceptions: the list would block all queries, and a client
 * whose connection breaks retries.
 */
export function tcpClientPortsOf(resolvers: readonly string[]): number[] {
  const v4 = socketsInUse("sockstat", "TCP");
  const own = resolvers.includes(DOCKER_RESOLVER) ? LISTENER + RESOLVER_SOCKET : 0;
  if (v4 < own) return [];
  const v6 = socketsInUse("sockstat6", "TCP6");
  if (v4 + v6 > LIMITS.sparingSockets) return [];
  const ports: number[] = [];
  for (const resolver of resolvers) {
    const address = addressBytes(resolver) ?? new Uint8Array(4);
    if (v4 >= own + CLIENT_SOCKET && address.length === 4) ports.push(...portsTo(4, address));
    // Some clients use IPv4 through an IPv6 socket, as Java does.
    if (v6 >= CLIENT_SOCKET) ports.push(...portsTo(6, address));
  }
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

/** Errors for a list that is longer than the limit. */
const TOO_MANY = new Set(["TOO_MANY", "TOO_LONG"]);

function socketsInUse(file: "sockstat" | "sockstat6", protocol: "TCP" | "TCP6"): number {
  const text = procText(`${NET}/${file}`);
  // A kernel without IPv6 lacks this file.
  if (text === undefined) return 0;
  return Number(new RegExp(`^${protocol}: inuse (\\d+)`, "m").exec(text)?.[1] ?? Number.POSITIVE_INFINITY);
}
