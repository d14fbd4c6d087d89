// Names in a real etcd, as a container resolves them: what its records mean, what becomes of a change, and the ways in which one
// member can fail. The expected answers are those that CoreDNS documents for the same keys.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";

import { dataOf, dig } from "../../support/client/dig.ts";
import { addAddress } from "../../support/rig/netns.ts";
import { waitFor } from "../../support/rig/wait.ts";
import { EtcdClient } from "./etcd-client.ts";
import { type Etcd, base64, startEtcd, startIn } from "./etcd-server.ts";

const ROOT = "/skydns/test/shop";
const HOSTILE = fileURLToPath(new URL("hostile-main.js", import.meta.url));
let etcd: Etcd;
let rig: EtcdClient;

before(async () => {
  rig = await EtcdClient.start(async (engine) => {
    // Little space, so that it can be filled.
    etcd = await startEtcd(engine, { args: ["--quota-backend-bytes=8388608"] });
    for (const [key, value] of Object.entries(RECORDS)) await etcd.put(key, value);
    return { endpoints: etcd.endpoints };
  });
  await rig.until("etcd to be read", ({ state }) => state === "current");
});
after(async () => {
  await etcd[Symbol.asyncDispose]();
  await rig[Symbol.asyncDispose]();
});

const RECORDS: Readonly<Record<string, unknown>> = {
  [`${ROOT}/dns/apex/x1`]: { host: "10.1.0.1", ttl: 60 },
  [`${ROOT}/db/x1`]: { host: "10.1.0.2", port: 5432, weight: 50 },
  [`${ROOT}/db/x2`]: { host: "10.1.0.3", port: 5432 },
  [`${ROOT}/www`]: { host: "db.shop.test" },
  [`${ROOT}/out`]: { host: "far.ok.test" },
  [`${ROOT}/bad/json`]: "{",
  [`${ROOT}/bad/good`]: { host: "10.1.0.4", text: "still here" },
  "/skydns/arpa/in-addr/10/1/0/2": { host: "db.shop.test" },
  "/elsewhere/test/shop/hidden": { host: "10.1.0.9" },
};

function onlyMember(): Etcd["members"][number] {
  return etcd.members[0] ?? assert.fail("no member");
}

test("records of each type; names that do not exist are denied here, all others are forwarded", async () => {
  for (const [name, type, ...expected] of [
    ["shop.test", "A", "10.1.0.1"],
    ["db.shop.test", "A", "10.1.0.2", "10.1.0.3"],
    ["db.shop.test", "SRV", "10 33 5432 x1.db.shop.test.", "10 66 5432 x2.db.shop.test."],
    ["db.shop.test", "AAAA"],
    ["www.shop.test", "A", "10.1.0.2", "10.1.0.3", "db.shop.test."],
    ["bad.shop.test", "A", "10.1.0.4"],
    ["bad.shop.test", "TXT", '"still here"'],
    ["2.0.1.10.in-addr.arpa", "PTR", "db.shop.test."],
    ["declared.shop.test", "A", "10.2.0.1"],
  ] as const) {
    assert.deepEqual(await rig.answer(name, type), ["NOERROR", ...expected], `${name} ${type}`);
  }
  for (const name of ["nobody.shop.test", "hidden.shop.test"]) {
    const reply = await dig(rig.client, name);
    assert.deepEqual([reply.status, reply.authority[0]?.name], ["NXDOMAIN", "shop.test."], name);
  }
  const additional = (await dig(rig.client, "db.shop.test", "SRV")).additional.map(
    ({ name, data }) => `${name} ${data}`,
  );
  assert.deepEqual(additional.toSorted(), ["x1.db.shop.test. 10.1.0.2", "x2.db.shop.test. 10.1.0.3"]);
  assert.match((await rig.answer("out.shop.test")).join(" "), /NOERROR .*far\.ok\.test\./);
  const asked = (await rig.upstream.queries()).map(({ name }) => name.toLowerCase());
  assert.deepEqual(
    asked.filter((name) => name.endsWith("shop.test")),
    [],
  );
  assert.ok(asked.includes("far.ok.test"), "what a CNAME leads to is asked elsewhere");
});

test("a change is answered, a record ends with its lease, and lists and explanations know all of it", async () => {
  const { json } = await etcd.call("/v3/lease/grant", { TTL: "3600" });
  await etcd.put(`${ROOT}/leased`, { host: "10.1.0.6", ttl: 600 }, { lease: json["ID"] });
  await etcd.put(`${ROOT}/changed`, { host: "10.1.0.5" });
  await rig.resolves("changed.shop.test", "NOERROR", "10.1.0.5");
  await etcd.put(`${ROOT}/changed`, { host: "10.1.0.7" });
  await rig.resolves("changed.shop.test", "NOERROR", "10.1.0.7");
  await etcd.remove(`${ROOT}/changed`);
  await rig.resolves("changed.shop.test", "NXDOMAIN");
  await rig.resolves("leased.shop.test", "NOERROR", "10.1.0.6");
  await etcd.call("/v3/lease/revoke", { ID: json["ID"] });
  await rig.resolves("leased.shop.test", "NXDOMAIN");
  const explained = await rig.command("explain", "-v", "db.shop.test", "client");
  assert.match(explained, /in etcd, zone "shop.test": the records x1\.db\.shop\.test, x2\.db\.shop\.test/);
  const denied = (await rig.command("explain", "nobody.shop.test", "client")).replaceAll(/\s+/g, " ");
  assert.match(denied, /why "nobody\.shop\.test" is below "shop\.test", which has names in etcd only/);
  const text = await rig.command("names", "--in", "client");
  for (const line of [/db\.shop\.test +.*etcd, zone shop\.test/, /www\.shop\.test .*CNAME db\.shop\.test/])
    assert.match(text, line);
  const status = await rig.command("status");
  assert.match(
    status,
    /etcd +7 records, 1 skipped for shop\.test, 0\.1\.10\.in-addr\.arpa, from http:\/\/10\.99\.1\.1:2379/,
  );
  assert.match(status, /skipped \/skydns\/test\/shop\/bad\/json: it is not valid JSON/);
});

