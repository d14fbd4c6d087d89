// Proves the list of containers and networks: running and stopped ones, with names, addresses and why they are not served; one by
// name with its resolv.conf; of a project; bounded.

import assert from "node:assert/strict";
import { test } from "node:test";

import type { ContainersReport } from "../../../src/api/containers.ts";
import { LIMITS } from "../../../src/base/limits.ts";
import { splitLabels } from "../../../src/container/facts/labels.ts";
import type { StoppedContainer } from "../../../src/control/causes/known-container.ts";
import { listContainers, listNetworks } from "../../../src/control/reports/list-containers.ts";
import type { ControlPorts } from "../../../src/control/situation/ports.ts";
import { aContainer, aNetworkFact } from "../../support/scripted/builders.ts";
import { composed, portsOf } from "../support/control-ports.ts";

const WEB = composed("shop", "web", "a", 2);
const DB = composed("shop", "db", "ab", 3);
const BARE = aContainer({
  id: "b".repeat(64),
  name: "bare",
  endpoints: [],
  onDefaultBridge: { names: [], links: [], ipv4: "172.17.0.2", ipv6: undefined },
});
const GONE: StoppedContainer = {
  id: "f".repeat(64),
  name: "shop-cron-1",
  ...splitLabels({ "com.docker.compose.project": "shop", "com.docker.compose.service": "cron" }, {}),
  networks: [
    { name: "a", aliases: ["Nightly"] },
    { name: "bridge", aliases: [] },
  ],
  state: "exited",
  exitCode: 3,
  atMs: 0,
};

function servedPorts(facts = [WEB, DB, BARE]): ControlPorts {
  const ports = portsOf(facts, [GONE]);
  Object.assign(ports.containers, {
    decisionOf: (id: string) =>
      id === BARE.id ? { kind: "skip", code: "default-bridge", reason: "no names" } : { kind: "serve" },
    attachmentOf: () => undefined,
    networks: async () =>
      await Promise.resolve([
        { ...aNetworkFact({ id: "b", name: "b", isInternal: true, project: "shop" }), subnets: [] },
        { ...aNetworkFact({ id: "a", name: "a" }), subnets: [{ subnet: "10.0.0.0/24", gateway: undefined }] },
        { ...aNetworkFact({ id: "br", name: "bridge" }), subnets: [] },
      ]),
  });
  const inside = { resolvConfOf: () => ({ nameservers: ["127.0.0.11"], search: ["lan"], options: ["ndots:0"] }) };
  return { ...ports, inside } as unknown as ControlPorts;
}

async function listed(parameters: string, ports = servedPorts()): Promise<ContainersReport> {
  return await listContainers(ports, { query: new URLSearchParams(parameters) });
}

function names({ containers }: ContainersReport): string[] {
  return containers.map(({ name, state }) => `${name} ${state}`);
}

test("running containers, and with all also stopped ones, of one project or of all", async () => {
  assert.deepEqual(names(await listed("")), ["bare running", "shop-db-1 running", "shop-web-1 running"]);
  assert.deepEqual(names(await listed("all=true&project=shop")), [
    "shop-cron-1 exited",
    "shop-db-1 running",
    "shop-web-1 running",
  ]);
  assert.deepEqual(names(await listed("all=true&project=shop&service=cron")), ["shop-cron-1 exited"]);
  await assert.rejects(listed("all=yes"), { code: "BAD_QUERY" });
});

test("a container has its names and addresses on each network, and why it is not served", async () => {
  const { containers } = await listed("all=true");
  const [bare, gone, db] = containers;
  assert.deepEqual([bare?.dns, bare?.code, bare?.reason], ["skipped", "default-bridge", "no names"]);
  assert.deepEqual(bare?.networks, [{ network: "bridge", hasNames: false, names: [], ipv4: "172.17.0.2", ipv6: null }]);
  assert.deepEqual(db?.networks[1], {
    network: "b",
    hasNames: true,
    names: ["shop-db-1", "db"],
    ipv4: "10.1.0.3",
    ipv6: null,
  });
  assert.deepEqual([db?.dns, db?.code, db?.resolvConf], ["opening", null, undefined]);
  assert.deepEqual([gone?.dns, gone?.exitCode, gone?.since], [null, 3, new Date(0).toISOString()]);
  assert.deepEqual(
    gone?.networks.map((each) => [each.network, each.names.join("+")]),
    [
      ["a", "shop-cron-1+cron+nightly"],
      ["bridge", ""],
    ],
  );
});

test("one container, by name, service or ID, has its resolv.conf; a stopped one has none", async () => {
  for (const word of ["shop-db-1", "db", DB.id]) {
    const { containers } = await listed(`container=${word}`);
    assert.deepEqual(containers[0]?.resolvConf, { servers: ["127.0.0.11"], search: ["lan"], options: ["ndots:0"] });
  }
  const [stopped] = (await listed("container=shop-cron-1")).containers;
  assert.deepEqual([stopped?.state, stopped?.resolvConf], ["exited", undefined]);
  await assert.rejects(listed("container=nothing"), { code: "NO_SUCH_CONTAINER" });
});

test("the list is bounded, and the rest is counted", async () => {
  const many = Array.from({ length: LIMITS.containersListed + 2 }, (_, at) => composed("p", `s${at}`, "a", at % 250));
  const { containers, omitted } = await listed("", servedPorts(many));
  assert.deepEqual([containers.length, omitted], [LIMITS.containersListed, 2]);
});

test("networks are listed with their running members, also those without any", async () => {
  const { networks, omitted } = await listNetworks(servedPorts(), { query: new URLSearchParams() });
  assert.equal(omitted, 0);
  assert.deepEqual(
    networks.map(({ name, hasNames, isInternal, members }) => [
      name,
      hasNames,
      isInternal,
      members.map(({ container, ipv4 }) => `${container} ${ipv4}`).join(", "),
    ]),
    [
      ["a", true, false, "shop-db-1 10.0.0.3, shop-web-1 10.0.0.2"],
      ["b", true, true, "shop-db-1 10.1.0.3"],
      ["bridge", false, false, "bare 172.17.0.2"],
    ],
  );
  assert.deepEqual(networks[0]?.subnets, [{ subnet: "10.0.0.0/24", gateway: null }]);
  const { networks: own } = await listNetworks(servedPorts(), { query: new URLSearchParams("project=shop") });
  assert.deepEqual(
    own.map(({ name }) => name),
    ["b"],
  );
});

test("a container in the namespace of another one names it, also where the engine knows it by its ID", async () => {
  const sidecar = aContainer({
    id: "c".repeat(64),
    name: "sidecar",
    endpoints: [],
    networkMode: `container:${WEB.id}`,
  });
  const orphan = aContainer({ id: "d".repeat(64), name: "orphan", endpoints: [], networkMode: "container:gone" });
  const ports = servedPorts([WEB, sidecar, orphan]);
  const reason = "it shares the network namespace of container gone and is served exactly if that one is";
  Object.assign(ports.containers, {
    decisionOf: (id: string) =>
      id === WEB.id ? { kind: "serve" } : { kind: "skip", code: "shares-namespace", reason },
  });
  const { containers } = await listed("", ports);
  const found = ["orphan", "sidecar"].map((name) => containers.find((each) => each.name === name));
  assert.deepEqual(
    found.map((each) => [each?.sharesWith, each?.reason]),
    [
      [undefined, reason],
      [WEB.name, reason.replace("gone", WEB.name)],
    ],
  );
});
