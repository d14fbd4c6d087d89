/**
 * The links of containers on the host of a real Docker daemon: compared with what `ip` shows there, followed while networks
 * come and go, and not misled by a container that has NET_ADMIN.
 */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { LIMITS } from "../../src/base/limits.ts";
import type { ContainerLink } from "../../src/container/links/container-link.ts";
import { ContainerLinks } from "../../src/container/links/container-links.ts";
import type { ContainerFact, NetworkFact } from "../../src/container/facts/fact.ts";
import { closeEngineHost, openEngineHost, socketPeerPid } from "../../src/container/namespace/engine-host.ts";
import { NamespaceRunner } from "../../src/container/namespace/namespace-runner.ts";
import { proveNamespace } from "../../src/container/namespace/proof.ts";
import type { ContainerJson, NetworkJson } from "../../src/container/watch/engine-json.ts";
import { containerFact, networkFact } from "../../src/container/watch/translate.ts";
import { NetlinkMemory } from "../../src/kernel/netlink-socket.ts";
import { type Container, createNetwork, runContainer } from "../support/engine/container.ts";
import { type Engine, startEngine } from "../support/engine/engine.ts";
import { waitFor } from "../support/rig/wait.ts";

interface IpLink {
  readonly ifindex: number;
  readonly ifname: string;
  readonly address: string;
  readonly link_index?: number;
  readonly addr_info: readonly { readonly family: string; readonly local: string }[];
}

let engine: Engine;
let followed: Followed;

/** ContainerLinks of the engine, given facts as the engine reports them. */
class Followed implements Disposable {
  readonly runner = new NamespaceRunner();
  readonly networks = new Map<string, NetworkFact>();
  readonly links: ContainerLinks;
  readonly changes: string[] = [];
  readonly #host = openEngineHost(socketPeerPid(engine.socketPath));

