/**
 * Malicious containers: one attack after the other on one engine, while a container on another network sends thirty queries a
 * second. That container must lose no more answers than with Docker's resolver, and get no wrong one. dns11 must not restart,
 * and must stay within its limits for memory, descriptors and log lines.
 *
 * DNS11_ATTACK=words runs the attacks with these words in their title; DNS11_PROGRAM=path runs another build, to compare.
 */
import { after, before, test } from "node:test";

import { BESIDE } from "./beside.ts";
import { FILES } from "./files.ts";
import { FLOODS } from "./floods.ts";
import { IMAGES } from "./images.ts";
import { Rig } from "./rig.ts";
import { RULES_AND_SOCKETS } from "./rules.ts";
import { LOOPS, SERVERS } from "./servers.ts";
import { STREAMS } from "./streams.ts";
import { WORDS } from "./texts.ts";

const CHOSEN = process.env["DNS11_ATTACK"] ?? "";

const ATTACKS = [
  ...SERVERS,
  ...STREAMS,
  ...FLOODS,
  ...FILES,
  ...RULES_AND_SOCKETS,
  ...WORDS,
  ...BESIDE,
  ...IMAGES,
  ...LOOPS,
].filter(({ title }) => title.includes(CHOSEN));
let rig: Rig;
before(async () => {
  rig = await Rig.start();
  for (const { begin } of ATTACKS) begin?.(rig);
});
after(async () => await rig[Symbol.asyncDispose]());

for (const attack of ATTACKS) {
  test(attack.title, async (context) => context.diagnostic(await rig.under(attack)));
}

test("after the attackers are gone, their resources are released", async () => await rig.endAttackers());
