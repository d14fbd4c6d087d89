// Names in a real etcd, as a container resolves them: what its records mean, what becomes of a change, and every way in
// which etcd can fail. The expected answers are those that CoreDNS documents for the same keys.

import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";

import type { EtcdReport } from "../../../src/api/etcd.ts";
import { dataOf, dig } from "../../support/client/dig.ts";
import { type Container, createNetwork, runContainer } from "../../support/engine/container.ts";
import { type Engine, startEngine } from "../../support/engine/engine.ts";
import { check } from "../../support/program/command.ts";
import { type Dns11, dns11, startDns11 } from "../../support/program/dns11.ts";
import { makeFolder } from "../../support/rig/folder.ts";
import { addAddress, inNetns } from "../../support/rig/netns.ts";
import { waitFor } from "../../support/rig/wait.ts";
import { makeCertificates } from "../../support/servers/certificates.ts";
import { type Etcd, base64, startEtcd, startIn } from "./etcd-server.ts";
import { type Upstream, startUpstream } from "../../support/servers/upstream.ts";

const ROOT = "/skydns/test/shop";
const HOSTILE = fileURLToPath(new URL("hostile-main.js", import.meta.url));
const folder = makeFolder("etcd-test");
const config = join(folder, "dns11.yaml");
let engine: Engine;
let upstream: Upstream;
let etcd: Etcd;
let instance: Dns11;
let client: Container;

