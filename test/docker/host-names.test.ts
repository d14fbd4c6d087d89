/**
 * Container names on the host: programs there resolve them below a domain, whatever their resolver, and everything else
 * reaches the servers of resolv.conf as if dns11 did not exist.
 */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { createNetwork, runContainer } from "../support/engine/container.ts";
import { giveControlGroup } from "../support/engine/control-group.ts";
import { type Engine, startEngine } from "../support/engine/engine.ts";
import { dataOf, dig } from "../support/client/dig.ts";
import { type Dns11, startDns11 } from "../support/program/dns11.ts";
import { type Upstream, startUpstream } from "../support/servers/upstream.ts";

const SERVER = "10.53.0.1";

let engine: Engine;
let upstream: Upstream;

before(async () => {
  engine = await startEngine({ resolvConf: `nameserver ${SERVER}\n` });
  giveControlGroup(engine);
  upstream = await startUpstream(engine, { address: SERVER });
  await createNetwork(engine, "shop_default", { ipv6: true });
});
after(async () => {
  await upstream[Symbol.asyncDispose]();
  await engine[Symbol.asyncDispose]();
});

async function startWithHost(...args: string[]): Promise<Dns11> {
  const dns11 = await startDns11(engine, { args: ["--host-names", ...args] });
  await dns11.waitFor("host", "attached");
  return dns11;
}

async function onHost(name: string, ...args: string[]): Promise<string[]> {
  return dataOf(await dig(engine, `@${SERVER}`, ...args, name));
}

test("names of containers resolve on the host", async () => {
  const web = await runContainer(engine, { name: "web", networks: ["shop_default"] });
  await using dns11 = await startWithHost();
  console.log(await onHost("web.docker"), await onHost("a.ok.test"));
  console.log((await engine.enter("nft", ["list", "ruleset"])).stdout.slice(0, 3000));
  assert.ok(web);
  assert.ok(dns11);
});
