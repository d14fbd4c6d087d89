/**
 * Names of a cluster by its own DNS: containers and the machine ask from inside a node, where the addresses of the cluster exist. The
 * node's DNS server is dnsmasq, at the address that the kubelet's settings name.
 */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { dataOf, dig } from "../../support/client/dig.ts";
import { type Container, createNetwork, runContainer } from "../../support/engine/container.ts";
import { stdoutOf } from "../../support/program/command.ts";
import { dns11 } from "../../support/program/dns11.ts";
import { type KindEnvironment, startKindEnvironment } from "../../support/kind/kind-environment.ts";
import type { KindNode } from "../../support/kind/kind-node.ts";
import { type RealServer, startDnsmasq } from "../../support/servers/real-server.ts";
import { waitFor } from "../../support/rig/wait.ts";

const DNS = "10.96.0.10";
const WEB = "10.96.44.5";
const NAME = "web.default.svc.cluster.local";
const KUBELET = `cgroupDriver: systemd\nclusterDNS:\n- ${DNS}\nclusterDomain: cluster.local\n`;
const API_SERVER =
  "spec:\n  containers:\n  - command:\n    - kube-apiserver\n    - --service-cluster-ip-range=10.96.0.0/16\n";
const ROUTE = "dns: [host, /cluster.local/node:control]";

let world: KindEnvironment;
let node: KindNode;
let server: RealServer;
let app: Container;
let inner: Container;

before(async () => {
  world = await startKindEnvironment({ hasControlGroup: true });
  node = await world.node("control", { role: "control-plane" });
  server = await startDnsmasq(node.container, {
    address: DNS,
    lines: ["no-resolv", "no-hosts", `address=/${NAME}/${WEB}`, "local=/cluster.local/"],
  });
  await createNetwork(world.engine, "shop");
  await createNetwork(world.engine, "dark", { internal: true });
  app = await runContainer(world.engine, { name: "app", networks: ["shop"] });
  inner = await runContainer(world.engine, { name: "inner", networks: ["dark"] });
});
after(async () => {
  await server[Symbol.asyncDispose]();
  await node[Symbol.asyncDispose]();
  await world[Symbol.asyncDispose]();
});

async function write(path: string, text: string): Promise<void> {
  const folder = path.slice(0, path.lastIndexOf("/"));
  await node.container.exec("sh", [
    "-c",
    `mkdir -p ${folder} && printf '%b' '${text.replaceAll("\n", "\\n")}' > ${path}`,
  ]);
}

test("a container asks from inside the node, as soon as its kubelet has settings", async () => {
  const instance = await world.sharedWith("", ROUTE);
  const early = await dig(app, NAME);
  assert.equal(early.status, "SERVFAIL", "the node has no settings yet, and the name goes nowhere else");
  const place = ["--state-dir", instance.stateDir];
  const why = stdoutOf(await dns11(["explain", NAME, "--in", "app", "-v", ...place]), "explain");
  assert.match(why.replaceAll(/\s+/g, " "), /node:control is not queried: container "control" has no clusterDNS/);
  await write("/var/lib/kubelet/config.yaml", KUBELET);
  for (const transport of ["+notcp", "+tcp"])
    await waitFor(
      `the name, ${transport}`,
      async () => dataOf(await dig(app, NAME, transport)).join() === WEB || undefined,
    );
  assert.equal((await dig(app, "nothing.default.svc.cluster.local")).status, "NXDOMAIN");
  const seen = (await world.upstream.queries()).filter(({ name }) => name.endsWith("cluster.local"));
  assert.deepEqual(seen, [], "none of it goes to the servers of the host");
  assert.match(stdoutOf(await dns11(["upstreams", ...place]), "upstreams"), /node:control\(10\.96\.0\.10\)/);
  assert.equal(
    (await dig(inner, NAME)).status,
    "SERVFAIL",
    "a container without a way outside has none through a node",
  );
});

test("the machine asks it, too, with host-names", async () => {
  await write("/var/lib/kubelet/config.yaml", KUBELET);
  const instance = await world.sharedWith("", ROUTE, "host-names: capture");
  await instance.waitFor("host", "attached");
  await waitFor("the name on the host", async () => {
    const found = await dig(world.engine, "@10.53.0.1", NAME);
    return dataOf(found).join() === WEB || undefined;
  });
});

test("kind doctor says that Services are not reachable, with the command that makes them so", async () => {
  await write("/etc/kubernetes/manifests/kube-apiserver.yaml", API_SERVER);
  const doctor = async (): Promise<string> => {
    const { stdout } = await dns11(["kind", "doctor", "-H", world.engine.host, "control"]);
    return stdout.replaceAll(/\s+/g, " ");
  };
  const address = node.container.address("kind");
  assert.match(await doctor(), /no route to 10\.96\.0\.0\/16: names of Services lead to addresses/);
  const [, command = ""] = /sudo (ip route add 10\.96\.0\.0\/16 via [\d.]+)/.exec(await doctor()) ?? [];
  assert.equal(command, `ip route add 10.96.0.0/16 via ${address}`);
  const [program = "", ...args] = command.split(" ");
  await world.engine.enter(program, args);
  assert.match(await doctor(), /10\.96\.0\.0\/16 has a route/);
  // The address of the cluster's DNS is one of the node's own here, so the machine now reaches it.
  assert.deepEqual(dataOf(await dig(world.engine, `@${DNS}`, NAME)), [WEB]);
});

test("a node that has started again is asked again, and one that has gone is not", async () => {
  await write("/var/lib/kubelet/config.yaml", KUBELET);
  await world.sharedWith("", ROUTE);
  await node.container.stop();
  await waitFor(
    "no answer",
    async () => (await dig(app, "gone.default.svc.cluster.local")).status === "SERVFAIL" || undefined,
  );
  await server[Symbol.asyncDispose]();
  await node.container.start();
  server = await startDnsmasq(node.container, {
    address: DNS,
    lines: ["no-resolv", "no-hosts", `address=/cluster.local/${WEB}`],
  });
  await waitFor(
    "the name",
    async () => dataOf(await dig(app, "again.default.svc.cluster.local")).join() === WEB || undefined,
  );
});

test("a node is a server for a domain only, and not in labels", async () => {
  const settings = async (dns: string): Promise<string> =>
    (await dns11(["run", "--dry-run", "-H", world.engine.host], { env: { DNS11_DNS: dns } })).stderr;
  assert.match(
    await settings("node:control"),
    /a node is asked for the domain of its cluster only: \/cluster\.local\/node:NAME/,
  );
  assert.match(await settings("//node:control"), /a node is asked for the domain of its cluster only/);
  assert.match(await settings("/cluster.local/node:10.0.0.1"), /invalid node "node:10\.0\.0\.1"/);
  const labels = { "io.dns11.dns": "/cluster.local/node:control" };
  await using labelled = await runContainer(world.engine, { name: "labelled", networks: ["shop"], labels });
  await world.sharedWith("");
  assert.deepEqual(dataOf(await dig(labelled, NAME)), [], "its label is not followed");
});
