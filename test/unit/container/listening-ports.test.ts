// Proves which ports of the kernel's tables are open, and for whom: by sockets of this process.

import assert from "node:assert/strict";
import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { test } from "node:test";

import { listeningPorts, portsIn } from "../../../src/container/namespace/listeners.ts";

test("sockets of this process", async () => {
  for (const [host, isLoopback] of [
    ["127.0.0.2", true],
    ["0.0.0.0", false],
  ] as const) {
    const server = createServer().listen(0, host);
    await once(server, "listening");
    const { port } = server.address() as AddressInfo;
    const found = listeningPorts(process.pid)?.filter((each) => each.port === port);
    assert.deepEqual(found, [{ port, isLoopback }]);
    server.close();
  }
});

test("IPv6, connections, and text that is none", () => {
  const six = "  0: 00000000000000000000000001000000:1F90 00000000000000000000000000000000:0000 0A 0";
  const mapped = "  1: 0000000000000000FFFF00000100007F:0050 00000000000000000000000000000000:0000 0A 0";
  const all = "  2: 00000000000000000000000000000000:0051 00000000000000000000000000000000:0000 0A 0";
  const connection = "  3: 0100007F:0052 0100007F:0053 01 0";
  assert.deepEqual(portsIn(["sl", six, mapped, all, connection, "x", ""].join("\n")), [
    { port: 8080, isLoopback: true },
    { port: 80, isLoopback: true },
    { port: 81, isLoopback: false },
  ]);
  assert.equal(listeningPorts(-1), undefined);
});
