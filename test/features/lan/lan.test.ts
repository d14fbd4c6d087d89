/**
 * Addresses of the host at which other machines of a LAN may ask: they get the containers with published ports, at the machine's own
 * address, and nothing is forwarded for them unless that is set.
 */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { dataOf, dig } from "../../support/client/dig.ts";
import { QueryLoop, failuresAfter } from "../../support/client/query-loop.ts";
import { createNetwork, runContainer } from "../../support/engine/container.ts";
import { stdoutOf } from "../../support/program/command.ts";
import { dns11, replaceDns11, startDns11 } from "../../support/program/dns11.ts";
import { waitFor } from "../../support/rig/wait.ts";
import { AT, AT6, HOST, HOST6, LAN, LanMachines } from "./lan-machines.ts";

/** A question that must not be answered ends with a timeout; one that is lost on a busy machine looks the same. */
const SOON = ["+time=2", "+tries=1"];

let lan: LanMachines;
before(async () => void (lan = await LanMachines.start()));
after(async () => await lan[Symbol.asyncDispose]());

test("another machine gets a published container at the address of this one, by UDP, TCP, IPv4 and IPv6", async () => {
  for (const server of [AT, AT6]) {
    for (const transport of ["+notcp", "+tcp"]) {
      assert.deepEqual(dataOf(await lan.asks(server, transport, "web.docker")), [HOST], `${server} ${transport}`);
      assert.deepEqual(dataOf(await lan.asks(server, transport, "web.docker", "AAAA")), [HOST6]);
    }
  }
  assert.deepEqual(dataOf(await lan.asks(AT, "web.shop.docker")), [HOST], "the name of a Compose service");
  assert.equal((await lan.asks(AT, "db.docker")).status, "NXDOMAIN", "nobody outside reaches it");
  assert.deepEqual(dataOf(await lan.asks(AT, "printer.lan")), ["192.168.77.99"]);
});

test("names of zones lead to the machine, and SRV to the port that is published", async () => {
  assert.deepEqual(dataOf(await lan.asks(AT, "web-1.web.shop.svc.cluster.local")), []);
  const srv = await lan.asks(AT, "_http._tcp.web.shop.svc.cluster.local", "SRV");
  assert.match(dataOf(srv).join(), /^0 100 8080 \S+\.web\.shop\.svc\.cluster\.local\.$/);
  const [host = ""] = dataOf(srv).map((data) => data.split(" ").at(-1) ?? "");
  assert.deepEqual(dataOf(await lan.asks(AT, host)), [HOST]);
  assert.equal((await lan.asks(AT, "db.shop.svc.cluster.local")).status, "NXDOMAIN");
});

test("nothing is forwarded for another machine, whatever it asks for", async () => {
  for (const type of ["A", "ANY", "TXT", "DNSKEY", "MX", "PTR"]) {
    const { status, answer, flags } = await lan.asks(AT, `no-${type}.ok.test`, type);
    assert.deepEqual([status, answer.length, flags.has("ra")], ["REFUSED", 0, false], type);
    assert.deepEqual(await lan.upstream.queriesFor(`no-${type}.ok.test`), []);
  }
  assert.equal((await lan.asks(AT, "-x", "192.0.2.1")).status, "REFUSED");
  assert.equal((await lan.asks(AT, "+tcp", "no-tcp.ok.test")).status, "REFUSED");
});

test("an answer by UDP is short, and its whole comes by TCP", async () => {
  const short = await lan.asks(AT, "+bufsize=4096", "+ignore", "many.lan");
  assert.ok(short.flags.has("tc") && (short.size ?? 0) <= 512, short.raw);
  const whole = await lan.asks(AT, "+bufsize=4096", "many.lan");
  assert.ok(whole.tcp);
  assert.equal(whole.answer.length, 60);
});

test("status, ps, tail, explain, failures and names know who asks", async () => {
  await lan.asks(AT, "web.docker");
  assert.match(
    await lan.command("status"),
    /^listen lan +192\.168\.77\.10 and fd77::10: published, for 192\.168\.77\.0\/25, fd77::\/64$/m,
  );
  assert.match(await lan.command("ps"), /^- +- +listen:lan +listener /m);
  assert.match(await lan.command("tail", "listen:lan", "-n", "50"), /web\.docker/);
  assert.match(await lan.command("explain", "web.docker", "--in", "listen:lan"), /192\.168\.77\.10/);
  assert.match(await lan.command("explain", "x.ok.test", "--in", "listen:lan", "-v"), /forward is off/);
  assert.match(await lan.command("failures", "listen:lan", "--all"), /nothing is forwarded for listen:lan/);
  assert.match(await lan.command("names", "--in", "listen:lan"), /web\.docker/);
  assert.doesNotMatch(await lan.command("names", "--in", "listen:lan"), /\bdb\.docker/);
  const { code, stderr } = await dns11([
    ...["lookup", "web.docker", "--in", "listen:lan"],
    ...["-H", lan.engine.host, "--state-dir", lan.instance.stateDir],
  ]);
  assert.notEqual(code, 0);
  assert.match(stderr, /stands for other machines/);
});

