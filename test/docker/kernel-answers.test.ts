/**
 * Kernel answers: with --answers kernel, plain queries for local names are answered at lo in the container's namespace,
 * with what the process says; every container sees its own names; and where the kernel cannot answer, the process does.
 */
import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, test } from "node:test";

import { dig } from "../support/client/dig.ts";
import { type Container, createNetwork, runContainer } from "../support/engine/container.ts";
import { type Engine, startEngine } from "../support/engine/engine.ts";
import { type Dns11, startDns11 } from "../support/program/dns11.ts";
import { waitFor } from "../support/rig/wait.ts";

const ARGS = ["--answers", "kernel"];
// dig's cookie is an option, which is left to the process.
const PLAIN = ["+noedns"];

let engine: Engine;
let web: Container;
let client: Container;
let stranger: Container;

before(async () => {
  engine = await startEngine({ suite: "forky" });
  await createNetwork(engine, "n1");
  await createNetwork(engine, "n2");
  web = await runContainer(engine, { name: "web", networks: [{ name: "n1", aliases: ["shared"] }] });
  client = await runContainer(engine, { name: "client", networks: ["n1"] });
  stranger = await runContainer(engine, { name: "stranger", networks: [{ name: "n2", aliases: ["shared"] }] });
});
after(async () => await engine[Symbol.asyncDispose]());

async function kernelCount(instance: Dns11, name: string): Promise<number> {
  return (await instance.container(name))?.counters?.["kernel"] ?? 0;
}

test("smoke", async () => {
  await using instance = await startDns11(engine, { args: ARGS });
  const status = await instance.status();
  console.log(JSON.stringify(status.answers), JSON.stringify(status.containers.map((c) => [c.name, c.state, c.answers, c.counters])));
  for (let i = 0; i < 3; i++) console.log((await dig(client, ...PLAIN, "web")).raw, await kernelCount(instance, "client"));
  console.log((await dig(client, "+tcp", "web")).raw, (await dig(client, "web")).raw);
  console.log((await client.enter("nft", ["list", "table", "ip", "dns11"])).stdout);
  console.log(instance.log);
});
