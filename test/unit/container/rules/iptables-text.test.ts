// Proves that no text of foreign tables is ever passed to iptables-restore, whatever line ends and quotes it contains, and
// that our own chains are found and removed all the same.

import assert from "node:assert/strict";
import { test } from "node:test";

import { LIMITS } from "../../../../src/base/limits.ts";
import { type Saved, listenersIn, readSaved } from "../../../../src/container/rules/iptables-saved.ts";
import { restoreText } from "../../../../src/container/rules/iptables-text.ts";

const REMOVING = { hasZones: true, interfaceName: String };

async function saved(...lines: readonly string[]): Promise<Saved> {
  return await readSaved(["# made by a test", "*nat", ...lines, "COMMIT", ""].join("\n"));
}

function linesOf(text: string): string[] {
  return text.split("\n").filter((line) => !["", "COMMIT"].includes(line));
}

test("our chains are removed with the rules that jump to them, and foreign rules are not", async () => {
  const { text, emptied } = restoreText(
    undefined,
    await saved(
      ":OUTPUT ACCEPT [0:0]",
      ":DNS11-QUERY - [0:0]",
      ":DNS11-OTHER - [0:0]",
      ":MINE - [0:0]",
      "[1:2] -A OUTPUT -j DNS11-QUERY",
      "[1:2] -A OUTPUT -j MINE",
      "[1:2] -A DNS11-QUERY -d 127.0.0.11/32 -p udp -j DNAT --to-destination 127.0.0.11:9",
    ),
    REMOVING,
  );
  assert.deepEqual(linesOf(text), ["*nat", ":DNS11-QUERY - [0:0]", "-D OUTPUT -j DNS11-QUERY", "-X DNS11-QUERY"]);
  assert.deepEqual(emptied, []);
});

test("a chain to which foreign rules jump is only emptied, and these rules stay as they were", async () => {
  for (const rule of [
    "-A OUTPUT -p udp -j DNS11-QUERY",
    "-A OUTPUT -g DNS11-QUERY",
    "-A MINE -j DNS11-QUERY",
    String.raw`-A OUTPUT -m comment --comment "two\" lines` + '\nof it" -j DNS11-QUERY',
  ]) {
    const { text, emptied } = restoreText(undefined, await saved(":DNS11-QUERY - [0:0]", `[0:0] ${rule}`), REMOVING);
    assert.deepEqual(linesOf(text), ["*nat", ":DNS11-QUERY - [0:0]"], rule);
    assert.deepEqual(emptied, ["DNS11-QUERY"], rule);
  }
});

test("lines in a comment or in a name are not rules", async () => {
  const lies = ["[9:9] -A OUTPUT -j DNS11-QUERY", ":DNS11-QUERY - [0:0]", "-A INPUT -s host.name -j DNS11-QUERY"];
  const comment = await saved(`[0:0] -A MINE -m comment --comment "x\n${lies.join("\n")}\n*raw\ny" -j RETURN`);
  assert.equal(restoreText(undefined, comment, REMOVING).text, "");
  const reply = "[7:7] -A DNS11-REPLY -s 127.0.0.11/32 -p udp --sport 9 -j SNAT --to-source :53";
  const quoted = await saved(`[0:0] -A OUTPUT -m comment --comment "\n${reply}\n" -j RETURN`);
  assert.deepEqual([listenersIn(quoted), [...quoted.foreignTables]], [[], ["nat"]]);
  // A name is not quoted, so its second line looks like a rule; even then the output has only our own words.
  const named = await saved(":DNS11-QUERY - [0:0]", "[0:0] -A x\n-A OUTPUT -j DNS11-QUERY");
  const lines = linesOf(restoreText(undefined, named, REMOVING).text);
  assert.deepEqual(lines, ["*nat", ":DNS11-QUERY - [0:0]", "-D OUTPUT -j DNS11-QUERY", "-X DNS11-QUERY"]);
});

test("a table is foreign if one of its rules is, even one that only mentions our chains", async () => {
  const foreignIn = async (...lines: readonly string[]): Promise<string[]> => [
    ...(await saved(...lines)).foreignTables,
  ];
  assert.deepEqual(await foreignIn("[0:0] -A OUTPUT -j DNS11-QUERY", "[0:0] -A DNS11-QUERY -j RETURN"), []);
  assert.deepEqual(await foreignIn('[0:0] -A OUTPUT -m comment --comment "of DNS11-QUERY" -j DROP'), ["nat"]);
});

test("as much as a container can have printed is read in between, and too many rules that name our chains are refused", async () => {
  let turns = 0;
  const timer = setInterval(() => turns++, 0);
  const others = Array.from(
    { length: 20_000 },
    (_, index) => `[0:0] -A MINE -s 10.0.${index >> 8}.${index & 255}/32 -j RETURN`,
  );
  const open = `[0:0] -A MINE -m comment --comment "${"x\n".repeat(100_000)}`;
  const { ours, foreignTables } = await saved(...others, "[0:0] -A OUTPUT -j DNS11-QUERY", open);
  clearInterval(timer);
  assert.deepEqual([ours.length, [...foreignTables]], [1, ["nat"]]);
  assert.ok(turns > 1, "others had their turn");
  const named = Array.from({ length: LIMITS.iptablesRulesOfOurs + 1 }, () => "[0:0] -A DNS11-REPLY -j RETURN");
  await assert.rejects(saved(...named), /More than 4096 rules mention chains called DNS11-/);
});
