// The examples of docs/testing.md in other languages, on a live engine: each holds a lease with nothing but what its language
// brings, and leaves nothing behind, also when it is killed.

import assert from "node:assert/strict";
import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";

import type { LeasesReport } from "../../../src/api/lease.ts";
import { dig } from "../../support/client/dig.ts";
import { type Container, createNetwork, runContainer } from "../../support/engine/container.ts";
import { type Engine, startEngine } from "../../support/engine/engine.ts";
import { SYSTEM_PATH } from "../../support/program/command.ts";
import { type Dns11, startDns11 } from "../../support/program/dns11.ts";
import { getJson } from "../../support/program/unix-http.ts";
import { inTime, waitFor } from "../../support/rig/wait.ts";

const EXAMPLES = [
  ["bash", "docs/examples/lease.sh"],
  ["python3", "docs/examples/lease.py"],
  ["java", "docs/examples/Lease.java"],
] as const;

let engine: Engine;
let app: Container;
let instance: Dns11;
let socket: string;

before(async () => {
  engine = await startEngine({ suite: "bookworm" });
  await createNetwork(engine, "n1");
  app = await runContainer(engine, { name: "app", networks: ["n1"] });
  await runContainer(engine, { name: "db", networks: ["n1"] });
  instance = await startDns11(engine);
  const [folder = ""] = readdirSync(instance.stateDir);
  socket = join(instance.stateDir, folder, "control.sock");
});
after(async () => {
  await instance[Symbol.asyncDispose]();
  await engine[Symbol.asyncDispose]();
});

/** An example that holds its rule: until a line comes, or it is killed. */
class Example implements AsyncDisposable {
  readonly #child: ChildProcessWithoutNullStreams;
  readonly #ended: Promise<number | null>;
  out = "";

  constructor(language: string, file: string, name = "db") {
    const env = { ...process.env, PATH: SYSTEM_PATH };
    this.#child = spawn(language, [file, socket, "app", name], { env });
    for (const stream of [this.#child.stdout, this.#child.stderr])
      stream.on("data", (chunk: Buffer) => (this.out += chunk.toString()));
    this.#ended = new Promise((resolve) => this.#child.on("close", (code) => resolve(code)));
  }

  async untilInForce(): Promise<void> {
    await waitFor("the rule to be in force", () => {
      if (this.#child.exitCode !== null) throw new Error(`the example has ended: ${this.out}`);
      return this.out.includes("in force") ? true : undefined;
    });
  }

  async end(how: "line" | "SIGKILL"): Promise<number | null> {
    if (how === "line") this.#child.stdin.write("\n");
    else this.#child.kill(how);
    return await this.ended;
  }

  get ended(): Promise<number | null> {
    return inTime(this.#ended, "the example to end");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.end("SIGKILL");
  }
}

const leases = async (): Promise<LeasesReport["leases"]> =>
  ((await getJson(socket, "/v1/leases")) as LeasesReport).leases;
const untilNoLease = async (): Promise<true> =>
  await waitFor("the lease to end", async () => ((await leases()).length === 0 ? true : undefined));

for (const [language, file] of EXAMPLES) {
  test(`${language} holds a lease, and reports what its rule has done`, async () => {
    await using example = new Example(language, file);
    await example.untilInForce();
    const results: string[] = [];
    for (let i = 0; i < 3; i += 1) results.push((await dig(app, "db")).status);
    assert.deepEqual(results, ["SERVFAIL", "SERVFAIL", "NOERROR"]);
    assert.equal(await example.end("line"), 0, example.out);
    assert.match(example.out, /"applied": ?2|applied to 2 of 3 queries/);
    await untilNoLease();
  });

  test(`${language} leaves no rule behind when it is killed`, async () => {
    await using example = new Example(language, file);
    await example.untilInForce();
    assert.equal((await leases()).length, 1);
    await example.end("SIGKILL");
    await untilNoLease();
    assert.equal((await dig(app, "db")).status, "NOERROR");
  });

  test(`${language} fails with the reason when a rule is wrong`, async () => {
    await using example = new Example(language, file, "a..b");
    assert.notEqual(await example.ended, 0);
    assert.match(example.out, /Invalid name .*a\.\.b/);
  });
}
