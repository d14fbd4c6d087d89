/**
 * Namespaces with very many rules, tables or sockets: root in a container can create any number, and reading them would
 * block all other containers. So what is needed is requested by name, and long lists are not read to the end.
 */
import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync } from "node:fs";
import { after, before, test } from "node:test";

import { LIMITS } from "../../src/base/limits.ts";
import { tcpClientPortsOf } from "../../src/container/namespace/listeners.ts";
import { findCulprits } from "../../src/container/rules/culprit.ts";
import { installedRules } from "../../src/container/rules/installed-rules.ts";
import type { NetNamespace } from "../../src/kernel/net-namespace.ts";
import { procText } from "../../src/kernel/process.ts";
import { visitFirst, visitTables } from "../../src/kernel/nfnetlink.ts";
import * as nft from "../../src/kernel/nft-constants.ts";
import { type SocketFilter, listSockets, socketsInProc } from "../../src/kernel/sock-diag.ts";
import { Attachments, answering } from "../support/program/attachments.ts";
import { stdoutOf } from "../support/program/command.ts";
import { Netns, inNetns } from "../support/rig/netns.ts";
import { inTime } from "../support/rig/wait.ts";

const RULES = 30_000;
const TABLES = 2_000;
const attaching = new Attachments();
let netns: Netns;
let fd = -1;

before(async () => {
  netns = await Netns.create();
  fd = openSync(netns.netnsPath, "r");
});
after(async () => {
  closeSync(fd);
  await netns[Symbol.asyncDispose]();
  attaching[Symbol.dispose]();
});

function within<T>(work: () => T): T {
  return attaching.runner.within(fd, work);
}

function served(): NetNamespace {
  return attaching.runner.namespaceOf(fd, attaching.memory);
}

async function load(text: string): Promise<void> {
  stdoutOf(await netns.enter("nft", ["-f", "-"], { input: text, timeoutMs: 120_000 }), "nft");
}

test("of very many rules the first are read, and the result says that there are more", async () => {
  const rules = Array.from(
    { length: RULES },
    (_, index) => `ip saddr 10.0.${(index >> 8) & 255}.${index & 255} counter`,
  );
  await load(`table ip many { chain c { type filter hook output priority 10; ${rules.join("; ")}; }; }`);
  const culprits = await findCulprits(served());
  assert.ok(culprits.includes("there are too many rules to check all of them"), culprits.join("\n"));
  let count = 0;
  const request = { command: nft.NFT_MSG_GETRULE, family: 0 };
  assert.equal(
    within(() => visitFirst(attaching.memory, request, () => void count++)),
    false,
  );
  assert.ok(count > 0 && count < RULES, `${count}`);
  assert.throws(() => within(() => visitTables(attaching.memory, request, () => undefined)), { code: "TOO_MANY" });
  // A visitor can stop early.
  count = 0;
  within(() => visitTables(attaching.memory, request, () => ++count < 3));
  assert.equal(count, 3);
});

test("beside very many foreign rules and tables ours are found, and the namespace is attached", async () => {
  await load(Array.from({ length: TABLES }, (_, index) => `table ip t${index} {}`).join("\n"));
  assert.deepEqual(await installedRules(served()), []);
  const attachment = attaching.in(netns.netnsPath, { openEndpoint: answering });
  await attachment.open();
  await attachment.verify();
  assert.equal(attachment.state.kind, "attached");
  assert.deepEqual(
    (await installedRules(served())).map(({ title, owner }) => [title, owner]),
    [['table ip "dns11"', "instance"]],
  );
  await attachment.close();
});

test("a table with our name and very many rules is not touched, and its namespace is not attached", async () => {
  await using other = await Netns.create();
  const rules = Array.from({ length: RULES }, (_, index) => `udp sport ${1 + (index % 65_000)} counter`);
  const text = `table ip dns11 { chain reply { type filter hook output priority 10; ${rules.join("; ")}; }; }`;
  stdoutOf(await other.enter("nft", ["-f", "-"], { input: text, timeoutMs: 120_000 }), "nft");
  const attachment = attaching.in(other.netnsPath, { openEndpoint: answering });
  await attachment.open();
  assert.equal(attachment.state.kind === "failed" && attachment.state.code, "TOO_MANY");
  await attachment.close();
  assert.match((await other.enter("nft", ["list", "tables"])).stdout, /table ip dns11/);
});

