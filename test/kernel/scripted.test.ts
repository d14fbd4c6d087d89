// Proves the scripted name servers: tests can rely on scenarios being played as written.

import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import { test } from "node:test";

import { dataOf, dig } from "../support/client/dig.ts";
import { Netns } from "../support/rig/netns.ts";
import { actionOf, parseScenario } from "../support/scripted/scenario.ts";
import { readScenario, startScripted } from "../support/scripted/scripted.ts";
import { waitFor } from "../support/rig/wait.ts";

// The behaviour of one server over time, in words.
function played(text: string, timesMs: readonly number[], server = 1, name = "x.test"): (string | undefined)[] {
  const scenario = parseScenario(text, "test");
  return timesMs.map((atMs) => actionOf(scenario, server, name, atMs)?.word);
}

test("a line applies until the next one, or for its duration, and a loop starts again", () => {
  assert.deepEqual(played("servfail", [0, 1e9]), ["servfail", "servfail"]);
  assert.deepEqual(played("0s silent\n1.5s ok", [0, 1499, 1500]), ["silent", "silent", "ok"]);
  const flapping = "for 1s silent # a comment\n\nfor 500ms refused\nloop";
  assert.deepEqual(played(flapping, [0, 1000, 1499, 1500, 2600]), [
    "silent",
    "refused",
    "refused",
    "silent",
    "refused",
  ]);
  assert.deepEqual(played("for 1s silent\nok", [999, 1000]), ["silent", "ok"]);
  assert.deepEqual(played("for 1s silent\n2s ok", [1000, 2000]), ["silent", "ok"]);
});

test("a line for one name takes precedence over one for all, and likewise for servers", () => {
  const text = "ok\nserver 2: refused\nname *.gone.test\nnxdomain\nserver 2\nfor 1s silent\nservfail";
  assert.deepEqual(played(text, [0]), ["ok"]);
  assert.deepEqual(played(text, [0], 2), ["refused"]);
  assert.deepEqual(played(text, [0], 1, "X.Gone.test"), ["nxdomain"]);
  assert.deepEqual(played(text, [0, 1000], 2, "x.gone.test"), ["silent", "servfail"]);
  assert.deepEqual(played("name x.test\nok", [0], 1, "y.test"), [undefined]);
});

test("numbers apply to their line and to those below", () => {
  const scenario = parseScenario(
    "slow 300ms servfail\nname a.test\nttl 5\nminimum 7\nspoof 9\nname b.test\nslow 2s",
    "",
  );
  const [all, a, b] = ["x", "a.test", "b.test"].map((name) => actionOf(scenario, 1, name, 0));
  assert.deepEqual(all, { word: "servfail", amount: 0, delayMs: 300, ttlS: 60, minimumS: 30 });
  assert.deepEqual(a, { word: "spoof", amount: 9, delayMs: 0, ttlS: 5, minimumS: 7 });
  assert.deepEqual(b, { word: "ok", amount: 0, delayMs: 2000, ttlS: 5, minimumS: 7 });
});

