/**
 * An address that blocks of addresses may ask: whoever is not in one gets nothing even if the kernel's rules are missing, answers by UDP are
 * short, and each source has its share of connections.
 */
import assert from "node:assert/strict";
import { fstatSync, openSync } from "node:fs";
import { setImmediate as nextRound } from "node:timers/promises";
import { test } from "node:test";

import { type AddressBlock, readAddressBlock } from "../../../../src/base/model/address.ts";
import { LIMITS } from "../../../../src/base/limits.ts";
import type { Client } from "../../../../src/query/client/client.ts";
import { SubnetEndpoint } from "../../../../src/query/listen/subnet-endpoint.ts";
import { aQuery, anOpt } from "../../../support/scripted/builders.ts";
import { waitFor } from "../../../support/rig/wait.ts";
import { clientOnOneNetwork, tcpParts, udpParts } from "../../support/listening.ts";
import { LOOPBACK, TcpClient, UdpClient, bindTcp, bindUdp } from "../../support/loopback.ts";

type Rig = AsyncDisposable & {
  readonly endpoint: SubnetEndpoint;
  readonly served: Client;
  readonly port: number;
  readonly tcpPort: number;
  readonly client: UdpClient;
};

function blocks(...texts: readonly string[]): AddressBlock[] {
  return texts.map((text) => readAddressBlock(text) ?? assert.fail(text));
}

function listening(...allow: readonly string[]): Rig {
  const [udp, tcp] = [bindUdp(), bindTcp()];
  const served = clientOnOneNetwork();
  const pairs = [{ udp: udp.fd, tcp: tcp.fd, listening: { address: LOOPBACK } }];
  const endpoint = new SubnetEndpoint(pairs, served, blocks(...allow), { udp: udpParts(), tcp: tcpParts() });
  const client = new UdpClient();
  const dispose = async (): Promise<void> => {
    endpoint.close();
    await client[Symbol.asyncDispose]();
  };
  return { endpoint, served, port: udp.port, tcpPort: tcp.port, client, [Symbol.asyncDispose]: dispose };
}

// Until a packet that was sent before has been received: the kernel delivers on loopback within send.
async function quiet(): Promise<void> {
  for (let round = 0; round < 20; round++) await nextRound();
}

test("whoever is in a block is answered, by UDP and TCP", async () => {
  await using rig = listening("10.0.0.0/8", "127.0.0.0/8");
  rig.client.send(aQuery({ id: 1 }), rig.port);
  assert.equal((await rig.client.receive()).readUInt16BE(0), 1);
  await using stream = await TcpClient.open(rig.tcpPort);
  await stream.send(aQuery({ id: 2 }));
  assert.equal((await stream.receive()).readUInt16BE(0), 2);
  assert.equal(rig.endpoint.queries, 2);
  assert.deepEqual(rig.endpoint.refused, { source: 0, connections: 0 });
});

test("whoever is in none gets nothing, also without rules of the kernel", async () => {
  await using rig = listening("10.0.0.0/8", "127.0.0.2", "fd00::/8");
  rig.client.send(aQuery({ id: 1 }), rig.port);
  await quiet();
  assert.equal(rig.served.counters.queries, 0);
  await using stream = await TcpClient.open(rig.tcpPort);
  await assert.rejects(async () => {
    await stream.send(aQuery({ id: 2 }));
    await stream.receive();
  });
  assert.equal(rig.served.counters.queries, 0);
  assert.deepEqual(rig.endpoint.refused, { source: 2, connections: 0 });
});

test("an answer by UDP has 512 bytes at most, whatever the query announces; by TCP it is whole", async () => {
  await using rig = listening("127.0.0.1");
  const query = aQuery({ name: "many", additionals: [anOpt({ udpSize: 65_535 })] });
  rig.client.send(query, rig.port);
  const short = await rig.client.receive();
  assert.ok(short.length <= LIMITS.lanUdpBytes, `${short.length} bytes`);
  assert.ok(((short[2] as number) & 2) !== 0, "it is truncated");
  await using stream = await TcpClient.open(rig.tcpPort);
  await stream.send(query);
  assert.equal((await stream.receive()).readUInt16BE(6), 200);
});

test("a source has its share of connections, and gets it back", async () => {
  await using rig = listening("127.0.0.1");
  const open: TcpClient[] = [];
  for (let count = 0; count < LIMITS.lanSourceStreams; count++) {
    const stream = await TcpClient.open(rig.tcpPort);
    await stream.send(aQuery({ id: count }));
    assert.equal((await stream.receive()).readUInt16BE(0), count);
    open.push(stream);
  }
  {
    await using more = await TcpClient.open(rig.tcpPort);
    await assert.rejects(async () => {
      await more.send(aQuery({ id: 99 }));
      await more.receive();
    });
  }
  assert.equal(rig.endpoint.refused.connections, 1);
  for (const each of open) await each[Symbol.asyncDispose]();
  await waitFor("the share to be given back", async () => {
    await using again = await TcpClient.open(rig.tcpPort);
    const reply = await again
      .send(aQuery({ id: 7 }))
      .then(async () => await again.receive())
      .catch(() => undefined);
    return reply?.readUInt16BE(0) === 7 ? true : undefined;
  });
});

test("where it cannot listen on one of its sockets, all are closed, and the client, too", () => {
  const served = clientOnOneNetwork();
  const pair = (udp: number) => ({ udp, tcp: bindTcp().fd, listening: { address: LOOPBACK } });
  const pairs = [pair(bindUdp().fd), pair(openSync("/dev/null", "r")), pair(bindUdp().fd)];
  const fds = pairs.flatMap(({ udp, tcp }) => [udp, tcp]);
  assert.throws(() => new SubnetEndpoint(pairs, served, blocks("127.0.0.0/8"), { udp: udpParts(), tcp: tcpParts() }), {
    code: "ERR_INVALID_FD_TYPE",
  });
  for (const fd of fds) assert.throws(() => fstatSync(fd), { code: "EBADF" });
  assert.equal(served.isClosed, true);
});
