/**
 * Container names on the host: programs there resolve them below a domain, by whatever library, and everything else
 * reaches the servers of resolv.conf as if dns11 did not exist, also while it stops, dies or hangs.
 */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";

import { type Container, createNetwork, runContainer } from "../../support/engine/container.ts";
import { ControlGroup } from "../../support/engine/control-group.ts";
import { ensureImage } from "../../support/engine/image.ts";
import { type Engine, startEngine } from "../../support/engine/engine.ts";
import { type CommandResult, run, stdoutOf } from "../../support/program/command.ts";
import { TYPE } from "../../docker/differential/octets.ts";
import { dataOf, dig } from "../../support/client/dig.ts";
import { HostClients } from "../../support/client/host-clients.ts";
import { assertNoneFailed } from "./host-load.ts";
import { QueryLoop, droppedIn } from "../../support/client/query-loop.ts";
import { type Dns11, type Dns11Options, dns11, startDns11 } from "../../support/program/dns11.ts";
import { SharedDns11 } from "../../support/program/shared-dns11.ts";
import { startDnsmasq } from "../../support/servers/real-server.ts";
import { type Upstream, startUpstream } from "../../support/servers/upstream.ts";
import { waitFor } from "../../support/rig/wait.ts";

/** On a loopback, dockerd sends what it forwards from the host's own namespace. */
const SERVER = "127.0.0.1";
const SERVER6 = "fd53::1";
const FLOOD = 10_000;
/** Beside a flood, a single datagram may be lost. */
const PATIENTLY = ["+tries=3", "+time=20"];

let engine: Engine;
let clients: HostClients;
let upstream: Upstream;
let upstream6: Upstream;
let web: Container;
let outsider: Container;
let address: string;
let address6: string;
const shared = new SharedDns11(() => engine);

before(async () => {
  engine = await startEngine({ hasControlGroup: true, resolvConf: `nameserver ${SERVER}\nnameserver ${SERVER6}\n` });
  clients = await HostClients.prepare(engine);
  upstream = await startUpstream(engine, { address: SERVER });
  upstream6 = await startUpstream(engine, { address: SERVER6 });
  await createNetwork(engine, "shop_default", { ipv6: true });
  await createNetwork(engine, "dark", { internal: true });
  const labels = {
    "com.docker.compose.project": "shop",
    "com.docker.compose.service": "front",
    "com.docker.compose.container-number": "1",
  };
  web = await runContainer(engine, { name: "web", labels, networks: [{ name: "shop_default", aliases: ["shared"] }] });
  outsider = await runContainer(engine, {
    name: "outsider",
    labels: { "io.dns11.enable": "false" },
    networks: [{ name: "dark", aliases: ["shared"] }, "shop_default"],
  });
  await runContainer(engine, { name: "plain" });
  address = await addressOf("IPAddress");
  address6 = await addressOf("GlobalIPv6Address");
});
after(async () => {
  await shared[Symbol.asyncDispose]();
  await upstream[Symbol.asyncDispose]();
  await upstream6[Symbol.asyncDispose]();
  await engine[Symbol.asyncDispose]();
});

async function addressOf(field: string): Promise<string> {
  const network = '(index .NetworkSettings.Networks "shop_default")';
  return (await engine.docker("inspect", "-f", `{{${network}.${field}}}`, "web")).trim();
}

/** The instance that most tests share. */
async function shareWithHost(): Promise<Dns11> {
  const instance = await shared.under("host-names: auto");
  await instance.waitFor("host", "attached");
  return instance;
}

async function startWithHost(options: Dns11Options = {}): Promise<Dns11> {
  const instance = await startDns11(engine, { ...options, args: ["--host-names", ...(options.args ?? [])] });
  await instance.waitFor("host", "attached");
  return instance;
}

/** A program with the files of the engine's host. */
async function onHost(command: string, args: readonly string[]): Promise<CommandResult> {
  const host = ["--target", String(engine.hostPid), "--mount", "--net", "--"];
  return await run("nsenter", [...host, command, ...args]);
}