test("an address that goes is waited for, and serves again when it is back", async () => {
  await lan.address("del", `${HOST6}/64`);
  await lan.until("the address to be waited for", (all) => all.some(({ state }) => state === "waiting"));
  assert.match(
    (await lan.states()).find(({ state }) => state === "waiting")?.reason ?? "",
    /does not have the address fd77::10/,
  );
  assert.deepEqual(dataOf(await lan.asks(AT, "web.docker")), [HOST]);
  await lan.address("add", `${HOST6}/64`);
  await lan.serving(2);
  assert.deepEqual(dataOf(await lan.asks(AT6, "web.docker")), [HOST]);
});

test("a reload gives others the view of a network, and forwards for them if that is set", async () => {
  await lan.reload([...LAN, "    view: network=n2", "    forward: true"]);
  await waitFor("the view", async () =>
    (await lan.command("status")).includes("no running container is on a network") ? true : undefined,
  );
  assert.equal((await lan.asks(AT, "web.docker")).answer.length, 0);
  await createNetwork(lan.engine, "n2");
  const app = await runContainer(lan.engine, { name: "app", networks: ["n2"] });
  await waitFor("the network's names", async () =>
    dataOf(await lan.asks(AT, "app")).includes(app.address("n2")) ? true : undefined,
  );
  assert.doesNotMatch(await lan.command("status"), /no running container is on/);
  assert.notEqual((await lan.asks(AT, "web")).status, "NOERROR", "a container of another network");
  assert.deepEqual(dataOf(await lan.asks(AT, "5.ok.test")), ["192.0.2.5"]);
  const big = await lan.asks(AT, "+bufsize=4096", "+ignore", "a.big.test", "TXT");
  assert.ok(big.flags.has("tc") && (big.size ?? 0) <= 512, big.raw);
  assert.ok(((await lan.asks(AT, "+tcp", "a.big.test", "TXT")).size ?? 0) > 512);
  await app.remove();
  await lan.reload();
  assert.equal((await lan.asks(AT, "6.ok.test")).status, "REFUSED");
  await lan.reload([]);
  assert.equal((await lan.instance.status()).listen, null);
  await waitFor("the port to be closed", async () =>
    /connection refused/.test((await lan.asks(AT, "web.docker", ...SOON)).raw) ? true : undefined,
  );
  await lan.reload();
  await lan.serving(2);
  assert.deepEqual(dataOf(await lan.asks(AT, "web.docker")), [HOST]);
});

test("containers on the default bridge get the names of a network at the bridge's own address", async () => {
  const plain = await runContainer(lan.engine, { name: "plain" });
  const { NetworkSettings } = await plain.inspect();
  const bridge = NetworkSettings.Networks["bridge"]?.Gateway ?? assert.fail("no gateway");
  const block = bridge.replace(/\.\d+\.\d+$/, ".0.0/16");
  await lan.reload([...LAN, `  bridge: {address: ${bridge}, allow: [${block}], view: network=n1, forward: true}`]);
  await lan.serving(3);
  const at = `@${bridge}`;
  assert.equal((await dig(plain, at, "db")).answer.length, 1);
  assert.deepEqual(dataOf(await dig(plain, at, "+tcp", "7.ok.test")), ["192.0.2.7"]);
  assert.equal((await dig(plain, AT, "web.docker", ...SOON)).status, "", "the address of the LAN is not for them");
  const other = await runContainer(lan.engine, { name: "other", networks: ["n1"] });
  assert.equal((await dig(other, at, "db", ...SOON)).status, "", "nor that of another bridge");
  await plain.remove();
  await other.remove();
  await lan.reload();
  await lan.serving(2);
});

test("a replacement loses no query; after a kill queries are refused at once, until the next start", async () => {
  await using loop = await QueryLoop.start(lan.friend, { name: "web.docker", server: HOST, perSecond: 50 });
  lan.instance = await replaceDns11(lan.engine, lan.instance, { args: ["--config", lan.config] });
  await lan.serving(2);
  assert.deepEqual(dataOf(await lan.asks(AT, "web.docker")), [HOST]);
  assert.deepEqual(failuresAfter(await loop.stop(), 0), [], lan.instance.log);
  process.kill(lan.instance.pid, "SIGKILL");
  await lan.instance.ended();
  await waitFor("queries to be refused", async () =>
    /connection refused/.test((await lan.asks(AT, "web.docker", ...SOON)).raw) ? true : undefined,
  );
  const { stateDir } = lan.instance;
  lan.instance = await startDns11(lan.engine, { args: ["--config", lan.config], stateDir });
  await lan.serving(2);
  assert.deepEqual(dataOf(await lan.asks(AT, "+tcp", "web.docker")), [HOST]);
  assert.equal(await lan.instance.stop(), 0);
  // The kernel sends one machine only so many refusals in a second.
  await waitFor("queries to be refused", async () =>
    /connection refused/.test((await lan.asks(AT, "web.docker", ...SOON)).raw) ? true : undefined,
  );
  const rules = stdoutOf(await lan.engine.enter("nft", ["list", "tables"]), "nft");
  assert.doesNotMatch(rules, /dns11/);
});