  constructor() {
    this.links = new ContainerLinks({
      runner: this.runner,
      memory: new NetlinkMemory(),
      host: () => this.#host,
      prove: (claim) => proveNamespace(claim, this.#host, this.runner.homeId),
      networkOf: (id) => this.networks.get(id),
    });
    this.links.onChange((id) => this.changes.push(id));
  }

  async put(container: Container): Promise<ContainerFact> {
    const json = (await engine.api(`/containers/${container.id}/json`)) as ContainerJson;
    const files = { nameservers: { kind: "unknown" }, extraHosts: [] } as const;
    const fact = containerFact(json, files);
    for (const { networkId } of fact.endpoints) {
      if (this.networks.has(networkId)) continue;
      this.networks.set(networkId, networkFact((await engine.api(`/networks/${networkId}`)) as NetworkJson));
    }
    this.links.put(fact);
    await this.links.settled();
    return fact;
  }

  /** Its links once there are so many. */
  async has({ id }: Container, count: number): Promise<readonly ContainerLink[]> {
    return await waitFor(`${count} links`, () => {
      const { links } = this.links.of(id);
      return links.length === count ? links : undefined;
    });
  }

  reasonsOf({ id }: Container): readonly string[] {
    return this.links.of(id).missing.map(({ reason }) => reason);
  }

  [Symbol.dispose](): void {
    this.links.close();
    closeEngineHost(this.#host);
    this.runner.close();
  }
}

before(async () => {
  engine = await startEngine();
  await createNetwork(engine, "front", { ipv6: true });
  await createNetwork(engine, "back");
  followed = new Followed();
  await followed.links.start([]);
});
after(async () => {
  followed[Symbol.dispose]();
  await engine[Symbol.asyncDispose]();
});

async function ipLinks(container?: Container): Promise<readonly IpLink[]> {
  const args = ["-json", "address", "show"];
  const { code, stdout, stderr } = await (container ?? engine).enter("ip", args);
  assert.equal(code, 0, stderr);
  return JSON.parse(stdout) as IpLink[];
}

test("each network is a link that ip shows on the host, with the addresses inside", async () => {
  const web = await runContainer(engine, { name: "web", networks: ["front", "back"] });
  await followed.put(web);
  const links = await followed.has(web, 2);
  const [onHost, inside] = [await ipLinks(), await ipLinks(web)];
  for (const link of links) {
    const host = onHost.find(({ ifindex }) => ifindex === link.index);
    const own = inside.find(({ ifindex }) => ifindex === link.insideIndex);
    assert.equal(host?.ifname, link.name);
    assert.equal(host?.link_index, link.insideIndex);
    assert.deepEqual([own?.ifname, own?.address, own?.link_index], [link.inside, link.mac, link.index]);
    const shown = own?.addr_info.map(({ local }) => local) ?? [];
    // The kernel gives a link-local address where IPv6 is on; Docker switches it off on networks without.
    assert.deepEqual(link.addresses.filter((address) => shown.includes(address)).toSorted(), shown.toSorted());
    assert.equal(followed.links.byIndex(link.index), link);
  }
  const names = links.map(({ networkId }) => followed.networks.get(networkId ?? "")?.name);
  assert.deepEqual(new Set(names), new Set(["back", "front"]));
  assert.deepEqual(followed.reasonsOf(web), []);
  await web.remove();
  followed.links.remove(web.id);
});

test("networks that are connected and disconnected, and the end, are followed", async () => {
  const mover = await runContainer(engine, { name: "mover", networks: ["front"] });
  await followed.put(mover);
  const [first] = await followed.has(mover, 1);
  assert.ok(first);
  await engine.docker("network", "connect", "back", mover.id);
  await followed.put(mover);
  await followed.has(mover, 2);
  await engine.docker("network", "disconnect", "front", mover.id);
  // The kernel reports that the link is gone; nobody puts the container again.
  const [rest] = await followed.has(mover, 1);
  assert.equal(followed.networks.get(rest?.networkId ?? "")?.name, "back");
  assert.equal(followed.links.byIndex(first.index), undefined);
  await mover.remove();
  await followed.has(mover, 0);
  followed.links.remove(mover.id);
  assert.equal(followed.links.byIndex(rest?.index ?? 0), undefined);
  assert.ok(followed.changes.filter((id) => id === mover.id).length >= 3);
});

test("a link with an index that was another container's before is not taken for that one's", async () => {
  const [one, two] = await Promise.all(
    ["one", "two"].map(async (name) => await runContainer(engine, { name, networks: ["front"] })),
  );
  assert.ok(one && two);
  await followed.put(one);
  await followed.put(two);
  const [link] = await followed.has(one, 1);
  assert.ok(link);
  const { Pid: pid } = (await two.inspect()).State;
  const step = async (...args: string[]): Promise<void> => {
    const { code, stderr } = await engine.enter("ip", args);
    assert.equal(code, 0, stderr);
  };
  await step("link", "del", link.name);
  const peer = ["peer", "name", "eth9", "netns", String(pid)];
  await step("link", "add", "again", "index", String(link.index), "type", "veth", ...peer);
  const links = await followed.has(two, 2);
  await followed.has(one, 0);
  assert.equal(followed.links.byIndex(link.index)?.containerId, two.id);
  assert.equal(links.find(({ index }) => index === link.index)?.networkId, undefined, "Docker did not make it");
  assert.deepEqual(followed.reasonsOf(one), ["not-found"]);
  for (const each of [one, two]) {
    await each.remove();
    followed.links.remove(each.id);
  }
});

test("a bridge that gets another address is followed", async () => {
  await createNetwork(engine, "moving");
  const app = await runContainer(engine, { name: "moving-app", networks: ["moving"] });
  await followed.put(app);
  const [{ bridge = assert.fail(), bridgeMac } = assert.fail()] = await followed.has(app, 1);
  // As the kernel does where nobody has given it one, when a port with a lower one comes.
  const mac = "02:00:00:00:00:01";
  assert.equal((await engine.enter("ip", ["link", "set", bridge, "address", mac])).code, 0);
  await waitFor("its address", () => {
    const [link] = followed.links.of(app.id).links;
    return Buffer.from(link?.bridgeMac ?? []).toString("hex") === mac.replaceAll(":", "") ? true : undefined;
  });
  assert.notDeepEqual(bridgeMac, followed.links.of(app.id).links[0]?.bridgeMac);
  await app.remove();
});

test("a container that has NET_ADMIN changes nothing but the name of its own end", async () => {
  const liar = await runContainer(engine, { name: "liar", networks: ["front"], args: ["--cap-add=NET_ADMIN"] });
  await followed.put(liar);
  const [honest] = await followed.has(liar, 1);
  const script = `
    ip link set eth0 down
    ip link set eth0 address 02:00:00:00:00:01 name host0
    ip address flush dev host0
    ip address add 10.99.0.1/24 dev host0
    ip link set host0 up
    ip link add own0 type veth peer name own1
    ip link add ${honest?.name ?? ""} type dummy || ip link add ${honest?.name ?? ""} type veth peer name own2`;
  const { code, stderr } = await liar.enter("sh", ["-ec", script]);
  assert.equal(code, 0, stderr);
  await followed.put(liar);
  assert.deepEqual(followed.links.of(liar.id).links, [{ ...honest, inside: "host0" }]);
  await liar.remove();
  followed.links.remove(liar.id);
});

test("a container that makes very many links on the host keeps those that Docker made", async () => {
  const maker = await runContainer(engine, { name: "maker", networks: ["front"] });
  await followed.put(maker);
  const { Pid: pid } = (await maker.inspect()).State;
  const made = Array.from(
    { length: LIMITS.linksOfContainer + 10 },
    (_, i) => `link add many${i} type veth peer name own${i} netns ${pid}\n`,
  );
  const { code, stderr } = await engine.enter("ip", ["-batch", "-"], { input: made.join("") });
  assert.equal(code, 0, stderr);
  await followed.has(maker, LIMITS.linksOfContainer);
  await engine.docker("network", "connect", "back", maker.id);
  await followed.put(maker);
  const onBoth = await waitFor("a link on each network", () => {
    const { links } = followed.links.of(maker.id);
    return links.filter(({ networkId }) => networkId !== undefined).length === 2 ? links : undefined;
  });
  assert.equal(onBoth.length, LIMITS.linksOfContainer);
  assert.deepEqual(followed.reasonsOf(maker), []);
  await maker.remove();
  followed.links.remove(maker.id);
});

test("a container without a link on the host has a reason", async () => {
  const owner = await runContainer(engine, { name: "owner", networks: ["front"] });
  const parent = ["link", "add", "uplink", "type", "veth", "peer", "name", "uplink1"];
  assert.equal((await engine.enter("ip", parent)).code, 0);
  await createNetwork(engine, "flat", { args: ["--driver=macvlan", "--opt=parent=uplink"] });
  const cases = [
    ["host", "host-network"],
    ["none", "no-network"],
    ["flat", "other-driver"],
    [`container:${owner.id}`, "shared-namespace"],
  ] as const;
  for (const [mode, reason] of cases) {
    const container = await runContainer(engine, { args: [`--network=${mode}`] });
    await followed.put(container);
    assert.deepEqual(followed.links.of(container.id).links, []);
    assert.deepEqual(followed.reasonsOf(container), [reason], mode);
    await container.remove();
  }
  await owner.remove();
});