/** A process with connections to itself, and sockets of both families at port 53. */
const CROWD = `
  const net = require("node:net");
  const server = net.createServer().listen(53, "127.0.0.11", async () => {
    require("node:net").createServer().listen(53, "::1");
    require("node:dgram").createSocket("udp4").bind(53, "127.0.0.12");
    require("node:dgram").createSocket("udp6").bind(5300);
    const connect = (host, port) => new Promise((done) => { const s = net.connect({ host, port }, () => done(s)); });
    await connect("127.0.0.11", 53);
    await connect("::ffff:127.0.0.11", 53);
    console.log("ready");
  });`;

/** Sockets without a server, in several processes because of the limit for each. */
const MORE = `
  const net = require("node:net");
  const server = net.createServer().listen(0, "127.0.0.1", async () => {
    const { port } = server.address();
    for (let made = 0; made < Number(process.argv[1]); made += 100) {
      await Promise.all(
        Array.from({ length: 100 }, () => new Promise((done) => net.connect({ port, host: "127.0.0.1" }, done))),
      );
    }
    console.log("ready");
  });`;

class Crowd implements AsyncDisposable {
  readonly #children: ChildProcess[] = [];

  async add(place: Netns, program: string, count = 0): Promise<void> {
    const [command = "", ...args] = inNetns(place.netnsPath, process.execPath, ["-e", program, String(count)]);
    const child = spawn(command, args, { stdio: ["ignore", "pipe", "inherit"] });
    this.#children.push(child);
    if (child.stdout === null) throw new Error("it has a pipe");
    await inTime(once(child.stdout, "data"), "the sockets");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(
      this.#children.map(async (child) => {
        const closed = once(child, "close");
        child.kill("SIGKILL");
        await closed;
      }),
    );
  }
}

test("sockets listed with a kernel filter are the same as in /proc", async () => {
  await using place = await Netns.create();
  await using crowd = new Crowd();
  await crowd.add(place, CROWD);
  const inside = openSync(place.netnsPath, "r");
  const filters: readonly SocketFilter[] = [
    { protocol: "tcp", family: 4, state: "connected", end: "remote", address: Buffer.of(127, 0, 0, 11), port: 53 },
    { protocol: "tcp", family: 6, state: "connected", end: "remote", address: Buffer.of(127, 0, 0, 11), port: 53 },
    { protocol: "tcp", family: 4, state: "connected", end: "local", address: Buffer.of(127, 0, 0, 11) },
    { protocol: "tcp", family: 4, state: "listening", end: "local", port: 53 },
    { protocol: "tcp", family: 6, state: "listening", end: "local", port: 53 },
    { protocol: "udp", family: 4, state: "unconnected", end: "local", port: 53 },
    { protocol: "udp", family: 4, state: "unconnected", end: "local", address: Buffer.of(127, 0, 0, 12) },
    { protocol: "udp", family: 6, state: "unconnected", end: "local", port: 5300 },
  ];
  try {
    for (const filter of filters) {
      const [listed, written] = attaching.runner.within(inside, () => [listSockets([filter]), socketsInProc(filter)]);
      assert.ok(written.length > 0, JSON.stringify(filter));
      const byPort = (a: { local: { port: number } }, b: { local: { port: number } }): number =>
        a.local.port - b.local.port;
      // The file in /proc has no control group.
      const shared = listed?.map(({ protocol, local, remote }) => ({ protocol, local, remote }));
      assert.deepEqual(shared?.toSorted(byPort), written.toSorted(byPort), JSON.stringify(filter));
    }
    assert.equal(attaching.runner.within(inside, () => tcpClientPortsOf(["127.0.0.11"])).length, 2);
  } finally {
    closeSync(inside);
  }
});

test("with very many sockets no list is requested, and the namespace is attached", async () => {
  await using place = await Netns.create();
  await using crowd = new Crowd();
  await crowd.add(place, CROWD);
  const each = 1_250;
  const count = Math.ceil(LIMITS.sparingSockets / 2 / each);
  await Promise.all(Array.from({ length: count }, async () => await crowd.add(place, MORE, each)));
  const inside = openSync(place.netnsPath, "r");
  try {
    attaching.runner.within(inside, () => {
      assert.deepEqual(tcpClientPortsOf(["127.0.0.11"]), []);
      assert.throws(() => procText("/proc/thread-self/net/tcp"), { code: "TOO_LONG" });
    });
    const attachment = attaching.in(place.netnsPath, { openEndpoint: answering });
    await attachment.open();
    await attachment.verify();
    assert.equal(attachment.state.kind, "attached");
    await attachment.close();
  } finally {
    closeSync(inside);
  }
});
