// Proves that on a shared socket each address is one container's, that nobody else is answered, and that the first query of a
// container waits until it is known.

import assert from "node:assert/strict";
import { fstatSync, openSync } from "node:fs";
import { setImmediate as nextRound } from "node:timers/promises";
import { test } from "node:test";

import { LIMITS } from "../../../../src/base/limits.ts";
import type { Client } from "../../../../src/query/client/client.ts";
import { SharedEndpoint } from "../../../../src/query/listen/shared-endpoint.ts";
import { aQuery } from "../../../support/scripted/builders.ts";
import { clientOnOneNetwork, tcpParts, udpParts } from "../../support/listening.ts";
import { LOOPBACK, TcpClient, UdpClient, bindTcp, bindUdp } from "../../support/loopback.ts";

type Rig = AsyncDisposable & {
  readonly endpoint: SharedEndpoint;
  readonly port: number;
  readonly tcpPort: number;
  readonly waitingPort: number;
  readonly client: UdpClient;
  // Clients that were opened here, by container.
  readonly opened: Map<string, Client>;
  // The containers that get answers.
  readonly answered: Set<string>;
};

const listening = { address: LOOPBACK };

function sharing(): Rig {
  const [udp, tcp, waiting] = [bindUdp(), bindTcp(), bindUdp()];
  const opened = new Map<string, Client>();
  const answered = new Set(["web"]);
  const endpoint = new SharedEndpoint([{ udp: udp.fd, tcp: tcp.fd, listening }], [{ udp: waiting.fd, listening }], {
    udp: udpParts(),
    tcp: tcpParts(),
    clientOf: (id) => (opened.get(id)?.isClosed === false ? opened.get(id) : undefined),
    viewOf: (id) => (answered.has(id) ? clientOnOneNetwork().view : undefined),
    isLasting: (id) => id === "builds" && answered.has(id),
    openClient: (id) => {
      const client = clientOnOneNetwork();
      opened.set(id, client);
      return client;
    },
  });
  const client = new UdpClient();
  const dispose = async (): Promise<void> => {
    endpoint.close();
    await client[Symbol.asyncDispose]();
  };
  const ports = { port: udp.port, tcpPort: tcp.port, waitingPort: waiting.port };
  return { endpoint, ...ports, client, opened, answered, [Symbol.asyncDispose]: dispose };
}

const ASKERS = new Map([[LOOPBACK, "web"]]);
const NOBODY = new Map<string, string>();

// Until a packet that was sent before has been received, if it is received at all: the kernel delivers on loopback within send.
async function quiet(): Promise<void> {
  for (let round = 0; round < 20; round++) await nextRound();
}

test("an address is its container's: it gets a client with the first query, and nobody else gets anything", async () => {
  await using rig = sharing();
  rig.endpoint.setContainers(NOBODY);
  rig.client.send(aQuery({ id: 1 }), rig.port);
  await quiet();
  assert.equal(rig.opened.size, 0);
  rig.endpoint.setContainers(ASKERS);
  rig.client.send(aQuery({ id: 2 }), rig.port);
  assert.equal((await rig.client.receive()).readUInt16BE(0), 2, "the first query was dropped");
  assert.equal(rig.opened.get("web")?.counters.queries, 1);
});

test("a TCP connection is its address's, and ends at once if that is nobody's", async () => {
  await using rig = sharing();
  rig.endpoint.setContainers(ASKERS);
  await using known = await TcpClient.open(rig.tcpPort);
  await known.send(aQuery({ id: 3 }));
  assert.equal((await known.receive()).readUInt16BE(0), 3);
  rig.endpoint.setContainers(NOBODY);
  assert.equal(rig.opened.get("web")?.isClosed, true);
  await using unknown = await TcpClient.open(rig.tcpPort);
  await assert.rejects(async () => await unknown.receive());
});

test("the first query of a container waits until it is known, and then until it is known what it sees", async () => {
  await using rig = sharing();
  rig.answered.clear();
  rig.client.send(aQuery({ id: 4 }), rig.waitingPort);
  await quiet();
  rig.endpoint.setContainers(ASKERS);
  await quiet();
  assert.equal(rig.opened.size, 0, "nothing is decided about it yet");
  rig.answered.add("web");
  rig.endpoint.update("web");
  assert.equal((await rig.client.receive()).readUInt16BE(0), 4);
});

test("what comes by nobody's link with the address of a known container is dropped, and so is what does not fit", async () => {
  await using rig = sharing();
  rig.endpoint.setContainers(ASKERS);
  rig.client.send(aQuery({ id: 5 }), rig.waitingPort);
  await quiet();
  rig.endpoint.setContainers(NOBODY);
  for (let id = 0; id < LIMITS.listenerWaiting + 10; id++) rig.client.send(aQuery({ id: 100 + id }), rig.waitingPort);
  await quiet();
  rig.endpoint.setContainers(ASKERS);
  const ids: number[] = [];
  for (let id = 0; id < LIMITS.listenerWaiting; id++) ids.push((await rig.client.receive()).readUInt16BE(0));
  assert.deepEqual(
    ids,
    Array.from({ length: LIMITS.listenerWaiting }, (_, index) => 100 + index),
  );
  await quiet();
  assert.equal(rig.opened.get("web")?.counters.queries, LIMITS.listenerWaiting);
});

test("what stands for several that come and go has one client, until it gets no answers any more", async () => {
  await using rig = sharing();
  rig.endpoint.update("builds");
  assert.equal(rig.opened.size, 0);
  rig.answered.add("builds");
  rig.endpoint.update("builds");
  const client = rig.opened.get("builds");
  for (const [id, askers] of [new Map([[LOOPBACK, "builds"]]), NOBODY, new Map([[LOOPBACK, "builds"]])].entries()) {
    rig.endpoint.setContainers(askers);
    rig.client.send(aQuery({ id: 50 + id }), rig.port);
    await quiet();
  }
  assert.deepEqual([client?.isClosed, client?.counters.queries], [false, 2], "nobody's query was dropped");
  rig.answered.delete("builds");
  rig.endpoint.update("builds");
  assert.equal(client?.isClosed, true);
});

for (const [which, isUdp] of [
  ["on its sockets", { pair: false, waiting: true }],
  ["on those for queries that wait", { pair: true, waiting: false }],
] as const) {
  test(`where it cannot listen ${which}, all are closed`, () => {
    const udpOrFile = (isOne: boolean): number => (isOne ? bindUdp().fd : openSync("/dev/null", "r"));
    const pair = { udp: udpOrFile(isUdp.pair), tcp: bindTcp().fd, listening };
    const waiting = [bindUdp().fd, udpOrFile(isUdp.waiting), bindUdp().fd];
    const open = (): SharedEndpoint =>
      new SharedEndpoint(
        [pair],
        waiting.map((udp) => ({ udp, listening })),
        {
          udp: udpParts(),
          tcp: tcpParts(),
          clientOf: () => undefined,
          viewOf: () => undefined,
          isLasting: () => false,
          openClient: () => assert.fail("nobody asks"),
        },
      );
    assert.throws(open, { code: "ERR_INVALID_FD_TYPE" });
    for (const fd of [pair.udp, pair.tcp, ...waiting]) assert.throws(() => fstatSync(fd), { code: "EBADF" });
  });
}