test("killed: the last known names are answered, and what changed meanwhile is known when it is back", async () => {
  const [member] = etcd.members;
  await member?.kill();
  await rig.until("etcd to be away", ({ state }) => state === "last-known");
  const reply = await dig(rig.client, "db.shop.test");
  assert.deepEqual(dataOf(reply).toSorted(), ["10.1.0.2", "10.1.0.3"]);
  assert.ok((reply.answer[0]?.ttl ?? 0) <= 30, "a short TTL");
  const text = await rig.command("doctor");
  assert.match(text, /are the last known ones, for \d+ seconds: .*cannot reach etcd/s);
  await member?.start();
  await etcd.put(`${ROOT}/after`, { host: "10.1.0.8" });
  await rig.resolves("after.shop.test", "NOERROR", "10.1.0.8");
  await rig.until("etcd to be back", ({ state }) => state === "current");
});

test("cut off and compacted meanwhile: all is listed again", async () => {
  const { lists } = await rig.report();
  await rig.cutOff(etcd.members[0]?.address ?? "");
  await rig.until("etcd to be away", ({ state }) => state === "last-known");
  assert.deepEqual((await rig.answer("after.shop.test")).join(" "), "NOERROR 10.1.0.8");
  await etcd.remove(`${ROOT}/after`);
  await etcd.put(`${ROOT}/later`, { host: "10.1.0.10" });
  await etcd.compact();
  await rig.reconnect();
  await rig.resolves("later.shop.test", "NOERROR", "10.1.0.10");
  await rig.resolves("after.shop.test", "NXDOMAIN");
  assert.ok((await rig.report()).lists > lists);
});

test("a value of a megabyte, and no space left: names stay, the doctor says what is wrong", async () => {
  const large = "x".repeat(1_000_000);
  await etcd.put(`${ROOT}/large/one`, large);
  await etcd.put(`${ROOT}/large/two`, { host: "10.1.0.11" });
  await rig.resolves("large.shop.test", "NOERROR", "10.1.0.11");
  const skipped = await rig.until("the large value to be skipped", (state) => state.skipped === 2);
  assert.match(skipped.problems.map(({ problem }) => problem).join(), /more than 16384 bytes/);
  // A write may fail for another reason, too, so etcd is full when it says so.
  await waitFor("the alarm to be known", async () => {
    const body = { key: base64("/full"), value: base64(large) };
    await etcd.call("/v3/kv/put", body).catch(() => undefined);
    return (await rig.report()).alarms.includes("NOSPACE") ? true : undefined;
  });
  assert.deepEqual(await rig.answer("large.shop.test"), ["NOERROR", "10.1.0.11"]);
  const text = await rig.command("doctor");
  assert.match(text, /etcd has the alarm NOSPACE/);
  assert.match(text, /skipped \(.*large\/one: the value has more than 16384 bytes/);
});

test("members that lie, flood and never end, beside a good one: names stay, and nothing grows", async () => {
  await addAddress(rig.engine.netnsPath, "10.99.3.1");
  const hostile = startIn(rig.engine, process.execPath, [HOSTILE, "10.99.3.1", "1", "2", "3", "4"]);
  try {
    await hostile.until(/listening at 4/);
    const { memoryBytes: bytesBefore } = await rig.instance.status();
    const endpoints = [1, 2, 3, 4].map((port) => `http://10.99.3.1:${port}`);
    await rig.reload({ endpoints: [...endpoints, ...etcd.endpoints] });
    // Whatever it replies first, the other member is found.
    await rig.until("the good member", ({ state, members }) => state === "current" && members[4]?.isCurrent === true);
    assert.deepEqual(await rig.answer("db.shop.test"), ["NOERROR", "10.1.0.2", "10.1.0.3"]);
    // Alone, they get every request: the last known names are answered all the time.
    await onlyMember().kill();
    await rig.until("etcd to be away", ({ state }) => state === "last-known");
    await hostile.until(/reply 9\n/);
    assert.deepEqual(await rig.answer("db.shop.test"), ["NOERROR", "10.1.0.2", "10.1.0.3"]);
    const { memoryBytes: now } = await rig.instance.status();
    assert.ok(now - bytesBefore < 64 * 1024 * 1024, `${bytesBefore} bytes before, ${now} now`);
    assert.equal(rig.instance.log.includes("internal error"), false, rig.instance.log.slice(-2000));
    await onlyMember().start();
    await rig.until("the good member", ({ state, members }) => state === "current" && members[4]?.isCurrent === true);
  } finally {
    await hostile[Symbol.asyncDispose]();
  }
  const first = await rig.report();
  await rig.reload({ endpoints: etcd.endpoints });
  const last = await rig.until("etcd", ({ state }) => state === "current");
  assert.ok(first.reconnects > 0 && last.reconnects >= first.reconnects, "totals are those of the run");
  assert.ok(last.lists > first.lists, `${first.lists} lists before the reload, ${last.lists} after it`);
});
