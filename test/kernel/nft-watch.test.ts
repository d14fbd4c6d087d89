/** The watch on a namespace's rules, in a process of its own: what its end makes of a message that is still to be read. */
import assert from "node:assert/strict";
import { test } from "node:test";

import { Netns } from "../support/rig/netns.ts";

const GUARD = new URL("../../src/base/lib/guard.js", import.meta.url).href;
const WATCH = new URL("../../src/kernel/nft-watch.js", import.meta.url).href;

test("a change that comes while the process ends does not abort it", async () => {
  await using netns = await Netns.create();
  // The socket takes the process through another round of the loop while it ends, in which the watch would be told.
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

test("a defect in whoever is told costs that news, and the next change is told", async () => {
  await using netns = await Netns.create();
  const program = `
    import { spawnSync } from "node:child_process";
    import { NftWatch } from "${WATCH}";
    import { guard } from "${GUARD}";
    const told = [];
    guard.install((error, entrance) => told.push(entrance + ": " + error.message));
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
      console.log(told[0], told.length === news);
    }, 100);`;
  const { code, stdout, stderr } = await netns.enter(process.execPath, ["--input-type=module", "--eval", program]);
  assert.deepEqual({ code, stdout, stderr }, { code: 0, stdout: "netlink: a defect true\n", stderr: "" });
});
