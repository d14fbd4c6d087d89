// Attacks by words: names, aliases and labels that somebody else reads.

import assert from "node:assert/strict";

import { dns11 } from "../support/program/dns11.ts";
import { dig } from "../support/asking/dig.ts";
import { ensureImage, labelledImage } from "../support/engine/image.ts";
import { waitFor } from "../support/rig/wait.ts";
import type { Attack, Rig } from "./rig.ts";

// As dig writes octets: clear the screen, colour it, name the window, end the line.
const STEERING = "\\027[2J\\027[31m\\155\\010\\013\\127\\155.evil.test";
// Of what people are shown: whatever steers a terminal, beside the ends of our own lines.
// oxlint-disable-next-line no-control-regex
const CONTROL = /[\u0000-\u0009\u000b-\u001f\u007f-\u009f]/;
const SERVER = "127.0.0.1:6379";
const MANY = `/${Array.from({ length: 20_000 }, (_, index) => (index + 36 ** 3).toString(36)).join("/")}/${SERVER}`;

async function shown(rig: Rig, ...words: string[]): Promise<string> {
  const { stdout, stderr } = await dns11([...words, "-H", rig.engine.host, "--state-dir", rig.instance.stateDir]);
  return stdout + stderr;
}

async function steer(rig: Rig): Promise<void> {
  const aliases = ["\u001b[2J", "a\u0007b", "\u009b31m", "x".repeat(300), "..", "*"];
  const odd = { name: "odd", networks: [{ name: "attackers", aliases }], labels: { "io.dns11.dns": "\u001b[2J" } };
  await rig.addAttacker({ ...odd, args: ["--hostname=odd"] });
  for (let times = 0; times < 2; times++) await dig(rig.plain, "+time=1", STEERING);
  for (const words of [
    ["status"],
    ["ps"],
    ["tail", "plain", "--no-follow"],
    ["top", "--once"],
    ["explain", "plain", "a"],
  ]) {
    const text = await shown(rig, ...words);
    assert.ok(text.length > 0, words.join(" "));
    assert.doesNotMatch(text, CONTROL, words.join(" "));
  }
  assert.match(await shown(rig, "tail", "plain", "--no-follow"), /\\027\[2J/, "they were asked, and are written out");
  assert.doesNotMatch(rig.instance.log, CONTROL);
  assert.doesNotMatch(rig.instance.log, /evil\.test/, "no name that was asked for is in the log");
}

async function label(rig: Rig): Promise<void> {
  const words: readonly Record<string, string>[] = [
    { "io.dns11.dns": SERVER, "com.docker.compose.project": "shop", "io.dns11.kind": "true" },
    { "io.dns11.dns": MANY },
  ];
  const run = async (labels: Record<string, string>, index: number): Promise<void> => {
    const image = await ensureImage(rig.engine, labelledImage(`labelled${index}`, labels));
    await rig.addAttacker({ name: `labelled${index}`, image });
  };
  await Promise.all(words.map(run));
  const status = await waitFor("what is said of it", async () => await rig.instance.container("labelled0"));
  assert.match(status.warning ?? "", /ignored/);
  assert.doesNotMatch(JSON.stringify(status.upstreams), /6379/);
}

export const WORDS: readonly Attack[] = [
  { title: "names, aliases and labels that steer a terminal", act: steer },
  { title: "labels of images", act: label },
];
