/**
 * A keeper that refuses alone: nothing that a process which asks for a takeover does, or that other programs of its user do, ends it.
 */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync, readdirSync, readlinkSync } from "node:fs";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

import { LIMITS } from "../../src/base/limits.ts";
import type { HeldNamespace } from "../../src/base/model/held-namespace.ts";
import { closeDescriptors } from "../../src/keeper/held-descriptors.ts";
import { Predecessor, whyNotTaker } from "../../src/keeper/predecessor.ts";
import { type Channel, channelPair } from "../../src/kernel/channel.ts";
import { check } from "../support/program/command.ts";
import { LoneKeeper, heldOf, hold, send } from "../support/program/lone-keeper.ts";
import { waitFor } from "../support/rig/wait.ts";

const IN_FLIGHT = fileURLToPath(new URL("../support/program/many-in-flight-main.js", import.meta.url));
const TAKING = fileURLToPath(new URL("../support/program/taking-main.js", import.meta.url));

test("too many descriptors of the user on their way: a message is not sent, and can be sent later", async () => {
  const printed = await check("prlimit", ["--nofile=100:100", process.execPath, IN_FLIGHT]);
  assert.deepEqual(JSON.parse(printed), { first: true, last: false, later: true });
});

test("what cannot be passed on ends the takeover, and not the keeper", async () => {
  const [quiet] = channelPair();
  await using keeper = await LoneKeeper.start((main) => {
    send(main, { is: "hold", key: 1, namespace: { ...heldOf("1:1"), netlink: quiet, gate: quiet } });
    // With the gate, which stays, one descriptor too many.
    const pair = { udp: quiet, tcp: quiet, listening: { address: "127.0.0.11", udpPort: 53, tcpPort: 53 } };
    const pairs = Array.from({ length: LIMITS.channelDescriptors / 2 - 1 }, () => pair);
    send(main, { is: "hold", key: 1, namespace: { ...heldOf("1:1"), netlink: quiet, pairs, programs: [quiet] } });
    closeSync(quiet);
  });
  const taking = spawn(process.execPath, [TAKING, keeper.socketPath], { stdio: "ignore" });
  await once(taking, "exit");
  const found = await keeper.find();
  found.channel.close();
  assert.equal(found.refusing, 1);
  assert.match(keeper.events.join("\n"), /keeper failed, going on.*too large.*\n.*takeover failed/);
});

test("a process in another PID namespace that connected while the main process lived cannot take over after its end", async () => {
  let tell: (() => void) | undefined;
  let printed = "";
  await using keeper = await LoneKeeper.start(async (main, socketPath) => {
    hold(main, 1, "1:1");
    const words = ["--pid", "--fork", "--mount-proc", process.execPath, TAKING, socketPath, "later"];
    const taking = spawn("unshare", words, { stdio: ["pipe", "pipe", "inherit"] });
    taking.stdout.on("data", (chunk: Buffer) => (printed += chunk.toString()));
    tell = () => taking.stdin.end();
    await waitFor("its connection", () => (printed === "" ? undefined : true));
  });
  tell?.();
  await waitFor("its end", () => (printed.split("\n").length > 2 ? true : undefined));
  assert.match(printed, /it is in another PID namespace/);
  assert.match(keeper.events.join("\n"), /takeover refused/);
});

test("a takeover that was requested when the main process ended goes on without it", async () => {
  let taken: Promise<Map<string, HeldNamespace>> | undefined;
  let channel: Channel | undefined;
  await using keeper = await LoneKeeper.start(async (main, socketPath) => {
    hold(main, 1, "1:1");
    const predecessor = await Predecessor.find(socketPath);
    channel = predecessor?.channel;
    taken = predecessor?.take();
    await waitFor("the request", () => {
      const packet = main.receive();
      return typeof packet === "object" && packet.bytes.includes("wanted") ? true : undefined;
    });
  });
  const held = (await taken) ?? assert.fail();
  for (const namespace of held.values()) closeDescriptors(namespace);
  channel?.close();
  assert.deepEqual([...held.keys()], ["1:1"]);
  assert.equal(
    keeper.events.some((event) => event.startsWith("takeover failed")),
    false,
  );
});

test("a process whose control group cannot be read may not take over", async () => {
  const other = spawn("unshare", ["--mount", "sleep", "infinity"], { stdio: "ignore" });
  const pid = other.pid ?? 0;
  const opened: number[] = [];
  try {
    await waitFor("its mount namespace", () =>
      readlinkSync(`/proc/${pid}/ns/mnt`) === readlinkSync("/proc/self/ns/mnt") ? undefined : true,
    );
    // Reading a link takes no descriptor.
    const soft = readdirSync("/proc/self/fd").length + 100;
    await check("prlimit", ["--pid", String(process.pid), `--nofile=${soft}:`]);
    assert.throws(() => {
      for (;;) opened.push(openSync("/dev/null", "r"));
    }, /EMFILE/);
    assert.equal(whyNotTaker(pid, { mayShareGroup: true }), "it is in another mount namespace");
  } finally {
    for (const fd of opened) closeSync(fd);
    other.kill("SIGKILL");
  }
});