async function addressesOf(name: string, server = SERVER, type = "A"): Promise<string[]> {
  return dataOf(await dig(engine, `@${server}`, "-t", type, name));
}

async function statusOf(name: string, ...args: string[]): Promise<string> {
  return (await dig(engine, `@${SERVER}`, ...args, name)).status;
}

test("every form of a name resolves on the host, and so does any name below it", async () => {
  await shareWithHost();
  const forms = ["web", "web.shop_default", "front.shop", "1.front.shop", "api.web", "a.b.1.front.shop", "WEB"];
  for (const form of forms) {
    assert.deepEqual(await addressesOf(`${form}.docker`), [address], form);
    assert.deepEqual(await addressesOf(`${form}.docker`, SERVER6), [address], `${form} at ${SERVER6}`);
    assert.deepEqual(await addressesOf(`${form}.Docker`, SERVER, "AAAA"), [address6], form);
  }
  assert.deepEqual(dataOf(await dig(engine, `@${SERVER}`, "-x", address)), ["web.docker."]);
  assert.deepEqual(dataOf(await dig(engine, `@${SERVER}`, "-x", address6)), ["web.docker."]);
  assert.equal((await addressesOf("plain.docker")).length, 1, "a container on the default bridge");
  assert.equal((await addressesOf("plain.bridge.docker")).length, 1);
  assert.equal((await addressesOf("outsider.dark.docker")).length, 1, "a container on an internal network");
  assert.equal((await addressesOf("shared.docker")).length, 2, "a name that two containers have");
});

test("what is below the domain never leaves, and what is not arrives at its server unchanged", async () => {
  await shareWithHost();
  await upstream.forget();
  assert.equal(await statusOf("nobody.docker"), "NXDOMAIN");
  assert.equal(await statusOf("docker"), "NOERROR");
  assert.equal(await statusOf("web.docker", "-t", "MX"), "NOERROR");
  assert.deepEqual(await upstream.queries(), []);
  const others = ["a1.ok.test", "docker.ok.test", "web.dockers", "xdocker", "web.docker.ok.test"];
  for (const name of others) {
    const port = "40053";
    const reply = await dig(
      engine,
      `@${SERVER}`,
      "-b",
      `127.0.0.9#${port}`,
      "+dnssec",
      "+cookie=0102030405060708",
      name,
    );
    const [question, ...more] = await upstream.queriesFor(name);
    assert.deepEqual([question?.id, question?.from, more.length], [reply.id, `127.0.0.9#${port}`, 0], name);
    assert.match(question?.message ?? "", /000a00080102030405060708/, `${name} keeps its cookie`);
  }
  assert.deepEqual(await addressesOf("a7.ok.test", SERVER6), ["192.0.2.7"]);
  assert.deepEqual((await upstream6.queriesFor("a7.ok.test")).length, 1, "the server that was asked");
  assert.deepEqual(dataOf(await dig(engine, `@${SERVER}`, "+tcp", "a8.ok.test")), ["192.0.2.8"]);
  assert.equal(await statusOf("web.docker", "+tcp"), "NXDOMAIN", "a query by TCP goes to its server");
  const foreign = address.replace(/\d+$/, "250");
  assert.equal((await dig(engine, `@${SERVER}`, "-x", foreign)).status, "NXDOMAIN");
  const reverse = `${foreign.split(".").toReversed().join(".")}.in-addr.arpa`;
  assert.notEqual((await upstream.queriesFor(reverse)).length, 0, "a reverse name of nobody is forwarded");
});

test("glibc, musl, static Go and Node resolve names of containers and others", async () => {
  await shareWithHost();
  assert.deepEqual(await clients.lookup("api.web.docker"), clients.all(address));
  assert.deepEqual(await clients.lookup("a6.ok.test"), clients.all("192.0.2.6"));
  assert.deepEqual(await clients.lookup("nobody.docker"), clients.all());
  assert.match(stdoutOf(await onHost("getent", ["hosts", address]), "getent"), /web\.docker/);
});

