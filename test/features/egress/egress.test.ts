/**
 * Where containers connect to, as `dns11 egress` lists it: real connections from real containers, with names that were
 * answered in every way there is, answers that are no connections, and containers that try to fill or evade the record.
 */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";

import type { EgressConnection, EgressContainer, EgressReport } from "../../../src/api/egress.ts";
import { EGRESS_LIMITS } from "../../../src/features/egress/limits.ts";
import { dig } from "../../support/client/dig.ts";
import { type Container, createNetwork, runContainer } from "../../support/engine/container.ts";
import { type Engine, startEngine } from "../../support/engine/engine.ts";
import { type Suite, inTurn } from "../../support/engine/suite.ts";
import { run } from "../../support/program/command.ts";
import { type Dns11, dns11 } from "../../support/program/dns11.ts";
import { SharedDns11 } from "../../support/program/shared-dns11.ts";
import { addAddress, inNetns } from "../../support/rig/netns.ts";
import { waitFor } from "../../support/rig/wait.ts";
import { type Upstream, startUpstream } from "../../support/servers/upstream.ts";

const SUITES = inTurn<Suite>(["bookworm", "forky"]);
/** Each sends, or begins to connect, and does not care what comes of it. */
const SENDER = `
const { connect } = require("node:net");
const { createSocket } = require("node:dgram");
const [, ...targets] = process.argv;
let left = targets.length;
const next = () => {
  const [protocol, port, address] = targets.shift()?.split("/") ?? [];
  if (address === undefined) return;
  if (protocol === "tcp") {
    const socket = connect({ host: address, port: Number(port) });
    socket.on("error", next).on("connect", () => { socket.destroy(); next(); });
  } else {
    const socket = createSocket(address.includes(":") ? "udp6" : "udp4");
    socket.send("x", Number(port), address, () => { socket.close(); next(); });
  }
};
next();`;
/** Sends back what comes, until its input ends. */
const ECHO = `
process.stdin.on("end", () => process.exit()).resume();
const socket = require("node:dgram").createSocket("udp4");
socket.on("message", (message, { port, address }) => socket.send(message, port, address));
socket.bind(5000);
require("node:net").createServer((one) => one.pipe(one)).listen(5000);`;

