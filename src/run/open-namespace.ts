/**
 * OpenNamespace: a network namespace held open for the control socket, to query servers from inside it as its programs
 * do.
 */
import type { NamespaceRunner } from "../container/namespace/namespace-runner.ts";
import { dialIn } from "../container/namespace/dial.ts";
import type { OpenNamespace } from "../control/situation/ports.ts";
import { closeQuietly, localPort } from "../kernel/libc.ts";

export function openNamespace(runner: NamespaceRunner, fd: number): OpenNamespace {
  return {
    dial: (server, protocol) => dialIn(runner, fd, server, protocol),
    portOf: localPort,
    close: () => closeQuietly(fd),
  };
}