before(async () => {
  engine = await startEngine({ resolvConf: "nameserver 127.0.0.1\n" });
  upstream = await startUpstream(engine);
  // Little space, so that it can be filled.
  etcd = await startEtcd(engine, { args: ["--quota-backend-bytes=8388608"] });
  await createNetwork(engine, "one", { subnet: "172.31.0.0/16" });
  client = await runContainer(engine, { name: "client", networks: ["one"] });
  for (const [key, value] of Object.entries(RECORDS)) await etcd.put(key, value);
  configure({ endpoints: etcd.endpoints });
  instance = await startDns11(engine, {
    args: ["--config", config],
    prefix: inNetns(engine.netnsPath, "env"),
    env: { DNS11_KEEPER: "off" },
  });
  await until("etcd to be read", ({ state }) => state === "current");
});
after(async () => {
  await instance?.[Symbol.asyncDispose]();
  await etcd?.[Symbol.asyncDispose]();
  await upstream?.[Symbol.asyncDispose]();
  await engine[Symbol.asyncDispose]();
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

function configure(etcdSettings: object): void {
  writeFileSync(
    config,
    JSON.stringify({
      version: 1,
      records: { "declared.shop.test": "10.2.0.1" },
      etcd: { zones: ["shop.test", "0.1.10.in-addr.arpa"], "max-stale": "1h", ...etcdSettings },
    }),
  );
}

async function report(): Promise<EtcdReport> {
  const { etcd: found } = await instance.status();
  assert.ok(found, "etcd is configured");
  return found;
}

async function until(what: string, isSo: (state: EtcdReport) => boolean): Promise<EtcdReport> {
  let last: EtcdReport | undefined;
  try {
    return await waitFor(what, async () => {
      last = await report();
      return isSo(last) ? last : undefined;
    });
  } catch (error) {
    throw new Error(`last report: ${JSON.stringify(last)}; ${instance.log.slice(-2000)}`, { cause: error });
  }
}

async function answer(name: string, type = "A"): Promise<readonly string[]> {
  const reply = await dig(client, name, type);
  return [reply.status, ...dataOf(reply).toSorted()];
}

async function resolves(name: string, ...expected: readonly string[]): Promise<void> {
  await waitFor(`${name} to be ${expected.join(" ")}`, async () =>
    (await answer(name)).join(" ") === expected.join(" ") ? true : undefined,
  );
}

async function command(...args: string[]): Promise<{ readonly code: number | null; readonly text: string }> {
  const place = ["-H", engine.host, "--state-dir", instance.stateDir];
  const [first = "", ...rest] = args;
  const { code, stdout, stderr } = await dns11([first, ...place, ...rest]);
  return { code, text: stdout + stderr };
}

// Drops what goes to a member's address, and nothing else.
async function cutOff(address: string): Promise<void> {
  await nft("add table ip cut; add chain ip cut out { type filter hook output priority 0; }");
  await nft(`add rule ip cut out ip daddr ${address} drop`);
}

function onlyMember(): Etcd["members"][number] {
  return etcd.members[0] ?? assert.fail("no member");
}

async function nft(rules: string): Promise<void> {
  const [first = "", ...rest] = inNetns(engine.netnsPath, "nft", [rules]);
  await check(first, rest);
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
    assert.deepEqual(await answer(name, type), ["NOERROR", ...expected], `${name} ${type}`);
  }
  for (const name of ["nobody.shop.test", "hidden.shop.test"]) {
    const reply = await dig(client, name);
    assert.deepEqual([reply.status, reply.authority[0]?.name], ["NXDOMAIN", "shop.test."], name);
  }
  const additional = (await dig(client, "db.shop.test", "SRV")).additional.map(({ name, data }) => `${name} ${data}`);
  assert.deepEqual(additional.toSorted(), ["x1.db.shop.test. 10.1.0.2", "x2.db.shop.test. 10.1.0.3"]);
  assert.match((await answer("out.shop.test")).join(" "), /NOERROR .*far\.ok\.test\./);
  const asked = (await upstream.queries()).map(({ name }) => name.toLowerCase());
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
  await resolves("changed.shop.test", "NOERROR", "10.1.0.5");
  await etcd.put(`${ROOT}/changed`, { host: "10.1.0.7" });
  await resolves("changed.shop.test", "NOERROR", "10.1.0.7");
  await etcd.remove(`${ROOT}/changed`);
  await resolves("changed.shop.test", "NXDOMAIN");
  await resolves("leased.shop.test", "NOERROR", "10.1.0.6");
  await etcd.call("/v3/lease/revoke", { ID: json["ID"] });
  await resolves("leased.shop.test", "NXDOMAIN");
  const explained = await command("explain", "-v", "db.shop.test", "client");
  assert.match(explained.text, /in etcd, zone "shop.test": the records x1\.db\.shop\.test, x2\.db\.shop\.test/);
  const denied = (await command("explain", "nobody.shop.test", "client")).text.replaceAll(/\s+/g, " ");
  assert.match(denied, /why "nobody\.shop\.test" is below "shop\.test", which has names in etcd only/);
  const { text } = await command("names", "--in", "client");
  for (const line of [/db\.shop\.test +.*etcd, zone shop\.test/, /www\.shop\.test .*CNAME db\.shop\.test/])
    assert.match(text, line);
  const status = await command("status");
  assert.match(
    status.text,
    /etcd +7 records, 1 skipped for shop\.test, 0\.1\.10\.in-addr\.arpa, from http:\/\/10\.99\.1\.1:2379/,
  );
  assert.match(status.text, /skipped \/skydns\/test\/shop\/bad\/json: it is not valid JSON/);
});

test("killed: the last known names are answered, and what changed meanwhile is known when it is back", async () => {
  const [member] = etcd.members;
  await member?.kill();
  await until("etcd to be away", ({ state }) => state === "last-known");
  const reply = await dig(client, "db.shop.test");
  assert.deepEqual(dataOf(reply).toSorted(), ["10.1.0.2", "10.1.0.3"]);
  assert.ok((reply.answer[0]?.ttl ?? 0) <= 30, "a short TTL");
  const { text } = await command("doctor");
  assert.match(text, /are the last known ones, for \d+ seconds: .*cannot reach etcd/s);
  await member?.start();
  await etcd.put(`${ROOT}/after`, { host: "10.1.0.8" });
  await resolves("after.shop.test", "NOERROR", "10.1.0.8");
  await until("etcd to be back", ({ state }) => state === "current");
});

