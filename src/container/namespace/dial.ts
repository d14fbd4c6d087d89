/**
 * Sockets to nameservers, made where the server is to be asked from: the engine's host for the host's own servers, the
 * container's namespace for those that the user gave it. `--dns 127.0.0.1` is a different server in each container.
 *
 * What fails here failed before the server was asked: a SystemFault with the kernel's word for what this process or that
 * namespace lacks (EMFILE, ENETUNREACH). It says nothing of the server for anybody else who asks it.
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

/** Packets of ours that our own rules let pass: how we reach the resolver that stands behind us. */
export const PASSTHROUGH_MARK = 0x646e7331;

/** A connected, or connecting, socket to `server`, made in the namespace behind `fd`. */
export function dialIn(runner: NamespaceRunner, fd: number, server: Server, type: "udp" | "tcp"): number {
  const bytes = addressBytes(server.address);
  if (bytes === undefined) throw new Fault("BAD_SERVER", `"${server.address}" is not an IP address`);
  return runner.within(fd, () => {
    const made = socket(bytes.length === 4 ? AF_INET : AF_INET6, type === "udp" ? SOCK_DGRAM : SOCK_STREAM);
    try {
      if (server.from === "docker") setMark(made, PASSTHROUGH_MARK);
      connectTo(made, socketAddress(bytes, server.port, scopeOf(server.address)), server.address);
      return made;
    } catch (error) {
      closeQuietly(made);
      throw error;
    }
  });
}
