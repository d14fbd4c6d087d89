/**
 * What is made inside a container's namespace in one visit: a UDP and a TCP socket on random high ports of 127.0.0.11, the
 * socket that owns the rules, and the watch on everybody else's rules. All of them, or none.
 */
import {
  AF_INET,
  SOCK_DGRAM,
  SOCK_STREAM,
  bindTo,
  closeQuietly,
  listenOn,
  localAddress,
  socket,
} from "../../kernel/libc.ts";
import { LIMITS } from "../../config/limits.ts";
import { addressBytes, socketAddress } from "../../model/address.ts";
import { DOCKER_RESOLVER } from "../capture/capture.ts";
import type { Listening } from "../rules/plan.ts";

export interface NamespaceSockets {
  readonly udp: number;
  readonly tcp: number;
  readonly listening: Listening;
}

/** Binds both sockets in the namespace that the thread is in. */
export function bindSockets(): NamespaceSockets {
  const anyPort = socketAddress(addressBytes(DOCKER_RESOLVER) as Uint8Array, 0);
  let udp = -1;
  let tcp = -1;
  try {
    udp = socket(AF_INET, SOCK_DGRAM);
    bindTo(udp, anyPort, DOCKER_RESOLVER);
    tcp = socket(AF_INET, SOCK_STREAM);
    bindTo(tcp, anyPort, DOCKER_RESOLVER);
    listenOn(tcp, LIMITS.tcpBacklog);
    return { udp, tcp, listening: { address: DOCKER_RESOLVER, udpPort: portOf(udp), tcpPort: portOf(tcp) } };
  } catch (error) {
    closeQuietly(udp);
    closeQuietly(tcp);
    throw error;
  }
}

function portOf(fd: number): number {
  return localAddress(fd).readUInt16BE(2);
}
