// Two machines and one etcd of three members, with TLS: what runs on one resolves on the other, for as long as its dns11 or
// its lease lives. Each machine has a user of its own, which may write below its own name only.

import assert from "node:assert/strict";
import { mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";

import type { EtcdReport } from "../../../src/api/etcd.ts";
import type { ContainerStatus } from "../../../src/api/status.ts";
import { dataOf, dig } from "../../support/client/dig.ts";
import { Container, createNetwork, runContainer } from "../../support/engine/container.ts";
import { type Engine, startEngine } from "../../support/engine/engine.ts";
import { createOverlay, initSwarm } from "../../support/engine/swarm.ts";
import { check } from "../../support/program/command.ts";
import { type Dns11, type Dns11Options, dns11, replaceDns11, startDns11 } from "../../support/program/dns11.ts";
import { page } from "../../support/program/scrape.ts";
import { CLOCK_SIGNAL, SteppedClock } from "../../support/program/stepped-clock.ts";
import { makeFolder } from "../../support/rig/folder.ts";
import { Netns, inNetns } from "../../support/rig/netns.ts";
import { pause, waitFor } from "../../support/rig/wait.ts";
import { connectByWire } from "../../support/rig/wire.ts";
import { startUpstream } from "../../support/servers/upstream.ts";
import { makeCertificates } from "../../support/servers/certificates.ts";
import { type Etcd, base64, startEtcd } from "./etcd-server.ts";

const MACHINES = "/skydns/test/cluster/machine/";
const SVC = "svc.cluster.test";
const ADDRESSES = { m1: "192.168.78.1", m2: "192.168.78.2" } as const;
type Machine = keyof typeof ADDRESSES;
/** On the second machine. */
const POLICIES = {
  nothing: { for: ["label=policed=nothing"], mode: "enforce" },
  services: { for: ["label=policed=services"], mode: "enforce", allow: [`web.shop.${SVC}`], private: "allow" },
};
/** Where its end is waited for. */
const SHORT_LEASE = { lease: "10s" };
const YEAR_MS = 365.25 * 24 * 3_600_000;
const HOUR_SECONDS = 3_600;
/** Of a slow etcd: how often, and how long it runs, and stands in between. */
const [SLOW_ROUNDS, SLOW_ON_MS, SLOW_OFF_MS] = [6, 60, 700];

const folder = makeFolder("publish");
const clock = new SteppedClock(join(folder, "clock"));
let engines: Record<Machine, Engine>;
// Of the members of etcd.
let apart: readonly Netns[] = [];
let wire: AsyncDisposable;
let upstream: AsyncDisposable;
let etcd: Etcd;
let tls: Awaited<ReturnType<typeof makeCertificates>>;
let token: string;
// The member that the test asks.
let reading = 0;
let clients: Record<Machine, Container>;
let runs: Record<Machine, Dns11>;

before(async () => {
  // The second one is a host that resolves names itself.
  const hasControlGroup = true;
  const [m1, m2] = await Promise.all([
    startEngine(),
    startEngine({ hasControlGroup, resolvConf: "nameserver 127.0.0.1\n" }),
  ]);
  engines = { m1, m2 };
  apart = await Promise.all([Netns.create(), Netns.create(), Netns.create()]);
  wire = await connectByWire(
    new Map([
      [m1.id, `${ADDRESSES.m1}/24`],
      [m2.id, `${ADDRESSES.m2}/24`],
      ...apart.map(({ name }, index) => [name, `10.99.1.${index + 1}/24`] as const),
    ]),
  );
  for (const { id } of [m1, m2]) await check("ip", ["-n", id, "route", "add", "10.99.1.0/24", "dev", "wire0"]);
  for (const { name } of apart) await check("ip", ["-n", name, "route", "add", "192.168.78.0/24", "dev", "wire0"]);
  tls = await makeCertificates(folder, 1);
  etcd = await startEtcd(m1, { members: 3, tls, apart });
  await addUsers();
  upstream = await startUpstream(m2);
  await joinSwarm(m1, m2);
  for (const each of [m1, m2]) await createNetwork(each, "one");
  await createNetwork(m1, "routed", { subnet: "172.29.5.0/24" });
  clients = {
    m1: await runContainer(m1, { name: "client", networks: ["one"] }),
    m2: await runContainer(m2, { name: "client", networks: ["one"] }),
  };
  // The first is reached at an address of the settings, the second at the one that it connects with.
  configure("m1", { address: ADDRESSES.m1, "routed-networks": "routed" });
  configure("m2", {}, { "host-names": "auto", policies: POLICIES });
  const [one, two] = await Promise.all([start("m1"), start("m2")]);
  runs = { m1: one, m2: two };
});
after(async () => {
  for (const each of [runs?.m1, runs?.m2, etcd, upstream, wire, ...apart, engines?.m1, engines?.m2])
    await each?.[Symbol.asyncDispose]();
});

// Root, and a user for each machine, with permission to read those of all and to write its own.
async function addUsers(): Promise<void> {
  const call = async (path: string, body: object): Promise<void> => {
    const { status, json } = await etcd.call(path, body);
    assert.equal(status, 200, `${path}: ${JSON.stringify(json)}`);
  };
  const range = (prefix: string): object => ({ key: base64(prefix), range_end: base64(`${prefix.slice(0, -1)}0`) });
  for (const name of ["root", "m1", "m2"]) {
    await call("/v3/auth/user/add", { name, password: name });
    await call("/v3/auth/role/add", { name });
    await call("/v3/auth/user/grant", { user: name, role: name });
    if (name === "root") continue;
    await call("/v3/auth/role/grant", { name, perm: { permType: "READ", ...range(MACHINES) } });
    await call("/v3/auth/role/grant", { name, perm: { permType: "READWRITE", ...range(`${MACHINES}${name}/`) } });
    writeFileSync(join(folder, `${name}.password`), name);
  }
  await call("/v3/auth/enable", {});
  token = await tokenOf("root");
}

async function tokenOf(name: string): Promise<string> {
  const { json } = await etcd.call("/v3/auth/authenticate", { name, password: name }, { member: reading });
  return String(json["token"]);
}

async function joinSwarm(m1: Engine, m2: Engine): Promise<void> {
  await initSwarm(m1, ADDRESSES.m1);
  const joinToken = await m1.docker("swarm", "join-token", "--quiet", "worker");
  await m2.docker("swarm", "join", "--token", joinToken, "--advertise-addr", ADDRESSES.m2, `${ADDRESSES.m1}:2377`);
  await createOverlay(m1, "mesh");
}

function configure(machine: Machine, more: object = {}, others: object = {}): void {
  const settings = {
    version: 1,
    zone: "cluster.test",
    etcd: {
      endpoints: etcd.endpoints,
      ca: tls.ca,
      user: machine,
      "password-file": join(folder, `${machine}.password`),
      publish: true,
      machine,
      // They are killed and started again while their leases last.
      lease: "5m",
      ...more,
    },
    ...others,
  };
  writeFileSync(join(folder, `${machine}.yaml`), JSON.stringify(settings));
}

async function start(machine: Machine): Promise<Dns11> {
  const stateDir = join(folder, `state-${machine}`);
  mkdirSync(stateDir, { recursive: true });
  return await startDns11(engines[machine], { ...optionsOf(machine), stateDir });
}

function optionsOf(machine: Machine): Dns11Options {
  const prefix = inNetns(engines[machine].netnsPath, "env");
  return { args: ["--config", join(folder, `${machine}.yaml`)], prefix, env: clock.env };
}

function runWeb(machine: Machine, name: string, port: string, more: { service?: string; networks?: string[] } = {}) {
  const { service = "web", networks = ["one"] } = more;
  const labels = {
    "com.docker.compose.project": "shop",
    "com.docker.compose.service": service,
    "com.docker.compose.container-number": "1",
  };
  return runContainer(engines[machine], { name, labels, networks, args: port === "" ? [] : ["--publish", port] });
}

async function answers(machine: Machine, name: string, type = "A"): Promise<string> {
  const reply = await dig(clients[machine], name, type);
  return [reply.status, ...dataOf(reply).toSorted()].join(" ");
}

async function resolves(machine: Machine, name: string, expected: string, type = "A"): Promise<void> {
  let last = "";
  try {
    await waitFor(`${name} on ${machine}`, async () =>
      (last = await answers(machine, name, type)) === expected ? true : undefined,
    );
  } catch (error) {
    throw new Error(`${name} on ${machine} is ${last}, not ${expected}: ${runs[machine].log.slice(-3000)}`, {
      cause: error,
    });
  }
}

async function reportOf(machine: Machine): Promise<EtcdReport> {
  const { etcd: report } = await runs[machine].status();
  assert.ok(report);
  return report;
}

async function command(machine: Machine, name: string, ...args: string[]): Promise<string> {
  const { stdout, stderr } = await dns11([
    name,
    "-H",
    engines[machine].host,
    "--state-dir",
    runs[machine].stateDir,
    ...args,
  ]);
  return stdout + stderr;
}

// Between the second machine and etcd.
async function nft(rules: string): Promise<void> {
  const [first = "", ...rest] = inNetns(engines.m2.netnsPath, "nft", [rules]);
  await check(first, rest);
}

interface Key {
  readonly value: Readonly<Record<string, unknown>>;
  // A key that was never gone has the one that it had.
  readonly created: string;
  readonly lease: string;
}

// The keys of a machine, below its name; root's token ends after a while.
async function keysOf(machine: Machine): Promise<ReadonlyMap<string, Key>> {
  const prefix = `${MACHINES}${machine}/`;
  const { json } = await asRoot("/v3/kv/range", { key: base64(prefix), range_end: base64(`${prefix.slice(0, -1)}0`) });
  const kvs = (json["kvs"] ?? []) as readonly Record<"key" | "value" | "create_revision" | "lease", string>[];
  const text = (encoded: string): string => Buffer.from(encoded, "base64").toString();
  return new Map(
    kvs.map(({ key, value, create_revision: created, lease }) => [
      text(key).slice(prefix.length),
      { value: JSON.parse(text(value)) as Key["value"], created, lease },
    ]),
  );
}

async function etcdKeys(): Promise<ReadonlySet<string>> {
  return new Set([...(await keysOf("m1")).keys()].map((key) => `${MACHINES}m1/${key}`));
}

// By a member that lives; while there is no leader, none replies.
async function asRoot(path: string, body: object): ReturnType<Etcd["call"]> {
  return await waitFor(`etcd to reply to ${path}`, async () => {
    try {
      const reply = await etcd.call(path, body, { token, member: reading });
      if (reply.status === 200) return reply;
      token = await tokenOf("root");
    } catch {
      // It is tried again.
    }
    return undefined;
  });
}

// The index of the member that leads the others.
async function leader(): Promise<number> {
  return await waitFor("a leader", async () => {
    for (const [member] of etcd.members.entries()) {
      const { json } = await etcd.call("/v3/maintenance/status", {}, { member, token }).catch(() => ({ json: {} }));
      const { leader: led, header } = json as { leader?: string; header?: { member_id?: string } };
      if (led !== undefined && led === header?.member_id) return member;
    }
    return undefined;
  });
}

async function publishedAs(machine: Machine, name: string): Promise<readonly unknown[]> {
  const { published } = (await runs[machine].container(name)) ?? {};
  return [published?.state, published?.code];
}

async function addressOn(machine: Machine, name: string): Promise<string> {
  return (await Container.of(engines[machine], name)).address("one");
}

async function serviceKey(machine: Machine, service: string): Promise<Key | undefined> {
  for (const [key, found] of await keysOf(machine)) if (key.includes(`/shop/${service}/`)) return found;
  return undefined;
}

test("a container that starts on one machine is answered on the other, at an address that it can be reached at", async () => {
  const one = await runWeb("m1", "web-1", "80:80");
  const two = await runWeb("m2", "web-2", "8080:80");
  await resolves("m2", `web.shop.${SVC}`, `NOERROR ${[two.address("one"), ADDRESSES.m1].toSorted().join(" ")}`);
  // Under another port, so that an address alone would lead elsewhere.
  await resolves("m1", `1-m2.web.shop.${SVC}`, `NOERROR ${ADDRESSES.m2}`);
  await resolves("m1", `web.shop.${SVC}`, `NOERROR ${one.address("one")}`);
  const ports = `_http._tcp.web.shop.${SVC}`;
  await resolves("m1", ports, `NOERROR 0 100 80 1.web.shop.${SVC}. 0 100 8080 1-m2.web.shop.${SVC}.`, "SRV");
  const additional = (await dig(clients.m1, ports, "SRV")).additional.map(({ name, data }) => `${name} ${data}`);
  assert.deepEqual(additional.toSorted(), [
    `1-m2.web.shop.${SVC}. ${ADDRESSES.m2}`,
    `1.web.shop.${SVC}. ${one.address("one")}`,
  ]);
  await resolves("m1", "m2.machine.cluster.test", `NOERROR ${ADDRESSES.m2}`);

  const routed = await runWeb("m1", "api-1", "", { service: "api", networks: ["routed"] });
  await resolves("m2", `api.shop.${SVC}`, `NOERROR ${routed.address("routed")}`);
  const reverse = routed.address("routed").split(".").toReversed().join(".");
  await resolves("m2", `${reverse}.in-addr.arpa`, `NOERROR 1-m1.api.shop.${SVC}.`, "PTR");
  await runWeb("m1", "hidden-1", "", { service: "hidden" });
  assert.equal(await answers("m2", `hidden.shop.${SVC}`), "NXDOMAIN", "nothing there reaches it");

  await engines.m1.docker("pause", routed.id);
  await resolves("m2", `api.shop.${SVC}`, "NXDOMAIN");
  await resolves("m2", "api.shop.endpoints.cluster.test", `NOERROR ${routed.address("routed")}`);
  await routed.remove();
  await resolves("m2", "api.shop.endpoints.cluster.test", "NXDOMAIN");
});

test("a container with a policy gets what another machine publishes by a rule only, and what runs here as ever", async () => {
  const policed = async (policy: keyof typeof POLICIES): Promise<Container> =>
    await runContainer(engines.m2, { name: `policed-${policy}`, labels: { policed: policy }, networks: ["one"] });
  await using nothing = await policed("nothing");
  await using services = await policed("services");
  const [here, there] = [await addressOn("m2", "web-2"), ADDRESSES.m1];
  const asked = async (client: Container, name: string): Promise<string> => {
    const reply = await dig(client, name);
    return [reply.status, ...dataOf(reply).toSorted()].join(" ");
  };
  await waitFor("both to be served", async () => {
    const known = await Promise.all([nothing, services].map(async ({ name }) => await runs.m2.container(name)));
    return known.every((each) => each?.state === "attached") ? true : undefined;
  });
  assert.equal(await asked(nothing, `web.shop.${SVC}`), "NXDOMAIN");
  assert.equal(await asked(nothing, "m1.machine.cluster.test"), "NXDOMAIN");
  assert.equal(await asked(nothing, `1.web.shop.${SVC}`), `NOERROR ${here}`);
  assert.equal(await asked(services, `web.shop.${SVC}`), `NOERROR ${[here, there].toSorted().join(" ")}`);
  assert.equal(await asked(services, `1-m1.web.shop.${SVC}`), "NXDOMAIN");
  const run = ["-H", engines.m2.host, "--state-dir", runs.m2.stateDir];
  const { stdout } = await dns11(["policy", "check", `web.shop.${SVC}`, nothing.name, ...run]);
  assert.match(stdout, /refused/);
});

test("status, doctor, explain, names and metrics know what is published", async () => {
  const status = await command("m1", "status");
  assert.match(status, /published +1 container as m1 at 192\.168\.78\.1, 1 that others do not reach/);
  assert.match(status, /etcd +1 container of 1 other machine, from http/);
  const doctor = await command("m1", "doctor", "--all");
  assert.match(doctor, /1 containers are published as m1/);
  assert.match(doctor, /not published for other machines: hidden-1: it has no published port/);
  assert.match(await command("m2", "explain", "-v", `web.shop.${SVC}`, "client"), /2 ready containers, some on m1/);
  const listed = await command("m1", "ps");
  assert.match(listed, /^shop +web +web-1 .* 192\.168\.78\.1 http=80\/tcp *$/m);
  assert.match(listed, /^shop +hidden +hidden-1 .* no \(no published port\) *$/m);
  assert.match(listed, /^- +- +client .* - *$/m);
  assert.match(await command("m1", "ps", "-o", "wide"), / 1-m1\.web\.shop\.svc\.cluster\.test /);
  const [{ published }] = JSON.parse(await command("m1", "ps", "web", "--json")) as [ContainerStatus];
  assert.deepEqual([published?.state, published?.names], ["published", [`web.shop.${SVC}`, `1-m1.web.shop.${SVC}`]]);
  assert.ok((await etcdKeys()).has(published?.key ?? ""), "the key is the one that etcd has");
  const explained = await command("m1", "explain", "-v", `web.shop.${SVC}`, "--in", "client");
  assert.match(explained, /etcd +web-1 is published as 1-m1\.web\.shop\.svc\.cluster\.test at 192\.168\.78\.1/);
  assert.match(
    (await command("m1", "explain", `hidden.shop.${SVC}`, "--in", "client")).replaceAll(/\s+/g, " "),
    /etcd hidden-1 is not published: it has no published port.* Publish its port \(-p\)/,
  );
  assert.match(
    (await command("m1", "doctor", "web-1", "--all")).replaceAll(/\s+/g, " "),
    /published as web\.shop\.svc\.cluster\.test and 1-m1\S+ at 192\.168\.78\.1, key \/skydns\/test\/cluster\/machine\/m1\//,
  );
  assert.match(
    await command("m2", "names", "--in", "client"),
    /web\.shop\.svc\.cluster\.test .*zone cluster\.test, machine m1/,
  );
  const [state = ""] = readdirSync(runs.m1.stateDir);
  const { text } = await page(join(runs.m1.stateDir, state, "control.sock"), "/metrics");
  assert.match(text, /dns11_etcd_published 1\n[^]*dns11_etcd_published_containers\{state="published"\} 1\n/);
});

test("programs on a machine resolve the services of all machines, too", async () => {
  const { name } = await waitFor("names on the host", async () => {
    const { containers } = await runs.m2.status();
    return containers.find(({ hostNames }) => hostNames !== undefined);
  });
  assert.ok(name);
  const onHost = async (question: string, ...more: string[]): Promise<string> => {
    const reply = await dig(engines.m2, question, ...more, "@127.0.0.1", "+tries=3");
    return [reply.status, ...dataOf(reply).toSorted()].join(" ");
  };
  const both = [ADDRESSES.m1, await addressOn("m2", "web-2")].toSorted().join(" ");
  await waitFor("the service on the host", async () =>
    (await onHost(`web.shop.${SVC}`)) === `NOERROR ${both}` ? true : undefined,
  );
  assert.equal(await onHost(`1-m1.web.shop.${SVC}`), `NOERROR ${ADDRESSES.m1}`);
  assert.equal(await onHost("m1.machine.cluster.test"), `NOERROR ${ADDRESSES.m1}`);
  assert.match(await onHost(`_http._tcp.web.shop.${SVC}`, "SRV"), /0 100 80 1-m1\.web\.shop\./);
  assert.match(await onHost(`nobody.shop.${SVC}`), /^NXDOMAIN/);
});

test("on a swarm network and on macvlan: its own address, and the published port for all who are not there", async () => {
  const inside = await runContainer(engines.m2, { name: "inside", networks: ["mesh"] });
  const both = await runWeb("m1", "both-1", "8081:80", { service: "both", networks: ["mesh"] });
  const only = await runWeb("m1", "only-1", "", { service: "only", networks: ["mesh"] });
  await createNetwork(engines.m1, "wire", {
    subnet: "192.168.78.0/24",
    args: ["--driver", "macvlan", "--opt", "parent=wire0", "--ip-range", "192.168.78.128/25"],
  });
  const near = await runWeb("m1", "near-1", "", { service: "near", networks: ["wire"] });
  const from = async (client: Container, question: string, type = "A"): Promise<string> => {
    const reply = await dig(client, question, type);
    return [reply.status, ...dataOf(reply).toSorted()].join(" ");
  };
  const settled = async (client: Container, question: string, expected: string, type = "A"): Promise<void> => {
    let last = "";
    try {
      await waitFor(question, async () =>
        (last = await from(client, question, type)) === expected ? true : undefined,
      );
    } catch (error) {
      throw new Error(`${question} in ${client.name} is ${last}, not ${expected}`, { cause: error });
    }
  };
  await settled(clients.m2, `near.shop.${SVC}`, `NOERROR ${near.address("wire")}`);
  await runs.m2.waitFor("inside", "attached");
  await settled(inside, `both.shop.${SVC}`, `NOERROR ${both.address("mesh")}`);
  await settled(inside, `only.shop.${SVC}`, `NOERROR ${only.address("mesh")}`);
  await settled(inside, `_http._tcp.both.shop.${SVC}`, `NOERROR 0 100 80 1-m1.both.shop.${SVC}.`, "SRV");
  // Not on that network: the port of the machine.
  await settled(clients.m2, `_http._tcp.both.shop.${SVC}`, `NOERROR 0 100 8081 1-m1.both.shop.${SVC}.`, "SRV");
  await settled(clients.m2, `1-m1.both.shop.${SVC}`, `NOERROR ${ADDRESSES.m1}`);
  await settled(clients.m2, `only.shop.${SVC}`, "NXDOMAIN");
  const value = (await serviceKey("m1", "both"))?.value;
  assert.deepEqual([value?.["host"], value?.["port"]], [ADDRESSES.m1, 8081], "what other readers of the schema have");
  for (const each of [inside, both, only, near]) await each.remove();
  await resolves("m2", `near.shop.${SVC}`, "NXDOMAIN");
});

test("a member of etcd is killed, and the leader: what is published stays, and what starts then is published", async () => {
  const first = await serviceKey("m1", "web");
  for (const [service, port, which] of [
    ["first", "8082:8082", 1],
    ["second", "8083:8083", "leader"],
  ] as const) {
    const index = which === "leader" ? await leader() : which;
    await etcd.members[index]?.kill();
    reading = (index + 1) % 3;
    const started = await runWeb("m1", `${service}-1`, port, { service });
    await resolves("m2", `${service}.shop.${SVC}`, `NOERROR ${ADDRESSES.m1}`);
    await started.remove();
    await resolves("m2", `${service}.shop.${SVC}`, "NXDOMAIN");
    await etcd.members[index]?.start();
  }
  const now = await serviceKey("m1", "web");
  assert.deepEqual([now?.created, now?.lease], [first?.created, first?.lease], "never gone, and not written again");
  for (const machine of ["m1", "m2"] as const)
    await waitFor(`${machine} to publish`, async () =>
      (await reportOf(machine)).publishing?.state === "current" ? true : undefined,
    );
});

test("a machine that lies writes nothing for another one, and what is not valid is left out and named", async () => {
  const liar = await tokenOf("m2");
  const put = async (key: string, value: object): Promise<number> => {
    const body = { key: base64(MACHINES + key), value: base64(JSON.stringify(value)) };
    return (await etcd.call("/v3/kv/put", body, { token: liar, member: reading })).status;
  };
  const member = { reach: "container", addresses: ["10.7.7.7"], hosts: [], ports: [] };
  assert.equal(await put("m1/svc/shop/web/aaaaaaaaaaaa", member), 403, "another machine's part");
  assert.equal(await put("m3/svc/shop/web/aaaaaaaaaaaa", member), 403, "a machine that does not exist");
  for (const [key, value] of [
    ["m2/svc/shop/web/bad", member],
    ["m2/svc/shop/../aaaaaaaaaaaa", member],
    ["m2/svc/shop/web/bbbbbbbbbbbb", { ...member, addresses: ["127.0.0.1"] }],
    ["m2/svc/shop/web/cccccccccccc", { ...member, hosts: ["a.b"] }],
    ["m2/svc/shop/lie/dddddddddddd", member],
  ] as const)
    assert.equal(await put(key, value), 200);
  // It may add members that do not exist, and takes none away.
  await resolves("m1", `lie.shop.${SVC}`, "NOERROR 10.7.7.7");
  const { machines } = await waitFor("bad keys to be skipped", async () => {
    const report = await reportOf("m1");
    return report.machines?.skipped === 4 ? report : undefined;
  });
  assert.match(machines?.problems.map(({ problem }) => problem).join() ?? "", /none that means one machine/);
  assert.equal((await answers("m1", `web.shop.${SVC}`)).split(" ").length, 2, "its own member only");
  // Its own dns11 neither deletes nor overwrites what it has not written.
  await waitFor("foreign keys to be seen", async () =>
    (await reportOf("m2")).publishing?.foreign === 5 ? true : undefined,
  );
  assert.match(await command("m2", "doctor"), /5 keys below .*machine\/m2\/ are not from this dns11, and stay/);
  await asRoot("/v3/kv/deleterange", {
    key: base64(`${MACHINES}m2/svc/shop/`),
    range_end: base64(`${MACHINES}m2/svc/shop/w`),
  });
  for (const key of ["bad", "bbbbbbbbbbbb", "cccccccccccc"])
    await asRoot("/v3/kv/deleterange", { key: base64(`${MACHINES}m2/svc/shop/web/${key}`) });
  await resolves("m1", `lie.shop.${SVC}`, "NXDOMAIN");
});

test("killed and started again, replaced, reloaded: what is published is never gone, and is not written twice", async () => {
  const first = await serviceKey("m1", "web");
  assert.ok(first);
  const isStill = async (what: string, settled: Dns11): Promise<void> => {
    runs.m1 = settled;
    await waitFor(`${what} to publish`, async () =>
      (await reportOf("m1")).publishing?.state === "current" ? true : undefined,
    );
    const { created, lease } = (await serviceKey("m1", "web")) ?? {};
    assert.deepEqual([created, lease], [first.created, first.lease], what);
    assert.equal((await reportOf("m1")).publishing?.writes, 0, what);
  };
  runs.m1.kill("SIGKILL");
  await runs.m1.ended();
  const second = await start("m1");
  await isStill("the next run", second);
  await waitFor("its keeper", async () => ((await second.status()).keeper.state === "watching" ? true : undefined));
  const third = await replaceDns11(engines.m1, second, optionsOf("m1"));
  await isStill("the process that took over", third);
  configure("m1", { address: ADDRESSES.m1, "nearest-first": true });
  assert.match(await command("m1", "reload"), /etcd\.nearest-first/);
  await isStill("another connection", third);
  await resolves(
    "m1",
    `_http._tcp.web.shop.${SVC}`,
    `NOERROR 0 100 80 1.web.shop.${SVC}. 10 100 8080 1-m2.web.shop.${SVC}.`,
    "SRV",
  );
});

test("a member that is parted from the others is left, and nothing is twice or gone when it is back", async () => {
  const first = await serviceKey("m1", "web");
  const used = (await reportOf("m1")).members.findIndex(({ isCurrent }) => isCurrent);
  const alone = etcd.members[used] ?? assert.fail("no member");
  reading = (used + 1) % 3;
  await alone.part();
  // It accepts nothing: what is written there would be lost.
  const body = { key: base64(`${MACHINES}m1/svc/shop/lost/aaaaaaaaaaaa`), value: base64("{}") };
  const refused = etcd.call("/v3/kv/put", body, { token, member: used });
  const parted = await runWeb("m1", "parted-1", "8084:8084", { service: "parted" });
  assert.match(await answers("m2", `web.shop.${SVC}`), new RegExp(ADDRESSES.m1));
  await resolves("m2", `parted.shop.${SVC}`, `NOERROR ${ADDRESSES.m1}`);
  await waitFor("m1 to read from another member", async () => {
    const { state, members } = await reportOf("m1");
    return state === "current" && members[used]?.isCurrent === false ? true : undefined;
  });
  assert.match(await command("m1", "doctor"), new RegExp(`another member is used: etcd at ${alone.endpoint} did not`));
  assert.notEqual((await refused).status, 200);
  await alone.rejoin();
  // It knows what it has missed, and is no fault any more.
  await waitFor("the member to be back", async () =>
    (await reportOf("m1")).members.every(({ reason }) => reason === null) ? true : undefined,
  );
  reading = used;
  assert.deepEqual([...(await keysOf("m1")).keys()].filter((key) => key.includes("/parted/")).length, 1);
  assert.equal(await serviceKey("m1", "lost"), undefined);
  const now = await serviceKey("m1", "web");
  assert.deepEqual([now?.created, now?.lease], [first?.created, first?.lease]);
  assert.equal(await answers("m2", `parted.shop.${SVC}`), `NOERROR ${ADDRESSES.m1}`);
  assert.equal((await reportOf("m1")).publishing?.losses, 0);
  await parted.remove();
  await resolves("m2", `parted.shop.${SVC}`, "NXDOMAIN");
});

test("a slow etcd, and clocks that are set: the last known names, and what starts is published in the end", async () => {
  const first = await serviceKey("m1", "web");
  const own = await answers("m2", `web.shop.${SVC}`);
  const everyMember = (act: "pause" | "resume"): void => {
    for (const member of etcd.members) member[act]();
  };
  everyMember("pause");
  const slow = await runWeb("m1", "slow-1", "8085:8085", { service: "slow" });
  for (const machine of ["m1", "m2"] as const)
    await waitFor(`${machine} to notice`, async () =>
      (await reportOf(machine)).state === "last-known" ? true : undefined,
    );
  // Beyond the end of every lease and of what may be answered as the last known, and back before it was written.
  for (const years of [30, -20]) {
    clock.set(years * YEAR_MS);
    const year = new Date(Date.now() + years * YEAR_MS).getFullYear();
    for (const run of [runs.m1, runs.m2]) {
      run.kill(CLOCK_SIGNAL);
      await waitFor("a line of that time", async () => {
        await run.reload();
        return run.log.includes(`"time":"${year}-`) ? true : undefined;
      });
    }
    assert.equal(await answers("m2", `web.shop.${SVC}`), own);
    assert.equal(await answers("m1", `slow.shop.${SVC}`), `NOERROR ${slow.address("one")}`, "it is known here");
    const { state, staleSeconds, publishing } = await reportOf("m1");
    assert.equal(state, "last-known");
    assert.ok((staleSeconds ?? Infinity) < HOUR_SECONDS, `last known for ${staleSeconds} s`);
    assert.equal(publishing?.state, "behind", "the lease is longer than the pause");
  }
  assert.match(await command("m1", "doctor"), /are the last known ones, for \d+ seconds: .*did not reply within/s);
  // It replies now and then, to some of the requests.
  for (let round = 0; round < SLOW_ROUNDS; round++) {
    everyMember("resume");
    await pause(SLOW_ON_MS);
    everyMember("pause");
    assert.equal(await answers("m2", `web.shop.${SVC}`), own);
    await pause(SLOW_OFF_MS);
  }
  everyMember("resume");
  await resolves("m2", `slow.shop.${SVC}`, `NOERROR ${ADDRESSES.m1}`);
  await waitFor("m1 to have published all", async () => {
    const { state, publishing } = await reportOf("m1");
    return state === "current" && publishing?.state === "current" ? true : undefined;
  });
  const now = await serviceKey("m1", "web");
  assert.deepEqual([now?.created, now?.lease], [first?.created, first?.lease], "never gone, and not written again");
  assert.equal((await reportOf("m1")).publishing?.losses, 0);
  clock.set(0);
  for (const run of [runs.m1, runs.m2]) run.kill(CLOCK_SIGNAL);
  await slow.remove();
  await resolves("m2", `slow.shop.${SVC}`, "NXDOMAIN");
});

test("no space left and no permission: the doctor says so, what is published stays, and the rest follows", async () => {
  const { json } = await asRoot("/v3/kv/range", { key: base64("x") });
  const { member_id: memberID } = json["header"] as Readonly<Record<string, string>>;
  const alarm = async (action: string): Promise<unknown> =>
    await asRoot("/v3/maintenance/alarm", { action, memberID, alarm: "NOSPACE" });
  await alarm("ACTIVATE");
  const late = await runWeb("m1", "late-1", "443:443", { service: "late" });
  const { publishing } = await waitFor("no space", async () => {
    const report = await reportOf("m1");
    return report.publishing?.code === "ETCD_NO_SPACE" ? report : undefined;
  });
  assert.equal(publishing?.state, "behind");
  assert.match(await command("m1", "doctor"), /1 of 2 containers of m1 are published.*space exceeded/);
  assert.deepEqual(await publishedAs("m1", "late-1"), ["unpublished", "ETCD_NO_SPACE"]);
  assert.deepEqual(await publishedAs("m1", "web-1"), ["published", null], "what is written stays");
  assert.equal(await answers("m1", `late.shop.${SVC}`), `NOERROR ${late.address("one")}`, "names of this machine");
  assert.match(await answers("m2", `web.shop.${SVC}`), new RegExp(ADDRESSES.m1));
  await alarm("DEACTIVATE");
  await resolves("m2", `late.shop.${SVC}`, `NOERROR ${ADDRESSES.m1}`);

  const root = `${MACHINES}m1/`;
  const range = { key: base64(root), range_end: base64(`${root.slice(0, -1)}0`) };
  await asRoot("/v3/auth/role/revoke", { role: "m1", ...range });
  await late.remove();
  await waitFor("no permission", async () =>
    (await reportOf("m1")).publishing?.code === "ETCD_PERMISSION" ? true : undefined,
  );
  assert.match(await command("m1", "doctor"), /read and write the keys below \/skydns\/test\/cluster\/machine\/m1\//);
  await asRoot("/v3/auth/role/grant", { name: "m1", perm: { permType: "READWRITE", ...range } });
  await resolves("m2", `late.shop.${SVC}`, "NXDOMAIN");
});

test("a lease that has ended, by itself or while the machine is cut off, is noticed: all is published again", async () => {
  const first = await serviceKey("m1", "web");
  // While the process is paused: it cannot know, and goes on as if nothing had happened.
  runs.m1.kill("SIGSTOP");
  await asRoot("/v3/lease/revoke", { ID: first?.lease });
  await resolves("m2", `1-m1.web.shop.${SVC}`, "NXDOMAIN");
  runs.m1.kill("SIGCONT");
  // A pause of eight seconds ends a process, which a busy machine may need.
  await waitFor("it to go on, or to have ended", async () =>
    (await runs.m1.status().catch(() => undefined)) !== undefined || !runs.m1.isRunning ? true : undefined,
  );
  const isSame = runs.m1.isRunning;
  if (!isSame) runs.m1 = await start("m1");
  await resolves("m2", `1-m1.web.shop.${SVC}`, `NOERROR ${ADDRESSES.m1}`);
  assert.notEqual((await serviceKey("m1", "web"))?.lease, first?.lease);
  if (isSame) assert.equal((await reportOf("m1")).publishing?.losses, 1);

  const { lease: longLease } = (await serviceKey("m2", "web")) ?? assert.fail();
  const writes = (await reportOf("m2")).publishing?.writes ?? assert.fail();
  configure("m2", SHORT_LEASE);
  await runs.m2.reload();
  await waitFor("a short lease", async () => {
    const { lease } = (await serviceKey("m2", "web")) ?? {};
    return lease !== undefined && lease !== longLease ? true : undefined;
  });
  await waitFor("what is written again to be counted as well", async () =>
    ((await reportOf("m2")).publishing?.writes ?? 0) > writes ? true : undefined,
  );
  const own = await answers("m2", `web.shop.${SVC}`);
  await nft("add table ip cut; add chain ip cut out { type filter hook output priority 0; }");
  await nft("add rule ip cut out ip daddr 10.99.1.0/24 drop");
  await resolves("m1", `1-m2.web.shop.${SVC}`, "NXDOMAIN");
  // Its lease ends before a reply that is waited for is overdue.
  await waitFor("m2 to notice", async () => {
    const { state, code } = (await reportOf("m2")).publishing ?? {};
    return state === "unpublished" && code === "ETCD_UNREACHABLE" ? true : undefined;
  });
  assert.equal(await answers("m2", `web.shop.${SVC}`), own, "its own names, and the last known ones");
  assert.match(await command("m2", "doctor"), /the containers of m2 are not published: .*etcd at/);
  assert.match(await command("m2", "ps"), /web-2 .* no \(etcd is away\)/);
  await nft("delete table ip cut");
  await resolves("m1", `1-m2.web.shop.${SVC}`, `NOERROR ${ADDRESSES.m2}`);
});

test("another machine of the same name writes nothing, and says why", async () => {
  configure("m2", { machine: "m1", user: "m1", "password-file": join(folder, "m1.password") });
  const keys = await keysOf("m1");
  await runs.m2.reload();
  await waitFor("the name to be taken", async () =>
    (await reportOf("m2")).publishing?.code === "ETCD_MACHINE_TAKEN" ? true : undefined,
  );
  assert.deepEqual(await publishedAs("m2", "web-2"), ["unpublished", "ETCD_MACHINE_TAKEN"]);
  assert.deepEqual([...(await keysOf("m1"))], [...keys]);
  // It waits a moment for etcd to withdraw them; then they end with their lease.
  await waitFor("what it published under the name before to be gone", async () =>
    (await keysOf("m2")).size === 0 ? true : undefined,
  );
  configure("m2", SHORT_LEASE);
  await runs.m2.reload();
  await resolves("m1", `1-m2.web.shop.${SVC}`, `NOERROR ${ADDRESSES.m2}`);
});

test("stopped, a machine is gone at once; killed, it is gone when its lease ends", async () => {
  assert.equal(await runs.m1.stop(), 0);
  assert.equal((await keysOf("m1")).size, 0);
  await resolves("m2", `1-m1.web.shop.${SVC}`, "NXDOMAIN");
  runs.m2.kill("SIGKILL");
  await runs.m2.ended();
  assert.ok((await keysOf("m2")).size > 0, "its lease lives on");
  await waitFor("the lease to end", async () => ((await keysOf("m2")).size === 0 ? true : undefined));
});
