// How many bytes a second a container whose policy is enforced gets to the server of a name that the policy allows, by what its program
// chooses: measured by what arrives at that server, on an engine, once the program has used up what it may ask at once. What is chosen
// is drawn at random; when it arrives is worth what a server learns that tells milliseconds apart.
import { type ChildProcessByStdio, spawn } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Readable, Writable } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";

import { type Container, createNetwork, runContainer } from "../support/engine/container.ts";
import { startEngine } from "../support/engine/engine.ts";
import { startDns11 } from "../support/program/dns11.ts";
import { inNetns } from "../support/rig/netns.ts";
import { unrefChild } from "../support/rig/reaper.ts";
import { startUpstream } from "../support/servers/upstream.ts";
import { CHANNELS, momentBits } from "./channel-list.ts";
import type { Row } from "./figures.ts";

// The limit of new names is of whole minutes.
const SECONDS = 60;
const MOMENT_MS = 1;
const SENDER = fileURLToPath(new URL("./channels-main.js", import.meta.url));
const MODES = { "": [], "--strict: ": ["--strict"] };

const baseOf = (name: string): string => `${name}.zero.test`;

export async function benchChannels(): Promise<Row[]> {
  const rows: Row[] = [];
  for (const [mode, args] of Object.entries(MODES)) {
    await using engine = await startEngine({ suite: "bookworm" });
    await using upstream = await startUpstream(engine);
    await createNetwork(engine, "agents");
    const policies = Object.entries(CHANNELS).map(([name, { policy }]) => {
      const rule = `${policy === "below" ? "**." : ""}${baseOf(name)}`;
      return `  ${name}: {for: [label=channel=${name}], mode: enforce, allow: ["${rule}"]}\n`;
    });
    const settings = join(engine.folder, "channels.yaml");
    writeFileSync(settings, `version: 1\nanswers: process\nkeeper: off\npolicies:\n${policies.join("")}`);
    await using _ = await startDns11(engine, { args: ["--config", settings, ...args] });
    const names = Object.keys(CHANNELS);
    const senders = await Promise.all(
      names.map(async (name) => {
        const container = await runContainer(engine, { name, networks: ["agents"], labels: { channel: name } });
        return await startSender(container, name);
      }),
    );
    await upstream.forget();
    await sleep(SECONDS * 1_000);
    const all = await upstream.queries();
    for (const sender of senders) sender.stdin.end();
    await Promise.all(senders.map(async (sender) => await once(sender, "close")));
    for (const [name, { what, bits }] of Object.entries(CHANNELS)) {
      const arrived = all.filter(({ name: asked }) => isOf(name, asked.toLowerCase()));
      const perSecond = (sum: number): string => (sum / 8 / SECONDS).toFixed(1);
      const moments = perSecond(momentBits(arrived.length, (SECONDS * 1_000) / MOMENT_MS));
      const questions = (arrived.length / SECONDS).toFixed(1);
      const measured = `${perSecond(bits(arrived))} bytes/s, and when: ${moments}; ${questions} questions/s`;
      rows.push({ what: `${mode}${what}`, measured });
    }
  }
  return rows;
}

// Until it has used up what it may ask at once.
async function startSender(container: Container, name: string): Promise<ChildProcessByStdio<Writable, Readable, null>> {
  const [command = "", ...args] = inNetns(container.netnsPath, process.execPath, [SENDER, name, baseOf(name)]);
  const sender = spawn(command, args, { stdio: ["pipe", "pipe", "inherit"], detached: true });
  unrefChild(sender);
  await once(sender.stdout, "data");
  return sender;
}

function isOf(channel: string, asked: string): boolean {
  return asked.endsWith(baseOf(channel)) || (channel === "reverse" && asked.endsWith(".in-addr.arpa"));
}
