/**
 * A container as an upstream server (`container:NAME`): found by the engine's state, queried from the right namespace,
 * followed through another address, and never asked for what it asks itself.
 */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";

import { type Container, createNetwork, runContainer } from "../support/engine/container.ts";
import { dataOf, dig } from "../support/client/dig.ts";
import { type Dns11, dns11, startDns11 } from "../support/program/dns11.ts";
import { type Engine, startEngine } from "../support/engine/engine.ts";
import { type Upstream, startUpstream } from "../support/servers/upstream.ts";
import { waitFor } from "../support/rig/wait.ts";

const HOSTS = "10.53.0.2";
const DNS_LABEL = "io.dns11.dns";

describe("a container as an upstream server", () => {
  const folder = mkdtempSync(join(tmpdir(), "d11-upstream-"));
  const settings = join(folder, "dns11.yaml");
  let engine: Engine;
  let host: Upstream;
  let pihole: Container;
  let web: Container;
  let member: Container;
  let labelled: Container;
  let instance: Dns11;
  let names = 0;

  before(async () => {
    engine = await startEngine({ resolvConf: `nameserver ${HOSTS}\n` });
    host = await startUpstream(engine, { address: HOSTS });
    await createNetwork(engine, "front");
    await createNetwork(engine, "infra", { subnet: "10.77.0.0/24" });
    pihole = await runContainer(engine, { name: "pihole", networks: ["infra"] });
    web = await runContainer(engine, { name: "web", networks: ["front"] });
    member = await runContainer(engine, { name: "member", networks: ["infra"] });
    const toPihole = { [DNS_LABEL]: "/label.test/container:pihole" };
    labelled = await runContainer(engine, { name: "labelled", networks: ["front"], labels: toPihole });
    for (const [name, other] of [
      ["ping", "pong"],
      ["pong", "ping"],
    ] as const) {
      const labels = { [DNS_LABEL]: `/ring.ok.test/container:${other}` };
      await runContainer(engine, { name, networks: ["front"], labels });
    }
    writeFileSync(settings, "version: 1\ndns: [container:pihole]\n");
    instance = await startDns11(engine, { args: ["--config", settings] });
    for (const { name } of [pihole, web, member, labelled]) await instance.waitFor(name, "attached");
  });
  after(async () => {
    await instance[Symbol.asyncDispose]();
    await host[Symbol.asyncDispose]();
    await engine[Symbol.asyncDispose]();
    rmSync(folder, { recursive: true });
  });

  const inPihole = async (): Promise<Upstream> => await startUpstream(pihole, { address: pihole.address("infra") });
  const fresh = (domain = "ok.test"): string => `n${(names += 1)}.${domain}`;
  const state = (): string[] => ["--state-dir", instance.stateDir, "-H", engine.host];

  async function command(...args: string[]): Promise<string> {
    const { stdout, stderr } = await dns11([...args, ...state()]);
    return stdout + stderr;
  }

  /** Whether a query of the container for a new name reaches the server. */
  async function reaches(server: Upstream, from: Container): Promise<boolean> {
    const name = fresh();
    await dig(from, "+time=10", name);
    return (await server.queriesFor(name)).length > 0;
  }

  test("it answers containers on its network and, from the host, those on others; its own queries go to Docker's servers", async () => {
    await using server = await inPihole();
    const address = pihole.address("infra");
    for (const from of [web, member]) {
      assert.equal(dataOf(await dig(from, fresh())).length, 1, from.name);
      assert.ok(await reaches(server, from), from.name);
    }
    assert.equal(await reaches(server, pihole), false);
    assert.ok(await reaches(host, pihole));
    assert.deepEqual((await instance.container("web"))?.upstreams, [`container:pihole@infra(host(${address}))`]);
    assert.deepEqual((await instance.container("member"))?.upstreams, [`container:pihole@infra(${address})`]);
    assert.match(await command("upstreams"), new RegExp(`container:pihole@infra\\(host\\(${address}\\)\\)`));
    assert.match(await command("explain", "-v", fresh(), "web"), /container:pihole@infra\(host\(/);
    assert.match(await command("doctor", "member", "--all"), /container:pihole@infra\(/);
  });

  test("a label does not reach it from another network, and containers that name each other are no servers", async () => {
    await using server = await inPihole();
    const name = fresh("label.test");
    const refused = await dig(labelled, name);
    assert.equal(refused.status, "SERVFAIL");
    assert.match(refused.raw, /EDE: 18 .*container:pihole is not queried: .* a label reaches no other/);
    assert.deepEqual(await server.queriesFor(name), []);
    assert.match((await instance.container("labelled"))?.warning ?? "", /a label reaches no other; connect labelled/);
    assert.match(await command("explain", "-v", name, "labelled"), /container:pihole is not queried/);
    assert.match((await instance.container("ping"))?.warning ?? "", /queries would come back: ping -> pong -> ping/);
    const ping = (await instance.container("ping"))?.upstreams ?? [];
    assert.match(ping.join(" "), /\/ring\.ok\.test\/container:pihole@infra\(host\([^ ]*\)\) container:pong\(missing\)/);
  });

  test("it is followed to another address, without a query to the former one", async () => {
    const former = pihole.address("infra");
    await pihole.stop();
    await using placeholder = await runContainer(engine, { networks: [{ name: "infra", ip: former }] });
    await using wrong = await startUpstream(placeholder, { address: former });
    await pihole.start();
    assert.notEqual(pihole.address("infra"), former);
    await using server = await inPihole();
    await waitFor("the new address", async () =>
      (await instance.container("web"))?.upstreams?.join().includes(pihole.address("infra")) ? true : undefined,
    );
    for (const from of [web, member]) assert.ok(await reaches(server, from), from.name);
    assert.deepEqual(await wrong.queries(), []);
    assert.doesNotMatch(await command("upstreams"), new RegExp(`\\(${former.replaceAll(".", "\\.")}\\)`));
  });

  test("while it is away names fail, and with fallback go to Docker's servers", async () => {
    await pihole.stop();
    await waitFor("it to be missing", async () =>
      (await instance.container("web"))?.upstreams?.[0] === "container:pihole(missing)" ? true : undefined,
    );
    const name = fresh();
    assert.equal((await dig(web, name)).status, "SERVFAIL");
    assert.deepEqual(await host.queriesFor(name), []);
    const absent = /no running container is named "pihole"; start it, or name another server/;
    assert.match(await command("upstreams"), absent);
    assert.match(await command("explain", name, "web"), absent);
    assert.match(await command("doctor", "web", "--all"), absent);
    writeFileSync(settings, "version: 1\ndns: [container:pihole]\nforward: {missing-container: fallback}\n");
    await command("reload");
    assert.ok(await reaches(host, web));
    assert.match((await instance.container("web"))?.warning ?? "", absent);
  });
});
