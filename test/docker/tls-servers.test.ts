// Servers by TLS: unbound, dnsdist and Knot Resolver answer containers, by name and by address, from the host and from inside. What
// keeps one from being asked is a cause that explain and the doctor name, and no query goes out in another way.

import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";

import type { Explanation } from "../../src/api/names.ts";
import { type Container, createNetwork, runContainer } from "../support/engine/container.ts";
import { dataOf, dig } from "../support/client/dig.ts";
import { type Dns11, dns11 } from "../support/program/dns11.ts";
import { stdoutOf } from "../support/program/command.ts";
import { SharedDns11 } from "../support/program/shared-dns11.ts";
import { type Engine, startEngine } from "../support/engine/engine.ts";
import { makeFolder } from "../support/rig/folder.ts";
import { waitFor } from "../support/rig/wait.ts";
import { Authority } from "../support/servers/authority.ts";
import {
  type RealServer,
  startDnsdist,
  startDnsmasq,
  startKresd,
  startUnbound,
} from "../support/servers/real-server.ts";

const NAME = "dns.test";
/** Where each server is, and what it answers. */
const UNBOUND = { address: "10.53.1.1", says: "192.0.2.1" };
const DNSDIST = { address: "10.53.1.2", says: "192.0.2.2" };
const KRESD = { address: "10.53.1.3", says: "192.0.2.3" };
/** With certificates that do not hold. */
const [EXPIRED, EARLY, FOREIGN] = ["10.53.1.4", "10.53.1.5", "10.53.1.6"];
/** DNS without TLS, and packets that are dropped. */
const [PLAIN, FILTERED] = ["10.53.1.7", "10.53.1.8"];
/** Nobody has it. */
const DEAD = "10.53.1.99";

const folder = makeFolder("tls");
let engine: Engine;
let authority: Authority;
let plain: RealServer;
let web: Container;
let labelled: Container;
let names = 0;
const shared = new SharedDns11(() => engine);
const fresh = (): string => `n${(names += 1)}.ok.test`;

before(async () => {
  authority = await Authority.make(join(folder, "authority"));
  const foreign = await Authority.make(join(folder, "foreign"));
  engine = await startEngine({ resolvConf: `nameserver ${PLAIN}\n` });
  for (const address of [UNBOUND, DNSDIST, KRESD].map((each) => each.address)) {
    const certificate = await authority.sign({ names: [`DNS:${NAME}`, `IP:${address}`] });
    if (address === UNBOUND.address) await unboundAt(address, certificate);
    else if (address === DNSDIST.address) await dnsdistAt(address, certificate);
    else await kresdAt(address, certificate);
  }
  await unboundAt(EXPIRED, await authority.sign({ names: [`DNS:${NAME}`], years: [-2, -1] }));
  await unboundAt(EARLY, await authority.sign({ names: [`DNS:${NAME}`], years: [1, 2] }));
  await unboundAt(FOREIGN, await foreign.sign({ names: [`DNS:${NAME}`] }));
  plain = await startDnsmasq(engine, {
    address: PLAIN,
    lines: ["log-queries", "address=/ok.test/192.0.2.7", "address=/plain.test/192.0.2.7"],
  });
  await unboundAt(FILTERED, await authority.sign({ names: [`DNS:${NAME}`] }));
  const wall = `table inet wall { chain out { type filter hook output priority 0; ip daddr ${FILTERED} drop; }; }`;
  stdoutOf(await engine.enter("nft", [wall]), wall);
  await createNetwork(engine, "n1");
  web = await runContainer(engine, { name: "web", networks: ["n1"] });
  const labels = { "io.dns11.dns": `tls://${DNSDIST.address}#${NAME}` };
  labelled = await runContainer(engine, { name: "labelled", networks: ["n1"], labels });
});
after(async () => {
  await shared[Symbol.asyncDispose]();
  await engine[Symbol.asyncDispose]();
});

type Certificate = Awaited<ReturnType<Authority["sign"]>>;

async function unboundAt(address: string, { cert, key }: Certificate): Promise<void> {
  await startUnbound(engine, {
    address,
    port: 853,
    lines: [
      "tls-port: 853",
      `tls-service-pem: "${cert}"`,
      `tls-service-key: "${key}"`,
      // In milliseconds: it closes what is idle before dns11 does. On a busy machine a handshake takes a second.
      "tcp-idle-timeout: 3000",
      "local-zone: ok.test. redirect",
      `local-data: "ok.test. 300 A ${UNBOUND.says}"`,
    ],
  });
}

async function dnsdistAt(address: string, { cert, key }: Certificate): Promise<void> {
  const lines = [
    `addTLSLocal("${address}:853", "${cert}", "${key}", {})`,
    `addAction(AllRule(), SpoofAction("${DNSDIST.says}"))`,
  ];
  await startDnsdist(engine, { address, lines });
}

async function kresdAt(address: string, { cert, key }: Certificate): Promise<void> {
  const own = join(folder, "kresd");
  mkdirSync(own);
  const answer = `{[kres.type.A]={rdata=kres.str2ip('${KRESD.says}'),ttl=300}}`;
  const lines = [
    `net.tls('${cert}','${key}')`,
    `net.listen('${address}',853,{kind='tls'})`,
    `policy.add(policy.all(policy.ANSWER(${answer})))`,
  ];
  await startKresd(engine, { address, args: [own], lines });
}

async function under(...servers: readonly string[]): Promise<Dns11> {
  return await shared.under(
    `dns: [${servers.map((each) => `"${each}"`).join(", ")}]`,
    `forward: {tls-ca: ${authority.file}}`,
  );
}

async function explain(instance: Dns11, name: string, container = web): Promise<Explanation> {
  return await instance.client.explain({ container: container.name, name, type: "A" });
}

