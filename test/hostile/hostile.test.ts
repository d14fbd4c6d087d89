/**
 * Containers that mean harm, one attack after the other on one engine. All the while a container on another network asks a
 * hundred names a second. It gets every answer that Docker's resolver would have given it, and the right one; and dns11 stays
 * the same process, within its bounds of memory, descriptors and log.
 *
 * DNS11_ATTACK=words runs those with the words in their title; DNS11_PROGRAM=path runs another build, to see what it does.
 */
import { after, before, test } from "node:test";

import { BESIDE } from "./beside.ts";
import { FILES } from "./files.ts";
import { FLOODS } from "./floods.ts";
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

test("when the attackers are gone, nothing of them is left", async () => await rig.endAttackers());
