/**
 * A namespace that is held open for the control socket: servers are asked from in there as programs in there ask them.
 */
import type { Bracket } from "../container/namespace/bracket.ts";
import { dialIn } from "../container/namespace/dial.ts";
import type { OpenNamespace } from "../control/ports.ts";
import { closeQuietly } from "../kernel/libc.ts";

export function openNamespace(bracket: Bracket, fd: number): OpenNamespace {
  return { dial: (server, protocol) => dialIn(bracket, fd, server, protocol), close: () => closeQuietly(fd) };
}
