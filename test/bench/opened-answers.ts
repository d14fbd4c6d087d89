// How long a container with an enforced policy waits for an answer whose addresses are open when it arrives: 30 queries a second, each for
// a new name with a new address, as the performance test of Cilium's DNS policies asks. Beside it the same queries without a policy.

import { type Socket, createSocket } from "node:dgram";
import { closeSync, openSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { performance } from "node:perf_hooks";
import { setTimeout as sleep } from "node:timers/promises";

import { queryOf } from "../../src/base/dns/query.ts";
import { socketAddress } from "../../src/base/model/address.ts";
import { labelsOf } from "../../src/base/model/name-query.ts";
import { NamespaceRunner } from "../../src/container/namespace/namespace-runner.ts";
import { AF_INET, SOCK_DGRAM, bindTo, socket } from "../../src/kernel/libc.ts";
import { dataOf, dig } from "../support/client/dig.ts";
import { createNetwork, runContainer } from "../support/engine/container.ts";
import { startEngine } from "../support/engine/engine.ts";
import { startDns11 } from "../support/program/dns11.ts";
import { Internet, connectTo } from "../support/rig/internet.ts";
import { waitFor } from "../support/rig/wait.ts";
import { startUpstream } from "../support/servers/upstream.ts";
import { type Row, quantile } from "./figures.ts";

const QUERIES_PER_SECOND = 30;
const WAIT_MS = 5_000;
const TYPE_A = 1;
const RESOLVER = "127.0.0.11";
const DNS_PORT = 53;
const HEAD = "version: 1\nkeeper: off\n";
const POLICY = `policies:
  app: {for: [network=n1], mode: enforce, addresses: enforce, new-names-per-minute: 10000, allow: ["**.at.test"]}
`;

// A UDP socket of the container's namespace.
async function clientIn(within: <T>(work: () => T) => T): Promise<Socket> {
  const fd = within(() => {
    const made = socket(AF_INET, SOCK_DGRAM);
    bindTo(made, socketAddress(Uint8Array.of(127, 0, 0, 1), 0), "the client");
    return made;
  });
  const client = createSocket("udp4").setMaxListeners(0);
  await new Promise<void>((resolve) => client.bind({ fd }, resolve));
  return client;
}

export async function benchOpenedAnswers(seconds: number): Promise<Row[]> {
  await using engine = await startEngine({ suite: "bookworm" });
  await using _internet = await Internet.connect(engine.id);
  await using _upstream = await startUpstream(engine);
  await createNetwork(engine, "n1");
  const app = await runContainer(engine, { name: "app", networks: ["n1"] });
  const settings = join(engine.folder, "opened.yaml");
  writeFileSync(settings, HEAD);
  await using instance = await startDns11(engine, { args: ["--config", settings] });
  const runner = new NamespaceRunner();
  const fd = openSync(app.netnsPath, "r");
  const client = await clientIn(<T>(work: () => T): T => runner.within(fd, work));
  let asked = 0;
  const ask = async (): Promise<number> => {
    const number = ++asked;
    const address = Buffer.of(20, number >> 16, (number >> 8) & 0xff, number & 0xff);
    const query = queryOf({ labels: labelsOf(`${address.join("-")}.at.test`), type: TYPE_A, id: number });
    const start = performance.now();
    const reply = await new Promise<Buffer>((resolve, reject) => {
      const onReply = (received: Buffer): void => {
        if (received.readUInt16BE(0) !== number) return;
        client.off("message", onReply);
        resolve(received);
      };
      client.on("message", onReply);
      client.send(query, DNS_PORT, RESOLVER);
      setTimeout(() => reject(new Error(`no answer with ${address.join(".")}`)), WAIT_MS).unref();
    });
    const tookMs = performance.now() - start;
    if (!reply.includes(address)) throw new Error(`an answer without ${address.join(".")}`);
    return tookMs;
  };
  const measured = async (): Promise<string> => {
    const pending: Promise<number>[] = [];
    for (let each = 0; each < seconds * QUERIES_PER_SECOND; each++) {
      pending.push(ask());
      await sleep(1_000 / QUERIES_PER_SECOND);
    }
    const took = await Promise.all(pending);
    return [0.5, 0.99].map((q) => quantile(took, q).toFixed(2)).join(" and ") + " ms";
  };
  try {
    const without = await measured();
    writeFileSync(settings, HEAD + POLICY);
    await instance.reload();
    await waitFor("the policy", async () =>
      (await connectTo(app, "192.0.2.9", 443)) === "refused" ? true : undefined,
    );
    const held = await measured();
    if (dataOf(await dig(app, "192-0-2-9.at.test"))[0] !== "192.0.2.9") throw new Error("the name has no answer");
    if ((await connectTo(app, "192.0.2.9", 443)) !== "open") throw new Error("an answered address is not open");
    return [
      {
        what: `${QUERIES_PER_SECOND} queries a second, each for new addresses: until the answer, which are open then, p50 and p99`,
        measured: held,
      },
      { what: "the same without a policy", measured: without },
    ];
  } finally {
    client.close();
    closeSync(fd);
    runner.close();
  }
}
