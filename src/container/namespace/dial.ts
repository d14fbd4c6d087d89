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
import type { NamespaceRunner } from "./namespace-runner.ts";

/** The mark of packets that skip our own rules and so reach Docker's resolver. */
export const PASSTHROUGH_MARK = 0x646e7331;

/**
 * Creates a connected, or connecting, socket to `server` in the namespace of `fd`. `isPastUs`: our rules there do not
 * redirect what is sent; those of a program do, which queries the same addresses.
 */
export function dialIn(
  runner: NamespaceRunner,
  fd: number,
  server: Server,
  type: "udp" | "tcp",
  isPastUs = server.from === "docker",
): number {
  const bytes = addressBytes(server.address);
  if (bytes === undefined)
    throw new Fault("BAD_SERVER", `Invalid server address "${server.address}": not an IP address`);
  return runner.within(fd, () => {
    const made = socket(bytes.length === 4 ? AF_INET : AF_INET6, type === "udp" ? SOCK_DGRAM : SOCK_STREAM);
    try {
      if (isPastUs) setMark(made, PASSTHROUGH_MARK);
      connectTo(made, socketAddress(bytes, server.port, scopeOf(server.address)), server.address);
      return made;
    } catch (error) {
      closeQuietly(made);
      throw error;
    }
  });
}
