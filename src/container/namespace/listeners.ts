/**
 * Listeners: the sockets in a namespace that already listen on a port. Capturing that port's queries from outside would
 * take them away from these sockets.
 */
import { type SocketFilter, receivedBySockets, socketsAt } from "../../kernel/sock-diag.ts";
import { addressBytes } from "../../base/model/address.ts";
import { closeSync, openSync, readSync } from "node:fs";
import { LIMITS } from "../../base/limits.ts";
import { procText } from "../../kernel/process.ts";
import { codeOf } from "../../base/lib/fault.ts";
import { DOCKER_RESOLVER } from "../capture/capture.ts";

/** The state of a socket that accepts packets or connections from any peer. */
const WAITING = { udp: "unconnected", tcp: "listening" } as const;

const PROTOCOLS = ["udp", "tcp"] as const;
type Protocol = (typeof PROTOCOLS)[number];

/** The protocols with a socket that receives what is sent to this address and port. Call inside the namespace. */
export function listenersAt(address: string, port: number): Protocol[] {
  const target = addressBytes(address) ?? new Uint8Array(4);
  const packets = PROTOCOLS.map((protocol) => ({ protocol, state: WAITING[protocol], address: target, port }));
  return receivedBySockets(packets).map(({ protocol }) => protocol);
}

/** The control groups of the processes that answer UDP queries in this namespace, whatever their address. */
export function controlGroupsAt(port: number): bigint[] {
  const groups = ([4, 6] as const).flatMap((family) =>
    socketsAt({ protocol: "udp", family, state: WAITING.udp, end: "local", port }).flatMap(
      ({ controlGroup }) => controlGroup ?? [],
    ),
  );
  return [...new Set(groups)];
}

/** The ports on which a socket listens at exactly this IPv4 address. */
export function boundPorts(address: string, protocol: Protocol): number[] {
  const bytes = addressBytes(address) ?? new Uint8Array(4);
  return socketsAt(waiting(protocol, 4, { address: bytes })).map(({ local }) => local.port);
}

function waiting(protocol: Protocol, family: 4 | 6, where: Pick<SocketFilter, "address" | "port">): SocketFilter {
  return { protocol, family, state: WAITING[protocol], end: "local", ...where };
}

interface ListeningPort {
  readonly port: number;
  readonly isLoopback: boolean;
}

const LISTEN = "0A";
const LOOPBACK_SIX = "00000000000000000000000001000000";
/** Of 127.0.0.0/8, in the byte order of the machine, which is the only one that dns11 runs on. */
const LOOPBACK_FOUR = /^(?:0{16}FFFF0000)?[0-9A-F]{6}7F$/;
/** Those that listen come first, and a container may have any number of connections. */
const TABLE_BYTES_MAX = 64 * 1024;

/** The TCP ports on which programs listen in the network namespace of a process; undefined if the process has ended. */
export function listeningPorts(pid: number): ListeningPort[] | undefined {
  try {
    return ["tcp", "tcp6"].flatMap((table) => portsIn(beginningOf(`/proc/${pid}/net/${table}`)));
  } catch {
    return undefined;
  }
}

/** The kernel gives a page at a time. */
function beginningOf(path: string): string {
  const fd = openSync(path, "r");
  try {
    const bytes = Buffer.alloc(TABLE_BYTES_MAX);
    let length = 0;
    for (let read = -1; read !== 0 && length < bytes.length; length += read)
      read = readSync(fd, bytes, length, bytes.length - length, null);
    return bytes.toString("latin1", 0, length);
  } finally {
    closeSync(fd);
  }
}

/** The text of `/proc/net/tcp` or `tcp6`. */
export function portsIn(table: string): ListeningPort[] {
  const found: ListeningPort[] = [];
  for (const line of table.split("\n").slice(1)) {
    const [, local = "", , state] = line.trim().split(/\s+/);
    const [address = "", port = ""] = local.split(":");
    if (state !== LISTEN) continue;
    found.push({
      port: Number.parseInt(port, 16),
      isLoopback: address === LOOPBACK_SIX || LOOPBACK_FOUR.test(address),
    });
  }
  return found;
}

const NET = "/proc/thread-self/net";
const DNS_PORT = 53;

/** The sockets of one connection to Docker's resolver that are in its namespace beside the client's: both of its own. */
const LISTENER = 1;
const RESOLVER_SOCKET = 1;
const CLIENT_SOCKET = 1;

/**
 * Clients with an open TCP connection to a resolver whose queries we capture, at the time we attach. These
 * connections must stay with that resolver, Docker's or one outside; redirected to us they would be reset.
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
