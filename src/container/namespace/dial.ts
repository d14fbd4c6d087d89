/**
 * Dial: sockets to nameservers, created in the namespace from which the server is queried: on the engine's host for the
 * host's servers, in the container for those given with --dns. `--dns 127.0.0.1` is a different server in each
 * container.
 *
 * A failure here happened before anything was sent. It is a SystemFault with the kernel's error for this process or
 * namespace (EMFILE, ENETUNREACH) and does not concern the server's health.
 */
import { Fault } from "../../base/lib/fault.ts";
import {
  AF_INET,
  AF_INET6,
  SOCK_DGRAM,
  SOCK_STREAM,
  closeQuietly,
  connectTo,
  scopeOf,
  setMark,
  socket,
} from "../../kernel/libc.ts";
import { addressBytes, socketAddress } from "../../base/model/address.ts";
import type { Server } from "../../base/model/view.ts";
import { DOCKER_RESOLVER } from "../capture/capture.ts";
import { type NamespaceRunner, namespaceId } from "./namespace-runner.ts";

/**
 * Creates a connected, or connecting, socket to `server` in the namespace of `fd`. `isMarked`: our rules there, if any, let it
 * pass; those of a program redirect its queries to the same addresses.
 */
export function dialIn(
  runner: NamespaceRunner,
  fd: number,
  server: Server,
  type: "udp" | "tcp",
  isMarked = server.from === "docker",
): number {
  const bytes = addressBytes(server.address);
  if (bytes === undefined)
    throw new Fault("BAD_SERVER", `Invalid server address "${server.address}": not an IP address`);
  const mark = isMarked ? runner.passages.markTo(namespaceId(fd), server.address === DOCKER_RESOLVER) : undefined;
  return runner.within(fd, () => {
    const made = socket(bytes.length === 4 ? AF_INET : AF_INET6, type === "udp" ? SOCK_DGRAM : SOCK_STREAM);
    try {
      if (mark !== undefined) setMark(made, mark);
      connectTo(made, socketAddress(bytes, server.port, scopeOf(server.address)), server.address);
      return made;
    } catch (error) {
      closeQuietly(made);
      throw error;
    }
  });
}