test("names of a zone resolve with a pod's search list, and what is declared below it", async () => {
  const zone = "cluster.local";
  const records = `records: { api.shop.svc.${zone}: 192.0.2.80, front.alias.docker: { cname: front.shop.svc.${zone} } }`;
  const servers = `nameserver ${SERVER}\\nnameserver ${SERVER6}\\n`;
  const search = `search shop.svc.${zone} svc.${zone} ${zone}\\noptions ndots:5\\n`;
  await onHost("sh", ["-c", `printf '%b' '${servers}${search}' > /etc/resolv.conf`]);
  const instance = await shared.under("host-names: auto", `zone: [${zone}, a9.ok.test]`, records);
  await instance.waitFor("host", "attached");
  await waitFor("the zone on the host", async () =>
    (await statusOf(`front.shop.svc.${zone}`)) === "NOERROR" ? true : undefined,
  );
  await upstream.forget();
  for (const name of ["front", "front.shop", "front.shop.svc", `front.shop.svc.${zone}`, "1.front"])
    assert.match(stdoutOf(await onHost("getent", ["ahostsv4", name]), name), new RegExp(`^${address} +STREAM`), name);
  assert.match(stdoutOf(await onHost("getent", ["hosts", address]), "getent"), /1\.front\.shop\.svc\.cluster\.local/);
  for (const [name, type, expected] of [
    [`front.shop.endpoints.${zone}`, "AAAA", [address6]],
    [`api.shop.svc.${zone}`, "A", ["192.0.2.80"]],
    ["front.alias.docker", "A", [`front.shop.svc.${zone}.`, address]],
    [`ns.dns.${zone}`, "A", [SERVER]],
    [`dns-version.${zone}`, "TXT", ['"1.1.0"']],
    ["web.docker", "A", [address]],
    [`nobody.shop.svc.${zone}`, "A", []],
  ] as const)
    assert.deepEqual(await addressesOf(name, SERVER, type), expected, name);
  // dns11 itself asks now and then for the SOA of its zones, to see who knows them.
  const left = (await upstream.queries()).filter(({ name, type }) => type !== TYPE.SOA && !name.endsWith(".arpa"));
  assert.deepEqual(left, [], "nothing is forwarded");
  assert.deepEqual(await addressesOf("x1.a9.ok.test"), ["192.0.2.1"], "a zone that a server of the host has");
  const words = ["status", "host", "-H", engine.host, "--state-dir", instance.stateDir];
  const status = stdoutOf(await dns11(words), "status");
  assert.match(status, /zones +cluster\.local$/m);
  assert.match(
    status.replaceAll(/\s+/g, " "),
    /zone "a9\.ok\.test" does not resolve on the host: .*Choose another zone/,
  );
  await onHost("sh", ["-c", `printf '%b' '${servers}' > /etc/resolv.conf`]);
});

test("a container on the host's network resolves them like any program there", async () => {
  await shareWithHost();
  const image = await ensureImage(engine);
  const output = await engine.docker("run", "--rm", "--network", "host", image, "nslookup", "web.docker", SERVER);
  assert.match(output, new RegExp(`Address[^:]*: ${address}$`, "m"));
});

test("the same names resolve in containers that see them, and in no others, whoever resolves for these", async () => {
  await using served = await runContainer(engine, { name: "served", networks: ["shop_default"] });
  const instance = await shareWithHost();
  await instance.waitFor("served", "attached");
  await upstream.forget();
  for (const name of ["web", "web.shop_default", "front.shop", "1.front.shop", "api.web"])
    assert.deepEqual(dataOf(await dig(served, `${name}.docker`)), [address], name);
  assert.deepEqual(dataOf(await dig(served, "web.docker", "AAAA")), [address6]);
  assert.equal((await dig(served, "plain.docker")).status, "NXDOMAIN");
  assert.equal((await dig(outsider, "web.docker")).status, "NXDOMAIN");
  assert.ok((await upstream.queriesFor("web.docker")).length > 0, "dockerd forwards");
  assert.deepEqual(await upstream.queriesFor("plain.docker"), [], "dns11 does not");
});

