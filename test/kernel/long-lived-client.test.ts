/**
 * A client that keeps its socket, as some resolver libraries do. Conntrack keeps its entry for minutes, and every packet
 * extends that. The client must be answered whether dns11 or Docker's resolver serves the namespace.
 */
import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { after, test } from "node:test";

import type { Attachment } from "../../src/container/attach/attachment.ts";
import { zoneAllocator } from "../../src/container/rules/owned-tables.ts";
import { Attachments, answering } from "../support/program/attachments.ts";
import { stdoutOf } from "../support/program/command.ts";
import { Netns, inNetns } from "../support/rig/netns.ts";
import { waitFor } from "../support/rig/wait.ts";

const attaching = new Attachments();
after(() => attaching[Symbol.dispose]());

/** The rcodes: FORMERR from dns11 for half a question, and REFUSED from the stand-in for Docker's resolver. */
const OURS = "1";
const DOCKERS = "5";
const RESOLVER = `
  const socket = require("node:dgram").createSocket("udp4");
  socket.on("message", (query, { port, address }) => {
    query[2] |= 0x80;
    query[3] = ${DOCKERS};
    socket.send(query, port, address);
  });
  socket.bind(5300, "127.0.0.11", () => console.log("ready"));`;
const CLIENT = `
  const socket = require("node:dgram").createSocket("udp4");
  socket.on("message", (reply) => console.log(reply[3] & 15));
  socket.on("error", () => {});
  socket.connect(53, "127.0.0.11", () => {
    setInterval(() => socket.send(Buffer.from([0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0]), () => {}), 20);
  });`;
const DOCKERS_RULES = `table ip docker {
  chain o { type nat hook output priority -100; ip daddr 127.0.0.11 udp dport 53 dnat to 127.0.0.11:5300; }
  chain p { type nat hook postrouting priority -100; ip saddr 127.0.0.11 udp sport 5300 snat to :53; }
}`;
const ROUNDS = 3;

class Program implements Disposable {
  readonly #child: ChildProcess;
  #lines: string[] = [];

  constructor(netns: Netns, text: string) {
    const [command = "", ...args] = inNetns(netns.netnsPath, process.execPath, ["-e", text]);
    this.#child = spawn(command, args, { stdio: ["ignore", "pipe", "inherit"] });
    this.#child.stdout?.on("data", (chunk: Buffer) => this.#lines.push(...chunk.toString().trim().split("\n")));
  }

  async prints(line: string): Promise<void> {
    this.#lines = [];
    await waitFor(`it to print ${line}`, () => (this.#lines.at(-1) === line ? true : undefined));
  }

  [Symbol.dispose](): void {
    this.#child.kill("SIGKILL");
  }
}

test("a client that keeps its socket is answered by the current resolver, however often that changes", async () => {
  await using netns = await Netns.create();
  using resolver = new Program(netns, RESOLVER);
  await resolver.prints("ready");
  stdoutOf(await netns.enter("nft", [DOCKERS_RULES]), "nft");
  using client = new Program(netns, CLIENT);
  await client.prints(DOCKERS);
  let attachment: Attachment | undefined;
  for (let round = 0; round < ROUNDS; round++) {
    attachment = attaching.in(netns.netnsPath, { openEndpoint: answering });
    await attachment.open();
    await attachment.verify();
    assert.equal(attachment.state.kind, "attached");
    await client.prints(OURS);
    await attachment.close();
    await client.prints(DOCKERS);
  }
});

test("no zone is repeated until all have been used, and the default zone 0 is never used", () => {
  const next = zoneAllocator();
  const drawn = new Set(Array.from({ length: 0xffff }, next));
  assert.equal(drawn.size, 0xffff);
  assert.ok(!drawn.has(0) && Math.max(...drawn) === 0xffff);
  assert.ok(drawn.has(next()));
});