for (const [what, { address, says }] of Object.entries({
  unbound: UNBOUND,
  dnsdist: DNSDIST,
  "Knot Resolver": KRESD,
})) {
  test(`${what} answers by TLS, by its name and by its address`, async () => {
    for (const server of [`tls://${address}#${NAME}`, `tls://${address}`, `container:tls://${address}#${NAME}`]) {
      const instance = await under(server);
      for (let i = 0; i < 5; i++) assert.deepEqual(dataOf(await dig(web, fresh())), [says], server);
      const { server: asked, steps } = await explain(instance, fresh());
      assert.equal(asked, server.startsWith("container:") ? server.slice("container:".length) : `host(${server})`);
      assert.ok(JSON.stringify(steps).includes("sent over tls"), JSON.stringify(steps));
    }
  });
}

test("a label has a container's server asked by TLS from inside it, a route one for a domain", async () => {
  const instance = await shared.under(
    `dns: ["/other.test/tls://${KRESD.address}"]`,
    `forward: {tls-ca: ${authority.file}}`,
  );
  assert.deepEqual(dataOf(await dig(labelled, fresh())), [DNSDIST.says]);
  assert.deepEqual(dataOf(await dig(labelled, "a.other.test")), [KRESD.says]);
  assert.deepEqual(dataOf(await dig(web, "a.plain.test")), ["192.0.2.7"], "others keep theirs");
  const { stdout } = await dns11(["status", "--state-dir", instance.stateDir, "-H", engine.host, "--json"]);
  assert.match(stdout, new RegExp(`"tls://${DNSDIST.address}#${NAME}"`));
});

test("answers of a server that closes what is idle go on", async () => {
  await under(`tls://${UNBOUND.address}#${NAME}`);
  for (let i = 0; i < 3; i++) {
    assert.deepEqual(dataOf(await dig(web, fresh())), [UNBOUND.says]);
    await waitFor("unbound to close the connection", async () => {
      const { stdout } = await engine.enter("ss", ["-Htn", "state", "established", "dst", `${UNBOUND.address}:853`]);
      return stdout.trim() === "" ? true : undefined;
    });
  }
});

for (const [what, server, code, sentence, advice] of [
  [
    "for another name",
    `tls://${UNBOUND.address}#other.test`,
    "tls-name",
    /for dns\.test, 10\.53\.1\.1, and not for other\.test/,
    /tls:\/\/ADDRESS#NAME/i,
  ],
  ["that has expired", `tls://${EXPIRED}#${NAME}`, "tls-time", /not valid any more/, /timedatectl/i],
  ["that is not valid yet", `tls://${EARLY}#${NAME}`, "tls-time", /not valid yet/, /timedatectl/i],
  [
    "of another authority",
    `tls://${FOREIGN}#${NAME}`,
    "tls-untrusted",
    /of no authority in/,
    /forward: \{tls-ca: FILE\}/,
  ],
  [
    "behind a port that is filtered",
    `tls://${FILTERED}#${NAME}`,
    "tls-blocked",
    /no connection to its port 853 within 3 s/,
    /allow TCP port 853/i,
  ],
  [
    "at a port where nothing listens",
    `tls://${UNBOUND.address}:8853#${NAME}`,
    "tls-absent",
    /nothing listens at its port 8853/,
    /serve DNS over TLS/i,
  ],
  [
    "at a port without TLS",
    `tls://${PLAIN}:53#${NAME}`,
    "tls-absent",
    /listens at its port 53 (closes|answers no TLS|speaks no TLS)/,
    /serve DNS over TLS/i,
  ],
] as const) {
  test(`a server ${what} is named with what to do, and asked in no other way`, async () => {
    const instance = await under(server);
    const name = fresh();
    assert.equal((await dig(web, name)).status, "SERVFAIL");
    const explained = await waitFor("the cause", async () => {
      const found = await explain(instance, name);
      return found.causes[0]?.code === code ? found : undefined;
    });
    const [cause] = explained.causes;
    assert.match(cause?.sentence ?? "", sentence);
    assert.match(cause?.sentence ?? "", /is not asked without/);
    assert.match(cause?.advice ?? "", advice);
    const { stdout } = await dns11(["doctor", "web", "--state-dir", instance.stateDir, "-H", engine.host]);
    assert.match(stdout, sentence);
    assert.match(stdout, advice);
    assert.match(plain.log, /query\[A\] a\.plain\.test/);
    assert.doesNotMatch(plain.log, /ok\.test/, "the server without TLS has seen none of them");
  });
}

test("of two servers the second answers while the first cannot be asked, which is then down", async () => {
  const instance = await under(`tls://${UNBOUND.address}#other.test`, `tls://${DNSDIST.address}#${NAME}`);
  assert.deepEqual(dataOf(await dig(web, fresh())), [DNSDIST.says]);
  const { upstreams } = await instance.client.upstreams();
  const [first, second] = [UNBOUND, DNSDIST].map(({ address }) => upstreams.find((each) => each.address === address));
  assert.deepEqual([first?.state, second?.state], ["down", "up"]);
  assert.match(first?.reason ?? "", /^TLS: its certificate is for dns\.test/);
  await under(`tls://${DEAD}#${NAME}`, `tls://${DNSDIST.address}#${NAME}`);
  for (let i = 0; i < 4; i++) assert.deepEqual(dataOf(await dig(web, fresh())), [DNSDIST.says]);
});

test("with strict, a server by TLS is a mistake, and one of a label is not asked", async () => {
  const instance = await shared.under("strict: true");
  assert.equal((await dig(labelled, fresh())).status, "SERVFAIL");
  const { steps } = await explain(instance, fresh(), labelled);
  assert.match(JSON.stringify(steps), /not asked with forward\.order: docker/);
});
