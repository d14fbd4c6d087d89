// Proves what is said of a name whose A has an answer and whose AAAA has an error, by programs that resolve such names: glibc and Go find the
// address, musl does not. And that an IPv6 address is named which programs try first although nothing leads to it.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { HostClients } from "../support/client/host-clients.ts";
import { type Container, runContainer } from "../support/engine/container.ts";
import { type Engine, startEngine } from "../support/engine/engine.ts";
import { type Dns11, dns11, startDns11 } from "../support/program/dns11.ts";
import { type Upstream, startUpstream } from "../support/servers/upstream.ts";

const UPSTREAM = "10.53.0.1";
const ADDRESS = "192.0.2.1";

let engine: Engine;
let clients: HostClients;
let upstream: Upstream;
let instance: Dns11;
let web: Container;

before(async () => {
  engine = await startEngine({ resolvConf: `nameserver ${UPSTREAM}\noptions timeout:1 attempts:1\n` });
  upstream = await startUpstream(engine, { address: UPSTREAM });
  clients = await HostClients.prepare(engine);
  await engine.docker("network", "create", "--ipv6", "--subnet", "2001:db8:5::/64", "n1");
  instance = await startDns11(engine);
  web = await runContainer(engine, { name: "web", networks: ["n1"] });
  await instance.waitFor("web", "attached");
});
after(async () => {
  await instance[Symbol.asyncDispose]();
  await upstream[Symbol.asyncDispose]();
  await engine[Symbol.asyncDispose]();
});

async function explain(...words: string[]): Promise<string> {
  const { stdout } = await dns11(["explain", ...words, "-H", engine.host, "--state-dir", instance.stateDir]);
  return stdout.replaceAll(/\s+/g, " ");
}

for (const [zone, rcode, musl] of [
  ["no6", "NXDOMAIN", "says that the name does not exist"],
  ["refuse6", "REFUSED", "waits until its time is over, and fails"],
  ["fail6", "SERVFAIL", "waits until its time is over, and fails"],
] as const) {
  test(`AAAA is ${rcode}, and A has an answer`, async () => {
    const name = `a1.${zone}.test`;
    const { glibc, musl: found, "static Go": go } = await clients.lookup(name);
    assert.deepEqual({ glibc, found, go }, { glibc: [ADDRESS], found: [], go: [ADDRESS] });
    const text = await explain(name, "--in", web.name);
    assert.ok(
      text.startsWith(`${name} (A) in web: ${ADDRESS} why "${name}" has A records, and AAAA is answered `),
      text,
    );
    assert.ok(text.includes(`glibc and Go use what there is, musl (Alpine) ${musl}`), text);
    assert.match(text, / AAAA (?:NXDOMAIN|REFUSED|SERVFAIL) /);
    assert.doesNotMatch(text, /does not exist, according/);
    assert.match(
      await explain(name, "--in", web.name, "--type", "AAAA"),
      /why "\S+" has A records, and AAAA is answered/,
    );
  });
}

test("an IPv6 address comes first, and the host has no way to it", async () => {
  const text = await explain("a1.ok.test", "--in", web.name);
  assert.match(
    text,
    /why "a1\.ok\.test" has IPv6 addresses that programs in web try first \(2001:db8::1\), and the Docker host has no route to them/,
  );
  // Its programs find a way out, and so prefer this address.
  assert.match((await web.enter("ip", ["-6", "route", "get", "2001:db8::1"])).stdout, /^2001:db8::1 /);
  await engine.docker("network", "disconnect", "n1", "web");
  await engine.docker("network", "create", "n2");
  await engine.docker("network", "connect", "n2", "web");
  await instance.waitFor("web", "attached");
  assert.doesNotMatch(await explain("a1.ok.test", "--in", web.name), /no route/);
});
