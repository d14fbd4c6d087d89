// Policies that enforce addresses, on a live engine. The meter is what arrives outside, never dns11's own word.

import "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";

import { dataOf, dig } from "../support/client/dig.ts";
import { type Container, createNetwork, runContainer } from "../support/engine/container.ts";
import { type Engine, startEngine } from "../support/engine/engine.ts";
import { type Dns11, startDns11 } from "../support/program/dns11.ts";
import { type Upstream, startUpstream } from "../support/servers/upstream.ts";

let engine: Engine;
let upstream: Upstream;
let instance: Dns11;
let agent: Container;
let free: Container;
const folder = mkdtempSync(join(tmpdir(), "d11-policy-addresses-"));
const file = join(folder, "dns11.yaml");

before(async () => {
  writeFileSync(file, `version: 1
policies:
  agents:
    for: [network=agents]
    mode: enforce
    addresses: enforce
    allow: ["exact.ok.test:443", "**.wild.ok.test"]
`);
  engine = await startEngine();
  upstream = await startUpstream(engine);
  for (const network of ["agents", "open"]) await createNetwork(engine, network);
  agent = await runContainer(engine, { name: "agent", networks: ["agents"] });
  free = await runContainer(engine, { name: "free", networks: ["open"] });
  instance = await startDns11(engine, { args: ["--config", file] });
});
after(async () => {
  rmSync(folder, { recursive: true });
  await instance[Symbol.asyncDispose]();
  await upstream[Symbol.asyncDispose]();
  await engine[Symbol.asyncDispose]();
});

test("x", async () => {
  console.log((await engine.enter("nft", ["list", "ruleset"])).stdout.split("\n").filter((l) => !/DOCKER/.test(l)).join("\n").slice(0, 9000));
  const r = await dig(agent, "exact.ok.test");
  console.log(r.raw);
  console.log(dataOf(await dig(free, "exact.ok.test")));
  console.log((await engine.enter("nft", ["list", "table", "inet", "dns11-policy"])).stdout);
});