test("an invalid line is reported with its error", () => {
  for (const [text, message] of [
    ["ok\nsilence", /^Error: test:2: unknown action "silence": use ok, .*: "silence"$/],
    ["servfail\nok", /test:2: the previous line has no end/],
    ["0s servfail\nfor 1s ok", /test:2: the previous line has no end: it needs `for`, too/],
    ["1s ok", /the first line must start at 0s/],
    ["for 2s ok\n1s servfail", /it starts before the end of the previous line/],
    ["for ever ok", /invalid duration "ever"/],
    ["for 0s ok", /a duration must be positive/],
    ["loop", /nothing to repeat/],
    ["ok\nloop", /the previous line has no end: it needs `for`/],
    ["for 1s ok\nloop\nok", /nothing may follow `loop`/],
    ["server two: ok", /expected `server NUMBER`/],
    ["server 2 ok", /a colon must precede the server's action/],
    ["name", /expected `name PATTERN`/],
    ["name x\nclosed", /closed cannot be combined with name/],
    ["spoof", /"spoof" needs a number of replies/],
    ["ok 3", /"ok" takes no number/],
    ["ok then", /"ok" takes no number/],
    ["big 3 4", /too many words/],
    ["ttl long", /expected a whole number of seconds/],
  ] as const) {
    assert.throws(() => parseScenario(text, "test"), message, text);
  }
});

test("every scenario of the folder is valid", () => {
  const files = readdirSync(new URL("../../../test/scenarios", import.meta.url));
  assert.ok(files.length > 0);
  for (const file of files) assert.ok(readScenario(file).length > 0, file);
});

const [ONE, TWO] = ["10.53.0.1", "10.53.0.2"];

test("the servers behave as written, each at its own address, and record their queries", async () => {
  await using netns = await Netns.create();
  const names = [
    ...["ok", "count", "signed", "nodata", "nodata-without-soa", "nxdomain", "nxdomain-without-soa", "servfail"],
    ...["refused", "formerr", "notimp", "formerr-to-edns", "notimp-to-edns", "silent", "garbage", "wrong-id"],
    ...["wrong-source", "wrong-question", "truncated", "midway", "big 60", "oversized 60", "spoof 5"],
  ];
  const lines = names.map((words) => `name ${words.split(" ")[0]}.test\n${words}`);
  const scenario = ["ttl 17", "minimum 19", ...lines, "name slow.test", "slow 300ms nxdomain"].join("\n");
  await using servers = await startScripted(netns, scenario, { addresses: [ONE, TWO] });
  const resolve = async (name: string, ...args: string[]) => await dig(netns, `@${ONE}`, `${name}.test`, ...args);

  assert.deepEqual(dataOf(await resolve("ok")), ["192.0.2.1"]);
  assert.deepEqual(dataOf(await dig(netns, `@${TWO}`, "ok.test")), ["192.0.2.2"]);
  assert.equal((await resolve("ok")).answer[0]?.ttl, 17);
  assert.deepEqual(dataOf(await resolve("ok", "AAAA")), ["2001:db8::1"]);
  assert.deepEqual(dataOf(await resolve("ok", "TXT")), ['"server 1"']);
  assert.equal((await resolve("ok", "MX")).authority[0]?.type, "SOA");
  assert.deepEqual(dataOf(await resolve("count")), ["198.18.0.1"]);
  assert.deepEqual(dataOf(await resolve("COUNT")), ["198.18.0.2"]);

  const [plain, secure, unchecked] = [
    await resolve("signed", "+noad"),
    await resolve("signed", "+do"),
    await resolve("signed", "+cd"),
  ];
  assert.deepEqual([dataOf(plain), plain.flags.has("ad")], [["192.0.2.1"], false]);
  assert.deepEqual([secure.answer.map(({ type }) => type), secure.flags.has("ad")], [["A", "RRSIG"], true]);
  assert.deepEqual([dataOf(unchecked), unchecked.flags.has("ad")], [["192.0.2.101"], false]);

  const nodata = await resolve("nodata");
  assert.deepEqual([nodata.status, nodata.answer.length], ["NOERROR", 0]);
  const [soa] = nodata.authority;
  assert.deepEqual([soa?.name, soa?.ttl, soa?.data], ["test.", 17, "ns.test. admin.test. 1 7200 3600 1209600 19"]);
  assert.deepEqual((await resolve("nodata-without-soa")).authority, []);
  const nxdomain = await resolve("nxdomain");
  assert.deepEqual([nxdomain.status, nxdomain.authority.length], ["NXDOMAIN", 1]);
  const bare = await resolve("nxdomain-without-soa");
  assert.deepEqual([bare.status, bare.authority.length], ["NXDOMAIN", 0]);
  for (const word of ["servfail", "refused", "formerr", "notimp"]) {
    assert.equal((await resolve(word, "+noedns")).status, word.toUpperCase());
  }
  for (const word of ["formerr", "notimp"]) {
    const [with_, without] = [await resolve(`${word}-to-edns`, "+edns=0"), await resolve(`${word}-to-edns`, "+noedns")];
    assert.deepEqual([with_.status, with_.edns, dataOf(without)], [word.toUpperCase(), undefined, ["192.0.2.1"]]);
  }

  const silent = ["silent", "wrong-id", "wrong-source"].map(async (word) => (await resolve(word, "+time=1")).timedOut);
  assert.deepEqual(await Promise.all(silent), [true, true, true]);
  assert.equal((await resolve("garbage", "+time=1")).status, "");
  assert.deepEqual((await resolve("wrong-question", "+time=1")).answer, []);
  for (const word of ["wrong-id", "wrong-source", "wrong-question", "truncated"]) {
    assert.deepEqual(dataOf(await resolve(word, "+tcp")), ["192.0.2.1"], word);
  }
  assert.deepEqual(
    [(await resolve("truncated", "+ignore")).flags.has("tc"), (await resolve("truncated")).tcp],
    [true, true],
  );
  assert.equal((await resolve("midway", "+tcp", "+retry=0")).status, "");
  assert.equal((await resolve("big", "+noedns", "+ignore")).flags.has("tc"), true);
  assert.equal((await resolve("big", "+bufsize=1232")).answer.length, 60);
  assert.equal((await resolve("oversized", "+noedns")).answer.length, 60);
  assert.equal((await resolve("oversized", "TXT", "+noedns")).size, 12 + 20 + 12 + 960);
  assert.deepEqual(dataOf(await resolve("spoof")), ["192.0.2.1"]);
  assert.equal((await resolve("slow")).status, "NXDOMAIN");
  assert.deepEqual(dataOf(await resolve("x7.ok")), ["192.0.2.7"], "a name of upstream-answer.ts");

  await servers.forget();
  await dig(netns, `@${TWO}`, "Ok.test", "+tcp");
  await resolve("ok");
  const queries = (await servers.queriesFor("ok.test")).map(({ server, name, transport }) => [server, name, transport]);
  assert.deepEqual(queries, [
    [2, "Ok.test", "tcp"],
    [1, "ok.test", "udp"],
  ]);
});

test("a server closes and opens at the set times, and a new scenario starts at once", async () => {
  await using netns = await Netns.create();
  const scenario = "server 1\nfor 2s ok\nfor 10m closed";
  await using servers = await startScripted(netns, scenario, { addresses: [ONE, TWO] });
  const resolve = async (server: string, ...args: string[]) => await dig(netns, `@${server}`, "x.test", ...args);
  // A busy machine may take longer than the server is open.
  await waitFor("an answer of the open server", async () => {
    await servers.play(scenario);
    return (await resolve(ONE)).status === "NOERROR" ? true : undefined;
  });
  await waitFor("the server to close", async () =>
    (await dig(netns, `@${ONE}`, "other.test", "+time=1")).raw.includes("connection refused") ? true : undefined,
  );
  assert.match((await resolve(ONE)).raw, /connection refused/);
  assert.match((await resolve(ONE, "+tcp")).raw, /connection refused/);
  assert.equal((await resolve(TWO)).status, "NXDOMAIN");
  await servers.play("count");
  assert.deepEqual(dataOf(await resolve(ONE, "+tcp")), ["198.18.0.2"]);
});
