// Attacks with texts: names, aliases and labels that are shown to people.

import assert from "node:assert/strict";

import { LIMITS } from "../../src/base/limits.ts";
import { dns11 } from "../support/program/dns11.ts";
import { dig } from "../support/client/dig.ts";
import { createNetwork } from "../support/engine/container.ts";
import { ensureImage, labelledImage } from "../support/engine/image.ts";
import { waitFor } from "../support/rig/wait.ts";
import type { Attack, Rig } from "./rig.ts";

// In dig's escapes: clear the screen, set a colour, set the window title, end the line.
const STEERING = "\\027[2J\\027[31m\\155\\010\\013\\127\\155.evil.test";
// Characters that control a terminal or reverse text, except for our own line ends.
const CONTROL = /(?!\n)[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}]/u;
const ODD_NETWORK = "odd\u001b[2J\u001b]0;owned\u0007";
const SERVER = "127.0.0.1:6379";
/** More characters than are read. */
const MANY = `/${Array.from({ length: 6_000 }, (_, index) => index.toString(36).padStart(15, "a")).join("/")}/${SERVER}`;

async function shown(rig: Rig, ...words: string[]): Promise<string> {
  const { stdout, stderr } = await dns11([...words, "-H", rig.engine.host, "--state-dir", rig.instance.stateDir]);
  return stdout + stderr;
}

async function steer(rig: Rig): Promise<void> {
  const steering = "\u001b[2J\u009b31m\u202e\u2028";
  const aliases = ["\u001b[2J", "a\u0007b", "\u009b31m", "\u202egnp", "x".repeat(300), "..", "*"];
  const labels = {
    "io.dns11.dns": steering,
    "com.docker.compose.project": steering,
    "com.docker.compose.service": steering,
  };
  const odd = { name: "odd", networks: [{ name: "attackers", aliases }], labels };
  await rig.addAttacker({ ...odd, args: ["--hostname=odd"] });
  await createNetwork(rig.engine, ODD_NETWORK);
  await rig.addAttacker({ name: "on-odd", networks: [ODD_NETWORK] });
  const notThere = { "io.dns11.dns": "container:on-odd@elsewhere" };
  await rig.addAttacker({ name: "misled", networks: [ODD_NETWORK], labels: notThere });
  for (let times = 0; times < 2; times++) await dig(rig.plain, "+time=1", STEERING);
  for (const words of [
    ["status"],
    ["ps"],
    ["tail", "plain", "-n", "20"],
    ["top", "--once"],
    ["explain", "plain", "a"],
    ["upstreams"],
    ["policy"],
    ...["status", "ps", "names", "failures", "doctor", "upstreams"].map((command) => [command, "--json"]),
    ["names"],
    ["failures", "--all"],
    ["doctor", "--all"],
  ]) {
    const text = await shown(rig, ...words);
    assert.ok(text.length > 0, words.join(" "));
    assert.doesNotMatch(text, CONTROL, words.join(" "));
  }
  assert.match(await shown(rig, "upstreams"), /is not on network "elsewhere"; use one of odd/);
  // A query has ended when the client is told that its server does not reply.
  await waitFor("the names that were queried to be shown escaped", async () =>
    /\\027\[2J/.test(await shown(rig, "tail", "plain", "-n", "20")) ? true : undefined,
  );
  assert.doesNotMatch(rig.instance.log, CONTROL);
  assertLookupsBounded(rig);
}

/** Names are in the log only if their lookup failed: escaped, cut, and so many of each container. */
function assertLookupsBounded(rig: Rig): void {
  const lines = rig.instance.log.split("\n").filter((line) => line.includes("lookup failed"));
  const others = rig.instance.log.split("\n").filter((line) => !line.includes("lookup failed"));
  assert.doesNotMatch(others.join("\n"), /evil\.test/);
  const counts = new Map<unknown, number>();
  for (const line of lines) {
    const { name, container } = JSON.parse(line) as Record<string, unknown>;
    assert.match(String(name), /^[!-~]+$/);
    assert.ok(String(name).length <= LIMITS.logNameChars + "...".length);
    counts.set(container, (counts.get(container) ?? 0) + 1);
  }
  for (const [container, count] of counts) assert.ok(count <= LIMITS.logNames, `${String(container)}: ${count} lines`);
}

/** An image with a label that is longer than what is read. `docker import` takes seconds to parse as long a one. */
async function longLabelled({ engine }: Rig): Promise<string> {
  const id = await engine.docker("create", "--label", `io.dns11.dns=${MANY}`, await ensureImage(engine));
  await engine.docker("commit", id, "labelled1");
  await engine.docker("rm", id);
  return "labelled1";
}

async function label(rig: Rig): Promise<void> {
  const labels = { "io.dns11.dns": SERVER, "com.docker.compose.project": "shop", "io.dns11.kind": "true" };
  const images = [await ensureImage(rig.engine, labelledImage("labelled0", labels)), await longLabelled(rig)];
  await Promise.all(images.map(async (image) => await rig.addAttacker({ name: image, image })));
  const status = await waitFor("its status", async () => await rig.instance.container("labelled0"));
  assert.match(status.warning ?? "", /ignored/);
  assert.doesNotMatch(JSON.stringify(status.upstreams), /6379/);
}

export const WORDS: readonly Attack[] = [
  { title: "names, aliases and labels with terminal escapes", act: steer },
  { title: "labels of images", act: label },
];
