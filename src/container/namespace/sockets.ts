/**
 * NamespaceSockets: the listening sockets inside a container's namespace: for each redirect of its capture a UDP and a
 * TCP socket, on ports that the kernel chooses. All of them or none.
 */
import {
  AF_INET,
  AF_INET6,
  SOCK_DGRAM,
  SOCK_STREAM,
  bindTo,
  closeQuietly,
  forceReceiveBuffer,
  listenOn,
  localAddress,
  socket,
} from "../../kernel/libc.ts";
import { LIMITS } from "../../base/limits.ts";
import { addressBytes, socketAddress } from "../../base/model/address.ts";
import type { Redirect } from "../capture/capture.ts";
import type { ListenAddress } from "../rules/plan.ts";

export interface NamespaceSockets {
  readonly udp: number;
  readonly tcp: number;
  readonly listening: ListenAddress;
}

/** Binds a pair for each redirect. Call inside the namespace. */
export function bindSockets(redirects: readonly Pick<Redirect, "bind">[]): NamespaceSockets[] {
  const bound: NamespaceSockets[] = [];
  try {
    for (const { bind } of redirects) bound.push(bindPair(bind));
    return bound;
  } catch (error) {
    closeSockets(bound);
    throw error;
  }
}

/** Returns a pair for each redirect: the first existing one with its address, or a new one. */
export function pairsFor(
  redirects: readonly Pick<Redirect, "bind">[],
  known: readonly NamespaceSockets[],
): { readonly pairs: readonly NamespaceSockets[]; readonly added: readonly NamespaceSockets[] } {
  const unused = [...known];
  const found = redirects.map(({ bind }) => {
    const at = unused.findIndex(({ listening }) => listening.address === bind);
    return at === -1 ? undefined : unused.splice(at, 1)[0];
  });
  const added = bindSockets(redirects.filter((_, index) => found[index] === undefined));
  const fresh = [...added];
  return { pairs: found.map((pair) => pair ?? (fresh.shift() as NamespaceSockets)), added };
}

/** A UDP socket alone, on a port that the kernel chooses. */
export interface WaitingSocket {
  readonly udp: number;
  readonly listening: { readonly address: string; readonly udpPort: number };
}

/** Call inside the namespace. */
export function bindWaiting(address: string): WaitingSocket {
  const bytes = addressBytes(address) as Uint8Array;
  const udp = socket(bytes.length === 4 ? AF_INET : AF_INET6, SOCK_DGRAM);
  try {
    bindTo(udp, socketAddress(bytes, 0), address);
    return { udp, listening: { address, udpPort: portOf(udp) } };
  } catch (error) {
    closeQuietly(udp);
    throw error;
  }
}

export function closeSockets(sockets: readonly NamespaceSockets[]): void {
  for (const { udp, tcp } of sockets) for (const fd of [udp, tcp]) closeQuietly(fd);
}

/** Call inside the namespace. */
export function bindPair(address: string): NamespaceSockets {
  const bytes = addressBytes(address) as Uint8Array;
  const family = bytes.length === 4 ? AF_INET : AF_INET6;
  const anyPort = socketAddress(bytes, 0);
  let udp = -1;
  let tcp = -1;
  try {
    udp = socket(family, SOCK_DGRAM);
    forceReceiveBuffer(udp, LIMITS.udpReceiveBytes);
    bindTo(udp, anyPort, address);
    tcp = socket(family, SOCK_STREAM);
    bindTo(tcp, anyPort, address);
    listenOn(tcp, LIMITS.tcpBacklog);
    return { udp, tcp, listening: { address, udpPort: portOf(udp), tcpPort: portOf(tcp) } };
  } catch (error) {
    for (const fd of [udp, tcp]) closeQuietly(fd);
    throw error;
  }
}

function portOf(fd: number): number {
  return localAddress(fd).readUInt16BE(2);
}
