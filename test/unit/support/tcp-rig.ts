// TCP listener on loopback with one connected client.

import assert from "node:assert/strict";
import { setImmediate as nextRound } from "node:timers/promises";

import type { Client } from "../../../src/query/client/client.ts";
import { TcpListener, ClientConnections } from "../../../src/query/listen/tcp.ts";
import type { TcpParts } from "../../../src/query/listen/tcp-connection.ts";
import { type HeldUpstream, clientOnOneNetwork, tcpParts } from "./listening.ts";
import { TcpClient, bindTcp } from "./loopback.ts";

export type TcpRig = AsyncDisposable & {
  readonly port: number;
  readonly queryClient: Client;
  readonly connections: ClientConnections;
  readonly client: TcpClient;
  readonly upstream: HeldUpstream;
  readonly defects: readonly unknown[];
  // Closes the listener and its connections.
  close(): void;
  // Waits, turn by turn of the event loop, until the condition holds; the test's timeout bounds it.
  until(isSo: () => boolean): Promise<void>;
};

export async function tcpListening(overrides: Partial<TcpParts> = {}): Promise<TcpRig> {
  const { fd, port } = bindTcp();
  const parts = tcpParts(overrides);
  const queryClient = clientOnOneNetwork();
  const connections = new ClientConnections(queryClient, parts);
  const listener = new TcpListener(fd, { clientNumber: queryClient.number, of: () => connections });
  const close = (): void => {
    listener.close();
    connections.close();
  };
  const client = await TcpClient.open(port);
  return {
    port,
    queryClient,
    connections,
    client,
    upstream: parts.upstream,
    defects: parts.defects,
    close,
    until: async (isSo) => {
      while (!isSo()) await nextRound();
    },
    [Symbol.asyncDispose]: async () => {
      await client[Symbol.asyncDispose]();
      close();
      assert.equal(parts.defects.length, queryClient.counters.failed);
    },
  };
}
