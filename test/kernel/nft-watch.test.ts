/** The watch on a namespace's rules, in a separate process: messages that are still unread when the process ends. */
import assert from "node:assert/strict";
import { test } from "node:test";

import { Netns } from "../support/rig/netns.ts";

const GUARD = new URL("../../src/base/lib/guard.js", import.meta.url).href;
const WATCH = new URL("../../src/kernel/nft-watch.js", import.meta.url).href;

test("a change while the process exits does not abort it", async () => {
  await using netns = await Netns.create();
  // The socket causes another round of the event loop during exit, in which the watch would be called.
  const program = `
    import { spawnSync } from "node:child_process";
    import { createSocket } from "node:dgram";
    import { NftWatch } from "${WATCH}";
    new NftWatch(new Set(), () => undefined);
    createSocket("udp4").bind(0).unref();
    setTimeout(() => undefined, 20);
    process.on("exit", () => {
      console.log(spawnSync("nft", ["add", "table", "ip", "late"]).status);
    });`;
  const args = ["--input-type=module", "--eval", program];
  const { code, stdout, stderr } = await netns.enter(process.execPath, args);
  assert.deepEqual({ code, stdout, stderr }, { code: 0, stdout: "0\n", stderr: "" });
});

test("an error in the callback loses that change only; the next one is reported", async () => {
  await using netns = await Netns.create();
  const program = `
    import { spawnSync } from "node:child_process";
    import { NftWatch } from "${WATCH}";
    import { guard } from "${GUARD}";
    const reported = [];
    guard.install((error, entrance) => reported.push(entrance + ": " + error.message));
    let news = 0;
    const watch = new NftWatch(new Set(), () => { news++; throw new TypeError("a defect"); });
    const change = (name) => spawnSync("nft", ["add", "table", "ip", name]).status;
    change("one");
    let before = 0;
    const timer = setInterval(() => {
      if (news === before) return;
      if (before === 0) {
        before = news;
        change("two");
        return;
      }
      clearInterval(timer);
      watch.close();
      console.log(reported[0], reported.length === news);
    }, 100);`;
  const { code, stdout, stderr } = await netns.enter(process.execPath, ["--input-type=module", "--eval", program]);
  assert.deepEqual({ code, stdout, stderr }, { code: 0, stdout: "netlink: a defect true\n", stderr: "" });
});

test("a watch that is closed while no descriptor is left is closed when there is one again", async () => {
  await using netns = await Netns.create();
  const program = `
    import { closeSync, openSync, readdirSync } from "node:fs";
    import { NftWatch } from "${WATCH}";
    const used = () => readdirSync("/proc/self/fd").length;
    const before = used();
    const watch = new NftWatch(new Set(), () => undefined);
    const others = [];
    try {
      for (;;) others.push(openSync("/dev/null", "r"));
    } catch (error) {
      console.log(error.code);
    }
    try {
      watch.close();
    } catch (error) {
      console.log("close: " + error.code);
    }
    for (const fd of others) closeSync(fd);
    const untilMs = performance.now() + 10_000;
    const timer = setInterval(() => {
      if (used() > before && performance.now() < untilMs) return;
      clearInterval(timer);
      console.log(used() - before);
    }, 50);`;
  const args = ["--nofile=100:100", process.execPath, "--input-type=module", "--eval", program];
  const { code, stdout, stderr } = await netns.enter("prlimit", args);
  assert.deepEqual({ code, stdout, stderr }, { code: 0, stdout: "EMFILE\n0\n", stderr: "" });
});
