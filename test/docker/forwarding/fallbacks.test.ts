// Containers whose servers answer some queries only: their names resolve, soon without waiting, and explain says what their servers do
// not answer. Each test has its own container and servers, because dns11 remembers what a server does.

import assert from "node:assert/strict";
import { test } from "node:test";

import { dataOf } from "../../support/client/dig.ts";
import { dns11 } from "../../support/program/dns11.ts";
import { waitFor } from "../../support/rig/wait.ts";
import { type Case, Forwarding } from "./case.ts";

const AD = 0x0020;
// What musl asks, glibc by default and with "options edns0", and dig.
const MUSL = ["+noedns", "+adflag"];
const PLAIN = ["+noedns", "+noadflag"];
const EDNS = ["+edns", "+noadflag", "+nocookie"];
const DIG = ["+edns", "+adflag"];

const forwarding = new Forwarding();

// Each query a server received for a name, as "server transport with what it had".
async function received({ servers }: Case, name: string): Promise<string[]> {
  return (await servers.queriesFor(name)).map(({ server, transport, opt, flags }) =>
    [`${server} ${transport}`, ...(opt === undefined ? [] : ["EDNS"]), ...((flags & AD) === 0 ? [] : ["AD"])].join(" "),
  );
}

async function explained({ container }: Case, name: string): Promise<string> {
  const place = ["-H", forwarding.engine.host, "--state-dir", forwarding.dns11.stateDir];
  return (await dns11(["explain", "-v", name, container.name, ...place])).stdout;
}

for (const [network, form, first, later, said] of [
  ["silent-to-edns", PLAIN, ["1 udp"], ["1 udp"], "does not answer queries with EDNS"],
  ["silent-to-edns", EDNS, ["1 udp EDNS", "1 udp"], ["1 udp"], "does not answer queries with EDNS"],
  ["silent-to-ad", MUSL, ["1 udp AD", "1 udp"], ["1 udp"], "does not answer queries with AD"],
  [
    "silent-to-ad",
    DIG,
    ["1 udp EDNS AD", "1 udp"],
    ["1 udp"],
    "does not answer queries with EDNS, does not answer queries with AD",
  ],
  ["refused-to-ad", MUSL, ["1 udp AD", "1 udp"], ["1 udp"], "rejects queries with EDNS or AD"],
] as const) {
  test(`a server that is ${network}, asked with ${form.join(" ")}: names resolve`, async () => {
    await using fixture = await forwarding.withServers(1, network);
    assert.deepEqual(dataOf(await fixture.dig("first.test", ...form)), ["192.0.2.1"]);
    assert.deepEqual(await received(fixture, "first.test"), first);
    assert.deepEqual(dataOf(await fixture.dig("later.test", ...form)), ["192.0.2.1"]);
    assert.deepEqual(await received(fixture, "later.test"), later);
    // It asks with EDNS, and finds out what they have not.
    assert.match(await explained(fixture, "explained.test"), new RegExp(`: .*${said}`));
  });
}

test("UDP is filtered: a program that uses TCP is answered over TCP, and explain names it", async () => {
  await using fixture = await forwarding.withServers(1, "silent-by-udp");
  assert.deepEqual(dataOf(await fixture.dig("first.test", "+tcp", ...PLAIN)), ["192.0.2.1"]);
  assert.deepEqual(dataOf(await fixture.dig("later.test", "+tcp", ...PLAIN)), ["192.0.2.1"]);
  assert.deepEqual(await received(fixture, "later.test"), ["1 tcp"]);
  assert.match(await explained(fixture, "explained.test"), /does not answer over udp/);
});

test("TCP of the first server is filtered: large replies come from the second, and UDP clients soon get TC at once", async () => {
  await using fixture = await forwarding.withServers(2, "server 1: silent-by-tcp\nserver 2: big 100");
  const whole = await fixture.dig("first.test", "+tcp", ...EDNS);
  assert.equal(whole.answer.length, 100, whole.raw);
  // The second was asked at all only because TCP to the first stayed silent.
  assert.ok((await received(fixture, "first.test")).includes("2 tcp EDNS"));
  const cut = await fixture.dig("later.test", "+ignore", ...EDNS);
  assert.ok(cut.flags.has("tc"), cut.raw);
  assert.deepEqual(await received(fixture, "later.test"), ["1 udp EDNS"]);
  // As a C library does it.
  const again = await fixture.dig("again.test", ...EDNS);
  assert.deepEqual([again.tcp, again.answer.length], [true, 100]);
});

for (const how of ["formerr", "notimp"]) {
  test(`the first server replies ${how}: the second one answers`, async () => {
    await using fixture = await forwarding.withServers(2, `server 1: ${how}\nserver 2: ok`);
    assert.deepEqual(dataOf(await fixture.dig("x.test", ...PLAIN)), ["192.0.2.2"]);
    await fixture.servers.play(how);
    assert.equal((await fixture.dig("y.test", ...PLAIN)).status, how.toUpperCase());
  });
}

test("a cookie is neither passed on nor returned", async () => {
  await using fixture = await forwarding.withServers(1, "ok");
  // A query without RD is nobody else's.
  const reply = await fixture.dig("x.test", "+norecurse", "+cookie=0102030405060708", "+subnet=192.0.2.0/24");
  assert.deepEqual(dataOf(reply), ["192.0.2.1"]);
  const [query] = await fixture.servers.queriesFor("x.test");
  assert.deepEqual(
    query?.opt?.options.map(({ code }) => code),
    [8],
  );
});

test("an expired answer is followed by the fresh one", async () => {
  await using fixture = await forwarding.withServers(1, "ttl 1\ncount");
  const [old] = dataOf(await fixture.dig("x.test", ...PLAIN));
  await fixture.servers.play("servfail");
  const stale = async (): Promise<true | undefined> =>
    (await fixture.dig("x.test", ...PLAIN)).answer[0]?.ttl === 30 ? true : undefined;
  await waitFor("a stale answer", stale);
  await fixture.servers.play("ttl 60\ncount");
  await waitFor("the fresh answer", async () => {
    const [data] = dataOf(await fixture.dig("x.test", ...PLAIN));
    return data === old ? undefined : true;
  });
});
