// What recording connections costs: processor time of what passes a container's veth and a bridge, with the rules and without, in
// turn; and processor time per query where dns11 notes the names of addresses.

import { closeSync, openSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { ownSlice } from "../../../src/base/lib/slices.ts";
import { NamespaceRunner } from "../../../src/container/namespace/namespace-runner.ts";
import { Recorder } from "../../../src/features/egress/recorder.ts";
import { NetlinkMemory } from "../../../src/kernel/netlink-socket.ts";
import { atFullSpeed } from "../../bench/dnsperf.ts";
import type { FeaturePart } from "../../bench/feature-parts.ts";
import { type Row, median, readable, spreadOf } from "../../bench/figures.ts";
import type { Pace } from "../../bench/pace.ts";
import { vethRows } from "../../bench/veth-load.ts";
import { createNetwork, runContainer } from "../../support/engine/container.ts";
import { startEngine } from "../../support/engine/engine.ts";
import { check } from "../../support/program/command.ts";
import { startDns11 } from "../../support/program/dns11.ts";
import { Netns } from "../../support/rig/netns.ts";
import { startUpstream } from "../../support/servers/upstream.ts";

const ID = "bench";
const [HOST, CONTAINER] = ["10.9.0.1", "10.9.0.2"];

export const parts: readonly FeaturePart[] = [
  [
    "egress",
    "Recording where containers connect to",
    async (pace) => [...(await throughVeth(pace)), ...(await perQuery(pace))],
  ],
];

async function throughVeth(pace: Pace): Promise<Row[]> {
  await using host = await Netns.create();
  await using container = await Netns.create();
  await connectNamespaces(host, container);
  const runner = new NamespaceRunner();
  const fd = openSync(host.netnsPath, "r");
  const netns = runner.namespaceOf(fd, new NetlinkMemory());
  const index = Number(/^(\d+):/.exec(await check("ip", ["-n", host.name, "-o", "link", "show", "port"]))?.[1]);
  const record = async (): Promise<() => Promise<void>> => {
    const recorder = await Recorder.open(netns);
    recorder.record(ID, [{ index, name: "port" }]);
    await recorder.settled();
    const failure = recorder.failureOf(ID);
    if (failure !== undefined) throw new Error(failure);
    return async () => {
      const reading = recorder.read(ID);
      let step = reading.next();
      for (; step.done !== true; step = reading.next()) await ownSlice();
      if (step.value.recorded.length === 0) throw new Error("nothing was recorded");
      recorder.close();
    };
  };
  try {
    return await vethRows(
      { server: host, address: HOST, client: container, states: { recorded: record }, isBar: true },
      pace,
    );
  } finally {
    closeSync(fd);
    runner.close();
  }
}

// As Docker does: the host's end of the veth is a port of a bridge, which has the host's address.
async function connectNamespaces(host: Netns, container: Netns): Promise<void> {
  const onHost = async (...args: string[]): Promise<string> => await check("ip", ["-n", host.name, ...args]);
  const inside = async (...args: string[]): Promise<string> => await check("ip", ["-n", container.name, ...args]);
  await onHost("link", "add", "bridge", "type", "bridge");
  await onHost("link", "add", "port", "type", "veth", "peer", "name", "eth0", "netns", container.name);
  await onHost("link", "set", "port", "master", "bridge");
  await onHost("address", "add", `${HOST}/24`, "dev", "bridge");
  await inside("address", "add", `${CONTAINER}/24`, "dev", "eth0");
  for (const link of ["bridge", "port"]) await onHost("link", "set", link, "up");
  await inside("link", "set", "eth0", "up");
}

// Processor time of dns11 for the same queries, while it notes what it answers and while it does not.
async function perQuery(pace: Pace): Promise<Row[]> {
  await using engine = await startEngine();
  await using _upstream = await startUpstream(engine);
  await createNetwork(engine, "n1");
  const app = await runContainer(engine, { name: "app", networks: ["n1"] });
  await runContainer(engine, { name: "web", networks: ["n1"] });
  const config = join(engine.folder, "egress.yaml");
  writeFileSync(config, "version: 1\n");
  await using instance = await startDns11(engine, {
    args: ["--config", config],
    settings: { keeper: "off" },
    env: { DNS11_ANSWERS: "process" },
  });
  const rows: Row[] = [];
  for (const [what, query] of [
    ["a query for a container name", "web A"],
    ["a query that is answered from the cache", "a7.ok.test A"],
  ] as const) {
    const file = join(engine.folder, "egress-queries");
    writeFileSync(file, `${query}\n`);
    const micros = async (seconds: number): Promise<number> =>
      (await atFullSpeed(app, { file, rcode: "NOERROR" }, instance.pid, seconds)).cpuMicros ?? Number.NaN;
    await micros(pace.warmSeconds + pace.startSeconds);
    const ratios: number[] = [];
    const all: Record<"off" | "on", number[]> = { off: [], on: [] };
    for (let round = 0; round < pace.rounds; round++) {
      const sums = { off: 0, on: 0 };
      for (const which of ["off", "on", "on", "off"] as const) {
        writeFileSync(config, `version: 1\negress: ${which === "on"}\n`);
        await instance.reload();
        sums[which] += (await micros(pace.seconds / 2)) / 2;
      }
      ratios.push(sums.on / sums.off);
      for (const which of ["off", "on"] as const) all[which].push(sums[which]);
    }
    const [off, on] = [median(all.off), median(all.on)].map((each) => each.toFixed(2));
    rows.push({ what, measured: `${readable(spreadOf(ratios), 2)} x: ${on} us, ${off} us while egress is off` });
  }
  return rows;
}
