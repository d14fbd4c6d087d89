// Declared names of a dns11 that runs inside of a node, where there is no engine: in the settings, also after a reload, and in a folder
// that is followed.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import { dataOf, dig } from "../../support/client/dig.ts";
import { SIMULATED_NETWORK, startSimulatedNetwork } from "../../support/kind/simulated-network.ts";
import { PROGRAM } from "../../support/program/built.ts";
import { SYSTEM_PATH } from "../../support/program/command.ts";
import { makeFolder } from "../../support/rig/folder.ts";
import { inTime, waitFor } from "../../support/rig/wait.ts";

const RESOLVER = "@127.0.0.11";

test("a node resolves declared names, and what becomes of them", async () => {
  const folder = makeFolder("records");
  const files = makeFolder("files");
  const config = join(folder, "dns11.yaml");
  const declare = (address: string): void => writeFileSync(config, `version: 1\nrecords: {own.test: ${address}}\n`);
  declare("192.0.2.1");
  writeFileSync(join(files, "a.hosts"), "192.0.2.7 file.test\n");
  await using rig = await startSimulatedNetwork({ rules: "iptables-nft" });
  const words = ["run", "--in-node", "--config", config, "--records-dir", files, "--state-dir", join(folder, "state")];
  const [command = "", ...rest] = [...rig.node.prefix, process.execPath, PROGRAM, ...words];
  const child = spawn(command, rest, {
    stdio: "ignore",
    env: { ...process.env, PATH: SYSTEM_PATH },
  });
  const expect = async (name: string, address: string): Promise<void> =>
    void (await waitFor(`${name} to be ${address}`, async () =>
      dataOf(await dig(rig.node, RESOLVER, name)).join(" ") === address ? true : undefined,
    ));
  try {
    await expect("own.test", "192.0.2.1");
    await expect("file.test", "192.0.2.7");
    assert.deepEqual(
      dataOf(await dig(rig.node, RESOLVER, "web")),
      [SIMULATED_NETWORK.names.web],
      "Docker's are as before",
    );
    declare("192.0.2.2");
    child.kill("SIGHUP");
    await expect("own.test", "192.0.2.2");
    await expect("file.test", "192.0.2.7");
    writeFileSync(join(files, "a.hosts"), "192.0.2.8 file.test\n");
    await expect("file.test", "192.0.2.8");
  } finally {
    const ended = once(child, "exit");
    child.kill("SIGTERM");
    await inTime(ended, "dns11 in the node to end");
  }
});
