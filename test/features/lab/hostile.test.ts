// Clients of the control socket that flood it with rules and leases, send lines without an end, or never read: names go on to
// resolve, memory stays bounded, and whoever comes afterwards gets a lease.

import assert from "node:assert/strict";
import { once } from "node:events";
import { readdirSync } from "node:fs";
import { type Socket, connect as connectTo } from "node:net";
import { join } from "node:path";
import { after, before, test } from "node:test";

import { connect } from "dns11/client";

import { dataOf, dig, digMany } from "../../support/client/dig.ts";
import { type Container, createNetwork, runContainer } from "../../support/engine/container.ts";
import { type Engine, startEngine } from "../../support/engine/engine.ts";
import { type Dns11, startDns11 } from "../../support/program/dns11.ts";
import { waitFor } from "../../support/rig/wait.ts";

const REQUEST = "POST /v1/lease HTTP/1.1\r\nHost: dns11\r\nTransfer-Encoding: chunked\r\n\r\n";
const MIB = 2 ** 20;

let engine: Engine;
let app: Container;
let other: Container;
let instance: Dns11;
let socketPath: string;

before(async () => {
  engine = await startEngine({ suite: "bookworm" });
  await createNetwork(engine, "n1");
  app = await runContainer(engine, { name: "app", networks: ["n1"] });
  other = await runContainer(engine, { name: "other", networks: ["n1"] });
  instance = await startDns11(engine);
  const [folder = ""] = readdirSync(instance.stateDir);
  socketPath = join(instance.stateDir, folder, "control.sock");
});
after(async () => {
  await instance[Symbol.asyncDispose]();
  await engine[Symbol.asyncDispose]();
});

/** A lease without a client library: what comes back is kept, unless nobody reads. */
class RawLease {
  readonly socket: Socket;
  text = "";
  isClosed = false;

  constructor(reads = true) {
    this.socket = connectTo(socketPath);
    this.socket.on("error", () => undefined);
    this.socket.on("close", () => (this.isClosed = true));
    if (reads) this.socket.on("data", (chunk: Buffer) => (this.text += chunk.toString()));
    else this.socket.pause();
    this.socket.write(REQUEST);
  }

  /** Returns whether more can be written without waiting. */
  send(text: string): boolean {
    return this.socket.write(`${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`);
  }

  async says(pattern: RegExp): Promise<void> {
    await waitFor(`${pattern}`, () => (pattern.test(this.text) ? true : undefined));
  }

  close(): void {
    this.socket.destroy();
  }
}

async function resolves(): Promise<void> {
  assert.deepEqual(dataOf(await dig(other, "app")), [app.address("n1")]);
}

async function canLease(): Promise<void> {
  // Those before may not have been missed yet, and have all connections.
  const dns = await waitFor("a connection", async () => await connect({ socketPath }).catch(() => undefined));
  await waitFor("a lease", async () => {
    const lab = await dns.lab({ container: "app" }).catch(() => undefined);
    if (lab === undefined) return undefined;
    await lab.fault("other", { nxdomain: true });
    assert.equal((await dig(app, "other")).status, "NXDOMAIN");
    await lab.close();
    return true;
  });
  dns.close();
  assert.deepEqual(dataOf(await dig(app, "other")), [other.address("n1")]);
}

test("a flood of rules ends at its bound", async () => {
  const earlier = (await instance.status()).memoryBytes;
  const flood = new RawLease();
  for (let i = 0; i < 8_000; i += 1) {
    const line = `${JSON.stringify({ rule: { name: `n${i}.test`, action: "nxdomain", in: { container: "app" } } })}\n`;
    if (!flood.send(line)) await once(flood.socket, "drain");
    if (i % 2_000 === 0) await resolves();
  }
  await flood.says(/has 5000 rules\. Remove one of them/);
  assert.equal((await dig(app, "n4999.test")).status, "NXDOMAIN");
  await resolves();
  const { memoryBytes } = await instance.status();
  assert.ok(memoryBytes - earlier < 64 * MIB, `${(memoryBytes - earlier) / MIB} MiB for 5,000 rules`);
  flood.close();
  await canLease();
});

test("ten thousand leases take none from who comes afterwards", async (context) => {
  const held: RawLease[] = [];
  context.after(() => held.forEach((lease) => lease.close()));
  for (let i = 0; i < 10_000; i += 1) {
    held.push(new RawLease());
    if (i % 100 === 99) await resolves();
  }
  await waitFor("the answers", () =>
    held.filter(({ text }) => text.includes("TOO_MANY_LEASES")).length > 0 ? true : undefined,
  );
  assert.ok(held.filter(({ text, isClosed }) => text.startsWith("HTTP/1.1 200") && !isClosed).length <= 16);
  for (const lease of held) lease.close();
  await canLease();
});

test("a line without an end, and lines without a reader, cost a bounded amount", async () => {
  const earlier = (await instance.status()).memoryBytes;
  const long = new RawLease();
  const part = "x".repeat(64 * 1024);
  for (let i = 0; i < 512; i += 1) if (!long.send(part)) await once(long.socket, "drain");
  long.send("\n");
  await long.says(/The line is longer than 65536 bytes: send less in one line/);
  long.send('{"report": true}\n');
  await long.says(/"report":\{"rules":\[\]\}/);
  long.close();
  const deaf = new RawLease(false);
  const line = `${JSON.stringify({ report: true })}\n`;
  let stopped = 0;
  for (let i = 0; i < 200_000 && stopped < 10; i += 1) {
    if (deaf.send(line)) continue;
    const drained = once(deaf.socket, "drain").then(() => true);
    // It no longer reads what nobody reads the answers to.
    if (!(await Promise.race([drained, resolves().then(() => false)]))) stopped += 1;
    else stopped = 0;
  }
  await resolves();
  const { memoryBytes } = await instance.status();
  assert.ok(memoryBytes - earlier < 48 * MIB, `${(memoryBytes - earlier) / MIB} MiB`);
  deaf.close();
  await canLease();
});

test("a recording that nobody reads loses queries, and says how many", async () => {
  const deaf = new RawLease(false);
  deaf.send(`${JSON.stringify({ record: { in: { container: "app" } } })}\n`);
  const earlier = (await instance.status()).memoryBytes;
  const names = Array.from({ length: 500 }, () => ["other", "+nocookie"]);
  for (let round = 0; round < 40; round += 1) await digMany(app, "127.0.0.11", names);
  const { memoryBytes } = await instance.status();
  assert.ok(memoryBytes - earlier < 64 * MIB, `${(memoryBytes - earlier) / MIB} MiB`);
  deaf.socket.on("data", (chunk: Buffer) => (deaf.text += chunk.toString()));
  deaf.socket.resume();
  await deaf.says(/"missed":[1-9]/);
  deaf.close();
  await canLease();
});
