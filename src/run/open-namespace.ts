/**
 * A namespace that is held open for the control socket: servers are asked from in there as programs in there ask them.
 */
import type { NamespaceRunner } from "../container/namespace/namespace-runner.ts";
import { dialIn } from "../container/namespace/dial.ts";
import type { OpenNamespace } from "../control/ports.ts";
import { closeQuietly } from "../kernel/libc.ts";

export function openNamespace(runner: NamespaceRunner, fd: number): OpenNamespace {
  return { dial: (server, protocol) => dialIn(runner, fd, server, protocol), close: () => closeQuietly(fd) };
}
