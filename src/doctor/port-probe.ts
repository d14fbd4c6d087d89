/**
 * PortProbe: whether a TCP port of another machine can be reached from the engine's host. Nothing is sent.
 */
import { Socket } from "node:net";

import { dialIn } from "../container/namespace/dial.ts";
import type { DoctorContext } from "./machine-check.ts";

const LIMIT_MS = 3_000;
const POLL_MS = 20;

export async function isReached(
  { runner, host }: Pick<DoctorContext, "runner" | "host">,
  address: string,
  port: number,
): Promise<boolean> {
  let socket: Socket;
  try {
    const fd = dialIn(runner, host.network, { from: "host", address, port }, "tcp", false);
    socket = new Socket({ fd, readable: true, writable: true });
  } catch {
    return false;
  }
  socket.on("error", () => undefined);
  try {
    // The socket was connecting before Node had it, so there is no event: it is connected when it has a peer.
    for (const endMs = performance.now() + LIMIT_MS; performance.now() < endMs; await pause()) {
      if (socket.remoteAddress !== undefined) return true;
      if (socket.destroyed) return false;
    }
    return false;
  } finally {
    socket.destroy();
  }
}

async function pause(): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, POLL_MS));
}
