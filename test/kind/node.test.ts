/**
 * A KIND node on a real engine: its pods resolve through the address that its resolv.conf names, the node itself also at
 * 127.0.0.11, and everything is put back.
 */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { type Container, createNetwork, runContainer } from "../support/container.ts";
import { dataOf, dig } from "../support/dig.ts";
import { startDns11 } from "../support/dns11.ts";
import { type Engine, startEngine } from "../support/engine.ts";
import { runKindNode } from "../support/kind-node.ts";
import { startPod } from "../support/pod.ts";
import { type Upstream, startUpstream } from "../support/upstream.ts";

const NETWORK = "kind";
const GATEWAY = "10.77.0.1";
const UPSTREAM = "10.53.0.1";
const KIND = ["--kind", "auto"];

let engine: Engine;
let upstream: Upstream;
let web: Container;

before(async () => {
  engine = await startEngine({ resolvConf: `nameserver ${UPSTREAM}\n` });
  upstream = await startUpstream(engine, { address: UPSTREAM });
  await createNetwork(engine, NETWORK, { subnet: "10.77.0.0/24", args: ["--gateway", GATEWAY] });
  web = await runContainer(engine, { name: "web", networks: [NETWORK] });
});
after(async () => {
  await upstream[Symbol.asyncDispose]();
  await engine[Symbol.asyncDispose]();
});

test("without KIND's own rewrite, node and pods resolve through the gateway's address, and 127.0.0.11 goes on", async () => {
  await using node = await runKindNode(engine, { name: "bare", networks: [NETWORK], entrypoint: "none" });
  const untouched = await node.resolvConf();
  const instance = await startDns11(engine, { args: KIND });
  await using _ = instance;
  const status = await instance.container("bare");
  assert.deepEqual(status?.node?.published, [GATEWAY], JSON.stringify(status) + instance.log);
  assert.match(await node.resolvConf(), /^nameserver 10\.77\.0\.1$/m);
  await using ptp = await startPod(node);
  await using bridged = await startPod(node, { cni: "bridge", bridgeNfCall: 1 });
  assert.deepEqual(ptp.nameservers, [GATEWAY]);
  for (const transport of ["+notcp", "+tcp"]) {
    for (const place of [node, ptp, bridged]) {
      assert.deepEqual(dataOf(await dig(place, `@${GATEWAY}`, "web", transport)), [web.address(NETWORK)]);
    }
    assert.deepEqual(dataOf(await dig(node, "@127.0.0.11", "web", transport)), [web.address(NETWORK)]);
  }
  assert.equal(await instance.stop(), 0);
  assert.equal(await node.resolvConf(), untouched);
});