test("a local user who floods the listener takes nothing from containers, and the host is served afterwards", async () => {
  await using client = await runContainer(engine, { name: "flooded", networks: ["shop_default"] });
  const instance = await shareWithHost();
  await instance.waitFor("flooded", "attached");
  const program = fileURLToPath(new URL("../../hostile/inside/attacker-main.js", import.meta.url));
  const flood = engine.enter(process.execPath, [program, "hostQuestions", String(FLOOD)]);
  let isOver = false;
  const over = flood.finally(() => (isOver = true));
  do {
    assert.deepEqual(dataOf(await dig(client, ...PATIENTLY, "web")), [address]);
    const outside = await dig(engine, `@${SERVER}`, ...PATIENTLY, "a3.ok.test");
    assert.deepEqual(dataOf(outside), ["192.0.2.3"], "outside names never arrive at the listener");
  } while (!isOver);
  const { answered } = JSON.parse(stdoutOf(await over, "the flood")) as { answered: number };
  assert.ok(answered > 0, `${answered} of ${FLOOD} answered`);
  assert.deepEqual(dataOf(await dig(engine, `@${SERVER}`, ...PATIENTLY, "web.docker")), [address]);
});

test("a resolver on the host that forwards for others does not see them either", async () => {
  const own = "127.0.0.77";
  using group = new ControlGroup(`${engine.id}-resolver`);
  await using resolver = await startDnsmasq(engine, {
    address: own,
    prefix: group.prefix,
    lines: [`server=${SERVER}`],
  });
  // Resolvers are looked for when the host is attached.
  await shared.stop();
  await shareWithHost();
  assert.deepEqual(await addressesOf("a4.ok.test", own), ["192.0.2.4"]);
  assert.equal((await dig(engine, `@${own}`, "web.docker")).status, "NXDOMAIN");
  assert.ok(resolver.pid > 0);
});

test("changes of containers, networks and resolv.conf are followed", async () => {
  const instance = await shareWithHost();
  await createNetwork(engine, "late", { subnet: "10.99.4.0/22" });
  const late = await runContainer(engine, { name: "late-comer", networks: [{ name: "late", ip: "10.99.6.7" }] });
  await waitFor("the new name", async () =>
    (await addressesOf("late-comer.late.docker"))[0] === "10.99.6.7" ? true : undefined,
  );
  await waitFor("its reverse name", async () =>
    dataOf(await dig(engine, `@${SERVER}`, "-x", "10.99.6.7"))[0] === "late-comer.docker." ? true : undefined,
  );
  await late.remove();
  await waitFor("the name to go", async () =>
    (await statusOf("late-comer.docker")) === "NXDOMAIN" ? true : undefined,
  );
  const other = "10.53.0.9";
  await using _ = await startUpstream(engine, { address: other });
  assert.equal((await dig(engine, `@${other}`, "web.docker")).status, "NXDOMAIN", "not a server of the host");
  const write = async (text: string): Promise<CommandResult> =>
    await onHost("sh", ["-c", `printf '%b' '${text}' > /etc/resolv.conf`]);
  await write(`nameserver ${other}\n`);
  await waitFor("the new server to be captured", async () =>
    (await addressesOf("web.docker", other))[0] === address ? true : undefined,
  );
  await waitFor("the old one to be free", async () =>
    (await statusOf("web.docker")) === "NXDOMAIN" ? true : undefined,
  );
  await write(`nameserver ${SERVER}\nnameserver ${SERVER6}\n`);
  await waitFor("the first server again", async () =>
    (await addressesOf("web.docker"))[0] === address ? true : undefined,
  );
  assert.ok(instance.isRunning);
});