test("cut off and compacted meanwhile: all is listed again", async () => {
  const { lists } = await report();
  await cutOff(etcd.members[0]?.address ?? "");
  await until("etcd to be away", ({ state }) => state === "last-known");
  assert.deepEqual((await answer("after.shop.test")).join(" "), "NOERROR 10.1.0.8");
  await etcd.remove(`${ROOT}/after`);
  await etcd.put(`${ROOT}/later`, { host: "10.1.0.10" });
  await etcd.compact();
  await nft("delete table ip cut");
  await resolves("later.shop.test", "NOERROR", "10.1.0.10");
  await resolves("after.shop.test", "NXDOMAIN");
  assert.ok((await report()).lists > lists);
});

test("a value of a megabyte, and no space left: names stay, the doctor says what is wrong", async () => {
  const large = "x".repeat(1_000_000);
  await etcd.put(`${ROOT}/large/one`, large);
  await etcd.put(`${ROOT}/large/two`, { host: "10.1.0.11" });
  await resolves("large.shop.test", "NOERROR", "10.1.0.11");
  const skipped = await until("the large value to be skipped", (state) => state.skipped === 2);
  assert.match(skipped.problems.map(({ problem }) => problem).join(), /more than 16384 bytes/);
  await waitFor("etcd to be full", async () => {
    const body = { key: base64("/full"), value: base64(large) };
    const isTaken = await etcd.call("/v3/kv/put", body).then(
      ({ status }) => status === 200,
      // It may refuse and close before it has read all.
      () => false,
    );
    return isTaken ? undefined : true;
  });
  await until("the alarm to be known", ({ alarms }) => alarms.includes("NOSPACE"));
  assert.deepEqual(await answer("large.shop.test"), ["NOERROR", "10.1.0.11"]);
  const { text } = await command("doctor");
  assert.match(text, /etcd has the alarm NOSPACE/);
  assert.match(text, /skipped \(.*large\/one: the value has more than 16384 bytes/);
});

test("members that lie, flood and never end, beside a good one: names stay, and nothing grows", async () => {
  await addAddress(engine.netnsPath, "10.99.3.1");
  const hostile = startIn(engine, process.execPath, [HOSTILE, "10.99.3.1", "1", "2", "3", "4"]);
  try {
    await hostile.until(/listening at 4/);
    const { memoryBytes: bytesBefore } = await instance.status();
    const endpoints = [1, 2, 3, 4].map((port) => `http://10.99.3.1:${port}`);
    configure({ endpoints: [...endpoints, ...etcd.endpoints] });
    await instance.reload();
    // Whatever it replies first, the other member is found.
    await until("the good member", ({ state, members }) => state === "current" && members[4]?.isCurrent === true);
    assert.deepEqual(await answer("db.shop.test"), ["NOERROR", "10.1.0.2", "10.1.0.3"]);
    // Alone, they get every request: the last known names are answered all the time.
    await onlyMember().kill();
    await until("etcd to be away", ({ state }) => state === "last-known");
    await hostile.until(/reply 9\n/);
    assert.deepEqual(await answer("db.shop.test"), ["NOERROR", "10.1.0.2", "10.1.0.3"]);
    const { memoryBytes: now } = await instance.status();
    assert.ok(now - bytesBefore < 64 * 1024 * 1024, `${bytesBefore} bytes before, ${now} now`);
    assert.equal(instance.log.includes("internal error"), false, instance.log.slice(-2000));
    await onlyMember().start();
    await until("the good member", ({ state, members }) => state === "current" && members[4]?.isCurrent === true);
  } finally {
    await hostile[Symbol.asyncDispose]();
  }
  configure({ endpoints: etcd.endpoints });
  await instance.reload();
  await until("etcd", ({ state }) => state === "current");
});

test("three members, TLS, a user: a wrong certificate, a wrong password and no permission are named", async () => {
  const tls = await makeCertificates(folder, 2);
  // Tokens end soon, so that they are renewed.
  await using cluster = await startEtcd(engine, { members: 3, subnet: 2, tls, args: ["--auth-token-ttl=5"] });
  const { endpoints } = cluster;
  await cluster.put("/skydns/test/shop/three", { host: "10.3.0.1" });
  await addUsers(cluster);
  const password = join(folder, "password");
  writeFileSync(password, "wrong\n");
  configure({ endpoints, ca: tls.ca, user: "reader", "password-file": password });
  await instance.reload();
  await until("a wrong password", ({ code, state }) => code === "ETCD_CREDENTIALS" && state === "unavailable");
  assert.deepEqual(await answer("three.shop.test"), ["SERVFAIL"], "neither answered nor denied");
  writeFileSync(password, "secret\n");
  configure({ endpoints, ca: tls.ca, user: "stranger", "password-file": password });
  await instance.reload();
  await until("no permission", ({ code }) => code === "ETCD_PERMISSION");
  configure({ endpoints, ca: tls.other, user: "reader", "password-file": password });
  await instance.reload();
  const wrong = await until("a wrong certificate", ({ code }) => code === "ETCD_CERTIFICATE");
  assert.match(wrong.remedy ?? "", /etcd\.ca/);
  configure({ endpoints, ca: tls.ca, user: "reader", "password-file": password });
  await instance.reload();
  await resolves("three.shop.test", "NOERROR", "10.3.0.1");

  // The member that is used goes away, another way each time: the others answer.
  const used = async (): Promise<number> => {
    const { members } = await until("a member in use", ({ state }) => state === "current");
    return members.findIndex(({ isCurrent }) => isCurrent);
  };
  const first = await used();
  const token = await tokenOf(cluster, (first + 1) % 3);
  const write = async (key: string, host: string): Promise<void> => {
    const body = { key: base64(`/skydns/test/shop/${key}`), value: base64(JSON.stringify({ host })) };
    await waitFor(`the cluster to store ${key}`, async () => {
      const options = { member: (first + 1) % 3, token: await tokenOf(cluster, (first + 1) % 3).catch(() => token) };
      const reply = await cluster.call("/v3/kv/put", body, options).catch(() => undefined);
      return reply?.status === 200 ? true : undefined;
    });
  };
  await cluster.members[first]?.kill();
  await write("killed", "10.3.0.2");
  await resolves("killed.shop.test", "NOERROR", "10.3.0.2");
  await cluster.members[first]?.start();
  const second = await used();
  await cutOff(cluster.members[second]?.address ?? "");
  await write("cut", "10.3.0.3");
  await resolves("cut.shop.test", "NOERROR", "10.3.0.3");
  assert.notEqual(await used(), second);
  await nft("delete table ip cut");

  // Alone, a member opens streams and knows nothing new: that is not etcd, however often it is tried.
  for (const member of [1, 2]) await cluster.members[(first + member) % 3]?.kill();
  const { reconnects } = await until("etcd to be away", ({ state }) => state === "last-known");
  await until("two more tries", (state) => {
    assert.equal(state.state, "last-known");
    return state.reconnects >= reconnects + 2;
  });
  assert.deepEqual(await answer("cut.shop.test"), ["NOERROR", "10.3.0.3"]);
});

// A user who may read the names, one who may read nothing, and root.
async function addUsers(cluster: Etcd): Promise<void> {
  const call = async (path: string, body: object): Promise<void> => {
    const { status, json } = await cluster.call(path, body);
    assert.equal(status, 200, `${path}: ${JSON.stringify(json)}`);
  };
  for (const [name, password, role] of [
    ["root", "root", "root"],
    ["reader", "secret", "reader"],
    ["stranger", "secret", "nothing"],
  ] as const) {
    await call("/v3/auth/user/add", { name, password });
    await call("/v3/auth/role/add", { name: role });
    await call("/v3/auth/user/grant", { user: name, role });
  }
  const perm = { permType: "READ", key: base64("/skydns/"), range_end: base64("/skydns0") };
  await call("/v3/auth/role/grant", { name: "reader", perm });
  await call("/v3/auth/enable", {});
}

async function tokenOf(cluster: Etcd, member: number): Promise<string> {
  const { json } = await cluster.call("/v3/auth/authenticate", { name: "root", password: "root" }, { member });
  return String(json["token"]);
}
