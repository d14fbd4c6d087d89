/**
 * docs/recipes.md: every recipe is run as it is printed, with its Compose file, its other files, its settings and its commands. The
 * images are made of the machine's programs under the names that the page has.
 */
import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";

import { runOnHost } from "../support/engine/compose-project.ts";
import { createNetwork } from "../support/engine/container.ts";
import { type Engine, startEngine } from "../support/engine/engine.ts";
import { busyboxWith, ensureImage, unpacked } from "../support/engine/image.ts";
import { type PrintedCommand, commandsOf, printedBlocks, runAsPrinted } from "../support/engine/printed-page.ts";
import { check } from "../support/program/command.ts";
import { startDns11 } from "../support/program/dns11.ts";
import { startDnsmasq } from "../support/servers/real-server.ts";

interface Recipe {
  readonly compose: string;
  readonly files: Readonly<Record<string, string>>;
  readonly settings: string;
  readonly commands: readonly PrintedCommand[];
}

const VPN = "100.100.100.100";
const NOTHING = "services: { app: { image: busybox, command: sleep infinity } }\n";

let engine: Engine;

before(async () => {
  engine = await startEngine({ resolvConf: "nameserver 127.0.0.1\n" });
  const caddy = await unpacked("caddy", "usr/bin/caddy");
  const applets = ["httpd", "hostname", "nslookup"];
  await ensureImage(engine, busyboxWith("busybox", {}, applets));
  const proxy = busyboxWith("caddy", { "/usr/bin/caddy": caddy }, applets);
  // As in Caddy's own image.
  await ensureImage(engine, { ...proxy, changes: [...proxy.changes, "ENV XDG_DATA_HOME=/data"] });
  await ensureImage(engine, busyboxWith("curlimages/curl", { "/usr/bin/curl": "/usr/bin/curl" }, applets));
});
after(async () => await engine[Symbol.asyncDispose]());

test("one proxy for all names, with HTTPS", async () => {
  await run("One proxy for all names, with HTTPS", "dev");
});

test("AWS names to an emulator", async () => {
  await run("AWS names to an emulator", "cloud");
});

test("names of a VPN, whose resolver rejects the packets of containers", async () => {
  await using _vpn = await startDnsmasq(engine, { address: VPN, lines: ["address=/nas.tail1234.ts.net/100.64.0.7"] });
  await using _host = await startDnsmasq(engine, { address: "127.0.0.1", lines: ["address=/example.com/192.0.2.1"] });
  const rejecting =
    "table inet vpn { chain c { type filter hook input priority 0; iifname != lo ip daddr 100.64.0.0/10 reject; }; }";
  await check("nsenter", [`--net=${engine.netnsPath}`, "nft", rejecting]);
  await run("Names of a VPN", "vpn");
});

test("two projects with one name on a shared network", async () => {
  await createNetwork(engine, "shared");
  await run("Two projects with one name on a shared network", "one", "two");
});

/** With a project for each folder, which `docker compose` takes its name from. */
async function run(title: string, ...projects: readonly string[]): Promise<void> {
  const { compose, files, settings, commands } = recipe(title);
  const folders = projects.map((project) => join(engine.folder, project));
  const [first = ""] = folders;
  const up = async (word: string): Promise<void> => {
    for (const folder of folders) await runOnHost(engine, `cd ${folder} && docker compose ${word}`);
  };
  for (const folder of folders) {
    mkdirSync(folder);
    for (const [name, text] of Object.entries({ ...files, "compose.yaml": compose }))
      writeFileSync(join(folder, name), text);
  }
  const file = join(first, "dns11.yaml");
  writeFileSync(file, `version: 1\n${settings}`);
  await using instance = await startDns11(engine, { args: ["--config", file] });
  await up("up -d");
  try {
    for (const { State, name } of await containers()) {
      assert.equal(State, "running", name);
      await instance.waitFor(name, "attached");
    }
    for (const each of commands) await runAsPrinted(engine, first, each);
  } finally {
    await up("down -t 0 -v");
  }
}

async function containers(): Promise<{ readonly State: string; readonly name: string }[]> {
  const list = (await engine.api("/containers/json?all=true")) as { State: string; Names: string[] }[];
  return list.map(({ State, Names: [name = ""] }) => ({ State, name: name.slice(1) }));
}

function recipe(title: string): Recipe {
  const blocks = printedBlocks("docs/recipes.md", title);
  const texts = blocks.filter(({ kind }) => kind === "text").map(({ text }) => text);
  const isCompose = (text: string): boolean => text.startsWith("services:");
  const others = texts.filter((text) => !isCompose(text));
  assert.ok(others.length <= 1, "one other file: a Caddyfile");
  return {
    compose: texts.find(isCompose) ?? NOTHING,
    files: Object.fromEntries(others.map((text) => ["Caddyfile", text])),
    settings: blocks.find(({ kind }) => kind === "yaml")?.text ?? "",
    commands: commandsOf(
      blocks
        .filter(({ kind }) => kind === "console")
        .map(({ text }) => text)
        .join(""),
    ),
  };
}