for (const signal of ["SIGTERM", "SIGKILL", "SIGSTOP"] as const) {
  test(`${signal}: no query for another name is lost, and the rules go`, async () => {
    await shared.stop();
    await using instance = await startWithHost();
    const keeper = await waitFor("its keeper", async () => (await instance.status()).keeper.pid ?? undefined);
    const droppedBefore = await droppedIn(engine);
    await using loop = await QueryLoop.start(engine, { name: "a1.ok.test", server: SERVER, perSecond: 200 });
    assert.deepEqual(await addressesOf("web.docker"), [address]);
    instance.kill(signal);
    await waitFor("the name to be upstream's", async () =>
      (await statusOf("web.docker", "+time=1")) === "NXDOMAIN" ? true : undefined,
    );
    await waitFor("the rules to go", async () =>
      (await engine.enter("nft", ["list", "tables"])).stdout.includes("dns11") ? undefined : true,
    );
    const ends = await loop.stop();
    assertNoneFailed(ends, (await droppedIn(engine)) - droppedBefore);
    assert.ok(keeper > 0);
  });
}

test("explain says what a name is on the host, and who shares it; names lists them", async () => {
  const instance = await shareWithHost();
  const explain = async (name: string): Promise<string> =>
    stdoutOf(
      await dns11(["explain", name, "-v", "--in", "host", "-H", engine.host, "--state-dir", instance.stateDir]),
      "explain",
    );
  assert.match(await explain("web.docker"), /the host's domain docker/);
  const several = await explain("shared.docker");
  assert.match(several, /outsider \(network dark\)/);
  assert.match(several, /web \(network shop_default\)/);
  assert.match(several, /2 have this name, and all their addresses are given/);
  assert.match(await explain("nobody.docker"), /no container that the host can reach has this name/);
  const where = ["--in", "host", "-H", engine.host, "--state-dir", instance.stateDir];
  const listed = stdoutOf(await dns11(["names", ...where]), "names");
  assert.match(listed, new RegExp(`^front\\.shop\\.docker .*${address.replaceAll(".", "\\.")}`, "m"));
  assert.match(listed, /^shared\.docker /m);
  assert.doesNotMatch(listed, /^(?:web|shared) /m, "names of networks do not resolve there");
});

test("the ports of the listener are closed to containers, even where packets to loopback may enter", async () => {
  const instance = await shareWithHost();
  const { ports } = (await instance.container("host")) ?? {};
  stdoutOf(await engine.enter("sysctl", ["-w", "net.ipv4.conf.all.route_localnet=1"]), "sysctl");
  const listener = "127.0.0.11";
  const gateway = address.replace(/\d+$/, "1");
  const query = [`@${listener}`, "-p", String(ports?.udp), "web.docker"];
  assert.deepEqual(dataOf(await dig(engine, ...query)), [address], "a local user may ask");
  // Out of its namespace instead of to its own loopback.
  const script = [
    "sysctl -w net.ipv4.conf.all.route_localnet=1",
    "ip route del local 127.0.0.0/8 dev lo table local",
    "ip route del local 127.0.0.1 dev lo table local",
    `ip route add ${listener}/32 via ${gateway}`,
  ].join("; ");
  await web.enter("sh", ["-c", script]);
  assert.match(stdoutOf(await web.enter("ip", ["route", "get", listener]), "ip"), /via/);
  assert.equal((await dig(web, "+time=1", ...query)).status, "");
  const guard = stdoutOf(await engine.enter("nft", ["list", "chain", "ip", "dns11", "guard"]), "nft");
  assert.match(guard, /packets [1-9]/);
});

test("a domain that is somebody else's is refused with what to do, and nothing is captured", async () => {
  for (const [domain, reason] of [
    ["a.ok.test", /already exists: the server 127\.0\.0\.1 answers for it.*with host-domain/],
    ["corp", /search list of this host uses the domain "lan\.corp".*with host-domain/],
  ] as const) {
    const lines = `search lan.corp\\nnameserver ${SERVER}\\n`;
    await onHost("sh", ["-c", `printf '%b' '${lines}' > /etc/resolv.conf`]);
    const instance = await shared.under("host-names: auto", `host-domain: ${domain}`);
    const { code } = await waitFor(`the reason for ${domain}`, async () => {
      const host = await instance.container("host");
      return host?.state === "skipped" && reason.test(host.reason ?? "") ? host : undefined;
    });
    assert.equal(code, "host-names");
    await instance.logs(/container names do not resolve on the host/);
    const timesSaid = (): number => instance.log.split("container names do not resolve on the host").length;
    const earlier = timesSaid();
    await shared.under("host-names: off");
    await shared.under("host-names: auto", `host-domain: ${domain}`);
    await waitFor("the reason to be said again", () => (timesSaid() > earlier ? true : undefined));
    await waitFor("the rules to go", async () =>
      (await engine.enter("nft", ["list", "tables"])).stdout.includes("dns11") ? undefined : true,
    );
  }
  await onHost("sh", ["-c", `printf 'nameserver ${SERVER}\\nnameserver ${SERVER6}\\n' > /etc/resolv.conf`]);
});

test("a reload turns them on, changes the domain and turns them off", async () => {
  const reload = async (...lines: readonly string[]): Promise<Dns11> => await shared.under(...lines);
  const instance = await reload();
  await waitFor("the host to be gone", async () =>
    (await instance.container("host")) === undefined ? true : undefined,
  );
  await reload("host-names: capture");
  await instance.waitFor("host", "attached");
  assert.deepEqual(await addressesOf("web.docker"), [address]);
  await reload("host-names: capture", "host-domain: box.internal");
  await waitFor("the new domain", async () =>
    (await addressesOf("web.box.internal"))[0] === address ? true : undefined,
  );
  assert.equal(await statusOf("web.docker"), "NXDOMAIN");
  await reload("host-names: off");
  await waitFor("the rules to go", async () =>
    (await engine.enter("nft", ["list", "tables"])).stdout.includes("dns11") ? undefined : true,
  );
  assert.equal(await instance.container("host"), undefined);
});

test("a second instance finds the host served, and the first goes on", async () => {
  await shareWithHost();
  await using second = await startDns11(engine, { args: ["--host-names"] });
  const { code, reason = "" } = await second.waitFor("host", "failed");
  assert.equal(code, "OWNED_ELSEWHERE");
  assert.match(reason, /belongs to another running instance/);
  assert.deepEqual(await addressesOf("web.docker"), [address]);
});

test("they come back when dockerd was restarted", async () => {
  const instance = await shareWithHost();
  await engine.restartDaemon();
  await engine.docker("start", "web", "outsider", "plain");
  address = await addressOf("IPAddress");
  // While the engine is away, the last known names are answered.
  await waitFor("the name of the restarted container", async () =>
    (await addressesOf("web.docker"))[0] === address ? true : undefined,
  );
  await instance.waitFor("host", "attached");
});

test("an engine that shares its control group with dns11 is refused", async () => {
  await using other = await startEngine();
  await using instance = await startDns11(other, { args: ["--host-names"] });
  const { reason = "" } = await instance.waitFor("host", "skipped");
  assert.match(reason, /control group.*Run dockerd and dns11 each as a service/);
});

test("--dry-run lists the host, and touches nothing there", async () => {
  await shared.stop();
  const { stdout } = await dns11(["run", "-H", engine.host, "--dry-run", "--host-names"]);
  assert.match(stdout, /^host\s+serve/m);
  assert.doesNotMatch((await engine.enter("nft", ["list", "tables"])).stdout, /dns11/);
});