for (const suite of SUITES) {
  describe(`egress, Docker of ${suite}`, () => {
    let engine: Engine;
    let upstream: Upstream;
    let web: Container;
    let db: Container;
    const shared = new SharedDns11(() => engine);

    before(async () => {
      engine = await startEngine({ suite });
      upstream = await startUpstream(engine);
      for (const address of ["192.0.2.1", "192.0.2.7", "192.0.2.8", "198.51.100.9", "2001:db8::1"])
        await addAddress(engine.netnsPath, address);
      await createNetwork(engine, "shop", { ipv6: true });
      web = await runContainer(engine, { name: "web", networks: ["shop"] });
      db = await runContainer(engine, { name: "db", networks: ["shop"] });
    });
    after(async () => {
      await shared[Symbol.asyncDispose]();
      await upstream[Symbol.asyncDispose]();
      await engine[Symbol.asyncDispose]();
    });

    /** The program of the machine, because an image may have none. */
    async function inside(container: { netnsPath: string }, program: string, ...args: string[]): Promise<void> {
      const [command = "", ...words] = inNetns(container.netnsPath, process.execPath, ["-e", program, ...args]);
      const { code, stderr } = await run(command, words);
      assert.equal(code, 0, stderr);
    }

    async function of({ client }: Dns11, container: string): Promise<EgressContainer> {
      const [found] = (await client.egress({ container })).containers;
      return found ?? assert.fail(`${container} is not in the report`);
    }

    async function connectionTo(
      instance: Dns11,
      container: string,
      address: string,
    ): Promise<EgressConnection | undefined> {
      return (await of(instance, container)).connections.find((each) => each.address === address);
    }

    /** The kernel records from soon after the start on. */
    async function on(...lines: string[]): Promise<Dns11> {
      const instance = await shared.under("egress: true", ...lines);
      for (const container of [web, db]) {
        await waitFor(`${container.name} to be recorded`, async () => {
          await inside(container, SENDER, "udp/9/198.51.100.9");
          return (await connectionTo(instance, container.name, "198.51.100.9")) && true;
        });
      }
      return instance;
    }

    test("it is off at first, says how to turn it on, and a reload does", async () => {
      const instance = await shared.under();
      const words = ["egress", "-H", engine.host, "--state-dir", instance.stateDir];
      const { code, stderr } = await dns11(words);
      assert.equal(code, 1);
      assert.match(stderr, /egress is off[\s\S]*Set `egress: true`[\s\S]*dns11 reload/);
      assert.deepEqual(await tables(), []);
      await on();
      assert.equal((await tables()).length, 1);
      await shared.under();
      await waitFor("the rules to be gone", async () => ((await tables()).length === 0 ? true : undefined));
      assert.equal((await dns11(words)).code, 1);
    });

    async function tables(): Promise<readonly string[]> {
      const { stdout } = await engine.enter("nft", ["list", "tables"]);
      return stdout.split("\n").filter((line) => line.includes("dns11-egress"));
    }

    test("each destination has the names that the container had asked, however they were answered", async () => {
      const instance = await on();
      // Forwarded, then from the cache; by a chain of aliases; a container's, by the process and by the kernel.
      for (const name of ["a7.ok.test", "a7.ok.test", "b7.ok.test", "x8.cname.test"]) await dig(web, name);
      for (let count = 0; count < 3; count++) await dig(web, "+nocookie", "db");
      await dig(web, "six1.ok.test", "AAAA");
      const address = db.address("shop");
      const targets = ["192.0.2.7", "192.0.2.8", address].map((each) => `tcp/81/${each}`);
      await inside(web, SENDER, ...targets, "tcp/82/192.0.2.7", "tcp/81/192.0.2.7", "udp/53/2001:db8::1");
      const { connections } = await of(instance, "web");
      const found = connections.map(({ address: to, protocol, port, names, count, owner }) => ({
        to: `${protocol}/${port}/${to}`,
        names,
        count,
        owner: owner?.name ?? null,
      }));
      const expected = (to: string, names: readonly string[], count: number, owner: string | null = null): void =>
        assert.deepEqual(
          found.find((each) => each.to === to),
          { to, names, count, owner },
        );
      expected("tcp/81/192.0.2.7", ["a7.ok.test", "b7.ok.test"], 2);
      expected("tcp/82/192.0.2.7", ["a7.ok.test", "b7.ok.test"], 1);
      expected("tcp/81/192.0.2.8", ["x8.cname.test"], 1);
      expected(`tcp/81/${address}`, ["db"], 1, "db");
      expected("udp/53/2001:db8::1", ["six1.ok.test"], 1);
    });

    test("an address that it never asked for is marked, also if another container asked", async () => {
      const instance = await on();
      await dig(db, "c1.ok.test");
      await inside(web, SENDER, "tcp/443/192.0.2.1");
      assert.deepEqual((await connectionTo(instance, "web", "192.0.2.1"))?.names, []);
      const words = ["egress", "web", "-H", engine.host, "--state-dir", instance.stateDir];
      const { stdout } = await dns11(words);
      assert.match(stdout, /web +\(never asked\) +192\.0\.2\.1 +443\/tcp +1 /);
      await dig(web, "c1.ok.test");
      await inside(web, SENDER, "tcp/443/192.0.2.1");
      const now = await connectionTo(instance, "web", "192.0.2.1");
      assert.deepEqual([now?.names, now?.count], [["c1.ok.test"], 2]);
    });

    test("what answers a connection from outside is none of its own, by TCP and by UDP", async () => {
      const instance = await on();
      let end: () => void = () => undefined;
      const until = new Promise<void>((resolve) => (end = resolve));
      const [command = "", ...words] = inNetns(db.netnsPath, process.execPath, ["-e", ECHO]);
      const server = run(command, words, { until });
      await waitFor("the server to listen", async () => {
        const { stdout } = await db.enter("ss", ["-Hltun", "sport", "=", "5000"]);
        return stdout.includes("tcp") && stdout.includes("udp") ? true : undefined;
      });
      const address = db.address("shop");
      const echoes = `
        const socket = require("node:dgram").createSocket("udp4");
        let left = 3;
        socket.on("message", () => (--left === 0 ? socket.close() : socket.send("x", 5000, "${address}")));
        socket.send("x", 5000, "${address}");
        const one = require("node:net").connect(5000, "${address}", () => one.write("x"));
        one.on("data", () => one.destroy());`;
      await inside(web, echoes);
      await inside(engine, echoes);
      const asked = await of(instance, "web");
      const counts = asked.connections.filter((each) => each.port === 5000).map((each) => [each.protocol, each.count]);
      assert.deepEqual(
        new Map(counts as [string, number][]),
        new Map([
          ["tcp", 1],
          ["udp", 1],
        ]),
      );
      const { connections } = await of(instance, "db");
      const to = connections.map((each) => each.address);
      assert.ok(!to.includes(web.address("shop")), "answers to a container");
      const gateway = connections.filter(({ owner }) => owner?.kind === "host");
      assert.deepEqual(gateway, [], "answers to the host");
      end();
      await server;
    });

    test("a container that scans fills its own record only, and the report says that more is missing", async () => {
      const instance = await on();
      const ports = Array.from({ length: EGRESS_LIMITS.kernel + 200 }, (_, index) => `udp/${10_000 + index}/192.0.2.8`);
      await inside(web, SENDER, ...ports);
      await inside(db, SENDER, "tcp/443/192.0.2.8");
      const scanner = await of(instance, "web");
      assert.equal(scanner.connections.length, EGRESS_LIMITS.connections);
      assert.notEqual(scanner.missingSince, null);
      const other = await of(instance, "db");
      assert.equal(other.missingSince, null);
      assert.ok(other.connections.some(({ address, port }) => address === "192.0.2.8" && port === 443));
    });

    test("one that has ended is listed with its last connections; one without a link says why", async () => {
      const instance = await on();
      const job = await runContainer(engine, { name: "job", networks: ["shop"] });
      await using onHost = await runContainer(engine, { name: "on-host", args: ["--network=host"] });
      await using beside = await runContainer(engine, { name: "beside", args: [`--network=container:${web.id}`] });
      await instance.waitFor("job", "attached");
      await waitFor("the job to be recorded", async () => {
        await inside(job, SENDER, "udp/9/198.51.100.9");
        return (await connectionTo(instance, "job", "198.51.100.9")) && true;
      });
      await dig(job, "e7.ok.test");
      await inside(job, SENDER, "tcp/80/192.0.2.7");
      await job.remove();
      const ended = await waitFor("the end of the job", async () => {
        const found = await of(instance, job.id);
        return found.isRunning ? undefined : found;
      });
      const last = ended.connections.find(({ address }) => address === "192.0.2.7");
      assert.deepEqual([ended.container, last?.names, last?.count], ["job", ["e7.ok.test"], 1]);
      assert.deepEqual((await of(instance, onHost.name)).notRecorded, ["it uses the host's network"]);
      assert.equal((await of(instance, beside.name)).sharedWith, "web");
    });

    test("names are as private as in the query history", async () => {
      const instance = await on("queries:", "  names: hidden");
      await dig(web, "p8.ok.test");
      await inside(web, SENDER, "tcp/444/192.0.2.8");
      const words = ["egress", "-H", engine.host, "--state-dir", instance.stateDir, "--json"];
      const { code, stdout, stderr } = await dns11(words);
      assert.equal(code, 0, stderr);
      assert.equal((JSON.parse(stdout) as EgressReport).hasNames, false);
      const { connections } = await of(instance, "web");
      const found = connections.find(({ port }) => port === 444);
      assert.deepEqual(found?.names, []);
    });
  });
}
