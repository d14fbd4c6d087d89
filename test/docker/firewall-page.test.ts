/**
 * docs/firewall-to-policy.md: what it says of a firewall script and of a proxy is so, and with a policy it is not. All is run as it is
 * printed, with the machine's programs under the names that the page has. The meter is the log of the name server outside.
 */
import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";

import { runOnHost, tryOnHost } from "../support/engine/compose-project.ts";
import { createNetwork } from "../support/engine/container.ts";
import { busyboxWith, ensureImage, unpacked } from "../support/engine/image.ts";
import { type PrintedBlock, commandsOf, printedBlocks, runAsPrinted } from "../support/engine/printed-page.ts";
import { API, AT_FIRST, StrangersWorld } from "../support/engine/strangers-world.ts";
import { dns11, startDns11 } from "../support/program/dns11.ts";
import { waitFor } from "../support/rig/wait.ts";

const PAGE = "docs/firewall-to-policy.md";
const MOVED = "192.0.2.20";
const STARTS = 3;

let world: StrangersWorld;

before(async () => {
  world = await StrangersWorld.begin("forky");
  const proxy = await unpacked("tinyproxy-bin", "usr/bin/tinyproxy");
  await ensureImage(world.engine, busyboxWith("tinyproxy", { "/usr/bin/tinyproxy": proxy }, []));
});
after(async () => await world[Symbol.asyncDispose]());

test("what a firewall script lets through, and what breaks", async () => {
  await using project = await up("script", printedBlocks(PAGE, "The script"));
  const [holds, tunnel, moved, flushed, absent] = project.consoles;
  await world.setNames(AT_FIRST);
  await project.run(holds);
  assert.deepEqual(await world.keys(), []);
  await project.run(tunnel);
  assert.deepEqual(new Set(await world.keys()), new Set(["key-one", "key-two"]));
  await world.setNames({ ...AT_FIRST, "api.example.com": MOVED });
  await project.run(moved);
  await project.run(flushed);
  await world.setNames({ "api.example.com": API });
  await project.run(absent);
});

test("what an internal network with a proxy lets through, and what breaks", async () => {
  await world.setNames(AT_FIRST);
  await using project = await up("proxied", printedBlocks(PAGE, "An internal network with a proxy"));
  const [works, ignored, forwarded] = project.consoles;
  await project.run(works);
  await project.run(ignored);

  await using older = await StrangersWorld.begin("bookworm");
  await older.setNames(AT_FIRST);
  await createNetwork(older.engine, "inside", { internal: true });
  for (const each of commandsOf(forwarded ?? "")) await runAsPrinted(older.engine, older.engine.folder, each);
  assert.deepEqual(new Set(await older.keys()), new Set(["key-three"]));
});

test("with the policy neither", async () => {
  const { engine } = world;
  const blocks = printedBlocks(PAGE, "The policy");
  const asked = await world.keys();
  await world.setNames(AT_FIRST);
  writeFileSync(join(engine.folder, "daemon.json"), textOf(blocks, "daemon.json"));
  await engine.restartDaemon();
  const settings = join(engine.folder, "dns11.yaml");
  writeFileSync(settings, textOf(blocks, "dns11.yaml"));
  await using instance = await startDns11(engine, { args: ["--config", settings] });
  await using project = await up("policed", blocks);
  await instance.waitFor("policed-agent-1", "attached");
  const [holds, moved, absent, admin] = project.consoles;
  await project.run(holds);
  await world.setNames({ ...AT_FIRST, "api.example.com": MOVED });
  await project.run(moved);
  await world.setNames({ "api.example.com": MOVED });
  await project.run(absent);
  await project.run(admin);
  await runOnHost(engine, "docker run -d --name admin --network agents --cap-add NET_ADMIN agent sleep infinity");
  const command = ["policy", "--state-dir", instance.stateDir];
  const { stdout } = await waitFor("what dns11 says of it", async () => {
    const said = await dns11(command);
    return said.code === 1 ? said : undefined;
  });
  assert.match(stdout, /NET_ADMIN/);
  await runOnHost(engine, "docker rm -f admin");
  const [, , , withoutProxy] = consolesOf(printedBlocks(PAGE, "An internal network with a proxy"));
  await world.setNames(AT_FIRST);
  await project.run(withoutProxy?.replace(MOVED, API));
  // Their first instruction asks.
  for (let each = 1; each <= STARTS; each++) {
    const line = `docker run --rm --network agents agent nslookup -type=a key-born-${each}.tunnel.example.net`;
    assert.match((await tryOnHost(engine, line)).stdout, /can't find|no servers/);
  }
  assert.deepEqual(await world.keys(), asked);
});

interface Project extends AsyncDisposable {
  /** Those of its section, in their order. */
  readonly consoles: readonly string[];
  readonly run: (console: string | undefined) => Promise<void>;
}

/** In a folder of this name, with all files of the section. */
async function up(name: string, blocks: readonly PrintedBlock[]): Promise<Project> {
  const { engine } = world;
  const folder = join(engine.folder, name);
  mkdirSync(folder);
  for (const each of blocks.filter(({ kind }) => kind === "text")) writeFileSync(join(folder, each.name), each.text);
  await runOnHost(engine, `cd ${folder} && docker compose up -d`);
  return {
    consoles: consolesOf(blocks),
    run: async (console) => {
      assert.ok(console !== undefined, `${PAGE} has fewer commands`);
      for (const each of commandsOf(console)) await runAsPrinted(engine, folder, each);
    },
    [Symbol.asyncDispose]: async () => void (await runOnHost(engine, `cd ${folder} && docker compose down -t 0`)),
  };
}

function consolesOf(blocks: readonly PrintedBlock[]): string[] {
  return blocks.filter(({ kind }) => kind === "console").map(({ text }) => text);
}

function textOf(blocks: readonly PrintedBlock[], file: string): string {
  const found = blocks.find(({ kind, name }) => kind !== "console" && name === file);
  return found?.text ?? assert.fail(`${PAGE} has no ${file}`);
}
