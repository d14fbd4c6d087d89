// Proves that a container's writes to its resolv.conf cost dns11 one event, however many they are: after the first one nothing is
// watched until the file is about to be read.

import assert from "node:assert/strict";
import {
  appendFileSync,
  constants,
  mkdirSync,
  openSync,
  readFileSync,
  readdirSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import { Bridges } from "../../../src/features/default-bridge/default-bridge.ts";
import type { EngineHost } from "../../../src/container/namespace/engine-host.ts";
import { closeQuietly } from "../../../src/kernel/libc.ts";
import { makeFolder } from "../../support/rig/folder.ts";
import { waitFor } from "../../support/rig/wait.ts";
import { aContainer } from "../../support/scripted/builders.ts";

const ID = "f00d";

function isWatched(path: string): boolean {
  const inode = ` ino:${statSync(path).ino.toString(16)} `;
  return readdirSync("/proc/self/fdinfo").some((fd) => {
    try {
      return readFileSync(`/proc/self/fdinfo/${fd}`, "utf8").includes(inode);
    } catch {
      return false;
    }
  });
}

test("a container's resolv.conf is not watched from the first write until it is read", async () => {
  const folder = makeFolder("bridges");
  const file = join(folder, ID, "resolv.conf");
  mkdirSync(join(folder, ID));
  writeFileSync(file, "nameserver 192.0.2.1\n");
  const root = openSync(folder, constants.O_RDONLY | constants.O_DIRECTORY);
  let reads = 0;
  const bridges = new Bridges({
    host: () => ({ root }) as EngineHost,
    onChange: () => undefined,
    onFileChange: () => void reads++,
  });
  try {
    bridges.ensureMode(aContainer({ id: ID, resolvConfPath: `/${ID}/resolv.conf` }));
    assert.equal(isWatched(file), true);
    for (const expected of [1, 2]) {
      appendFileSync(file, "#");
      await waitFor("the watch to end", () => (isWatched(file) ? undefined : true), { everyMs: 0 });
      for (let write = 0; write < 1_000; write++) appendFileSync(file, "#");
      assert.equal(isWatched(file), false);
      await waitFor("the file to be read", () => (reads === expected ? true : undefined));
      assert.equal(isWatched(file), true);
    }
  } finally {
    bridges.close();
    closeQuietly(root);
  }
});
