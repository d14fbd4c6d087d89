/**
 * Links, addresses and routes on the real kernel, checked with `ip`: a RouteSocket reads what `ip` prints, and `ip` prints
 * what a RouteSocket adds.
 */
import assert from "node:assert/strict";
import { closeSync, openSync } from "node:fs";
import { test } from "node:test";

import { NamespaceRunner } from "../../src/container/namespace/namespace-runner.ts";
import { NetlinkMemory } from "../../src/kernel/netlink-socket.ts";
import { RouteSocket } from "../../src/kernel/rtnetlink.ts";
import { check } from "../support/program/command.ts";
import { Netns } from "../support/rig/netns.ts";
import { waitFor } from "../support/rig/wait.ts";

interface IpLink {
  readonly ifindex: number;
  readonly ifname: string;
  readonly flags: readonly string[];
  readonly operstate: string;
  readonly master?: string;
  readonly addr_info?: readonly {
    readonly local: string;
    readonly prefixlen: number;
    readonly label?: string;
    readonly scope: string;
    readonly family: string;
  }[];
}

interface IpRoute {
  readonly dst: string;
  readonly gateway?: string;
  readonly dev: string;
  readonly scope?: string;
}

class Place implements AsyncDisposable {
  readonly netns: Netns;
  readonly fd: number;
  readonly routes: RouteSocket;
  readonly runner = new NamespaceRunner();

  private constructor(netns: Netns) {
    this.netns = netns;
    this.fd = openSync(netns.netnsPath, "r");
    this.routes = this.runner.within(this.fd, () => new RouteSocket(new NetlinkMemory()));
  }

  static async create(): Promise<Place> {
    return new Place(await Netns.create());
  }

  async ip(...args: string[]): Promise<void> {
    await check("ip", ["-n", this.netns.name, ...args]);
  }

  async show<T>(...args: string[]): Promise<T> {
    const shown = await check("ip", ["-n", this.netns.name, "-json", ...args]);
    return JSON.parse(shown === "" ? "[]" : shown) as T;
  }

  /** Two links, one of them up on both sides. */
  async addPair(name: string, peer: string): Promise<void> {
    await this.ip("link", "add", name, "type", "veth", "peer", "name", peer);
    await this.ip("link", "set", name, "up");
    await this.ip("link", "set", peer, "up");
  }

  indexOf(name: string): number {
    return this.routes.linkNamed(name)?.index ?? 0;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.routes.close();
    closeSync(this.fd);
    this.runner.close();
    await this.netns[Symbol.asyncDispose]();
  }
}

test("links are those that ip prints, with the bridge that they are ports of and their route_localnet", async () => {
  await using place = await Place.create();
  await place.addPair("left", "right");
  await place.ip("link", "add", "bridge", "type", "bridge");
  await place.ip("link", "set", "left", "master", "bridge");
  await place.ip("link", "add", "lone", "type", "veth", "peer", "name", "down");
  await waitFor("the pair to run", () => (place.routes.linkNamed("right")?.isRunning === true ? true : undefined));
  const shown = await place.show<IpLink[]>("link", "show");
  const sysctl = ["-qw", "net.ipv4.conf.left.route_localnet=1"];
  assert.equal((await place.netns.enter("sysctl", sysctl)).code, 0);
  const names = new Map(shown.map(({ ifname, ifindex }) => [ifname, ifindex]));
  assert.deepEqual(
    place.routes.links(),
    shown.map(({ ifindex, ifname, flags, operstate, master }) => ({
      index: ifindex,
      name: ifname,
      isUp: flags.includes("UP"),
      isLoopback: flags.includes("LOOPBACK"),
      isRunning: operstate === "UP",
      routeLocalnet: ifname === "left",
      ...(master === undefined ? {} : { master: names.get(master) }),
    })),
  );
  assert.deepEqual(
    place.routes.links().map(({ name, isUp, master }) => [name, isUp, master !== undefined]),
    shown.map(({ ifname }) => [ifname, ["lo", "left", "right"].includes(ifname), ifname === "left"]),
  );
  assert.equal(place.routes.linkNamed("nobody"), undefined);
});

test("more links and addresses than fit into one message are all read", async () => {
  await using place = await Place.create();
  const lines = Array.from({ length: 300 }, (_, index) => [
    `link add v${index} type veth peer name p${index}`,
    `address add 10.9.${index >> 8}.${index & 255}/32 dev v${index}`,
  ]).flat();
  await check("ip", ["-n", place.netns.name, "-batch", "-"], { input: lines.join("\n") });
  assert.equal(place.routes.links().length, 601);
  assert.equal(place.routes.addresses().filter(({ address }) => address.startsWith("10.9.")).length, 300);
});

test("addresses are those that ip prints, in the same text", async () => {
  await using place = await Place.create();
  await place.addPair("left", "right");
  // Their own addresses come with that.
  for (const name of ["left", "right"]) {
    await waitFor("the pair to run", () => (place.routes.linkNamed(name)?.isRunning === true ? true : undefined));
  }
  await place.ip("address", "add", "10.1.2.3/24", "dev", "left");
  await place.ip("address", "add", "10.1.2.4/24", "dev", "left", "label", "left:more");
  await place.ip("address", "add", "10.2.0.1", "peer", "10.2.0.9/32", "dev", "right");
  for (const address of ["fd00::a:0:0:1/64", "fd00:0:0:1::/64", "fd00:1:2:3:4:5:6:7/128", "::ffff:10.0.0.1/128"]) {
    await place.ip("address", "add", address, "dev", "left", "nodad");
  }
  const shown = (await place.show<IpLink[]>("address", "show")).flatMap(({ ifindex, addr_info: all = [] }) =>
    all.map(({ local, prefixlen, label }) => ({ index: ifindex, address: local, prefixLength: prefixlen, label })),
  );
  const byText = (a: { address: string }, b: { address: string }): number => a.address.localeCompare(b.address);
  assert.ok(shown.length >= 9);
  assert.deepEqual(place.routes.addresses().toSorted(byText), shown.toSorted(byText));
});

test("an address can be used as soon as it is added, and adding it twice is an error with a code", async () => {
  await using place = await Place.create();
  const { routes } = place;
  const ipv4 = { index: 1, address: "169.254.53.53", prefixLength: 32, label: "lo:dns11" };
  const ipv6 = { index: 1, address: "fd00:53::53", prefixLength: 128 };
  routes.addAddress(ipv4);
  routes.addAddress(ipv6);
  const [lo] = await place.show<IpLink[]>("address", "show", "dev", "lo");
  const added = lo?.addr_info?.filter(({ local }) => local.includes("53"));
  assert.deepEqual(
    added?.map(({ local, prefixlen, label, scope }) => [local, prefixlen, label, scope]),
    [
      ["169.254.53.53", 32, "lo:dns11", "host"],
      ["fd00:53::53", 128, undefined, "global"],
    ],
  );
  for (const address of [ipv4, ipv6]) {
    assert.throws(() => routes.addAddress(address), {
      code: "EEXIST",
      message: `RTM_NEWADDR of ${address.address}/${address.prefixLength} on interface 1 failed: EEXIST`,
    });
    routes.removeAddress(address);
    assert.throws(() => routes.removeAddress(address), { code: "EADDRNOTAVAIL" });
  }
  assert.deepEqual(
    routes.addresses().map(({ address }) => address),
    ["127.0.0.1", "::1"],
  );
});

test("the default gateways are those of the main table, the preferred one first", async () => {
  await using place = await Place.create();
  await place.addPair("left", "right");
  await place.ip("address", "add", "10.1.0.2/24", "dev", "left");
  await place.ip("address", "add", "10.2.0.2/24", "dev", "right");
  await place.ip("address", "add", "fd00:1::2/64", "dev", "left", "nodad");
  assert.deepEqual(place.routes.defaultGateways(), []);
  await place.ip("route", "add", "default", "via", "10.1.0.9", "metric", "50");
  await place.ip("route", "add", "default", "via", "10.2.0.1", "metric", "20");
  await place.ip("route", "add", "default", "dev", "left", "metric", "10");
  await place.ip("route", "add", "default", "via", "10.1.0.7", "table", "7");
  await place.ip("route", "add", "10.77.0.0/16", "via", "10.1.0.6");
  await place.ip("route", "add", "unreachable", "default", "metric", "99");
  await place.ip("-6", "route", "add", "default", "via", "fe80::1", "dev", "right", "metric", "30");
  await place.ip("-6", "route", "add", "default", "via", "fd00:1::1", "metric", "20");
  const [left, right] = [place.indexOf("left"), place.indexOf("right")];
  assert.deepEqual(place.routes.defaultGateways(), [
    { family: 4, gateway: "10.2.0.1", index: right },
    { family: 4, gateway: "10.1.0.9", index: left },
    { family: 6, gateway: "fd00:1::1", index: left },
    { family: 6, gateway: "fe80::1", index: right },
  ]);
});

test("of a default route with several hops the first is returned", async () => {
  await using place = await Place.create();
  await place.addPair("left", "right");
  await place.ip("address", "add", "10.1.0.2/24", "dev", "left");
  await place.ip("address", "add", "10.2.0.2/24", "dev", "right");
  const hops = ["nexthop", "via", "10.2.0.1", "dev", "right", "nexthop", "via", "10.1.0.1", "dev", "left"];
  await place.ip("route", "add", "default", ...hops);
  assert.deepEqual(place.routes.defaultGateways(), [{ family: 4, gateway: "10.2.0.1", index: place.indexOf("right") }]);
});

test("a route counts only if a packet can take it", async () => {
  await using place = await Place.create();
  const { routes } = place;
  await place.addPair("left", "right");
  await place.ip("address", "add", "10.1.0.2/24", "dev", "left");
  await place.ip("address", "add", "fd00:1::2/64", "dev", "left", "nodad");
  await waitFor("the address to be local", () => (routes.isLocal("fd00:1::2") ? true : undefined));
  const has = (...addresses: string[]): boolean[] => addresses.map((address) => routes.hasRouteTo(address));
  assert.deepEqual(has("10.1.0.9", "10.1.0.2", "127.0.0.11", "fd00:1::9", "fd00:1::2"), Array(5).fill(true));
  assert.deepEqual(has("10.77.0.1", "fd00:77::1"), [false, false]);
  assert.deepEqual([routes.isLocal("10.1.0.2"), routes.isLocal("10.1.0.9")], [true, false]);
  await place.ip("route", "add", "default", "via", "10.1.0.1");
  await place.ip("-6", "route", "add", "default", "via", "fd00:1::1");
  assert.deepEqual(has("10.77.0.1", "fd00:77::1"), [true, true]);
  for (const kind of ["unreachable", "blackhole", "prohibit", "throw"]) {
    await place.ip("route", "replace", kind, "10.77.0.0/24");
    await place.ip("-6", "route", "add", kind, "fd00:77::/64");
    // A throw route continues with the next table, and there is none.
    assert.deepEqual(has("10.77.0.1", "fd00:77::1"), [false, false], kind);
    await place.ip("route", "delete", "10.77.0.0/24");
    await place.ip("-6", "route", "delete", kind, "fd00:77::/64");
  }
});

test("a veth pair between two namespaces is created, brought up, used for routing, and removed", async () => {
  await using place = await Place.create();
  await using other = await Place.create();
  place.routes.createVeth({ name: "here", peer: { name: "there", namespace: other.fd } });
  assert.throws(() => place.routes.createVeth({ name: "here", peer: { name: "again", namespace: other.fd } }), {
    code: "EEXIST",
    message: "RTM_NEWLINK of veth here failed: EEXIST",
  });
  const [here, there] = [place.indexOf("here"), other.indexOf("there")];
  place.routes.setUp(here);
  assert.equal(place.routes.linkNamed("here")?.isRunning, false);
  other.routes.setUp(there);
  await waitFor("the pair to run", () => (place.routes.linkNamed("here")?.isRunning === true ? true : undefined));
  other.routes.addAddress({ index: there, address: "10.1.0.1", prefixLength: 31 });
  other.routes.addAddress({ index: there, address: "fd00:1::1", prefixLength: 127 });
  other.routes.addRoute({ destination: undefined, prefixLength: 0, gateway: "10.1.0.0", index: there });
  other.routes.addRoute({ destination: "10.5.0.0", prefixLength: 16, index: there });
  other.routes.addRoute({ destination: "fd00:5::", prefixLength: 64, gateway: "fd00:1::", index: there });
  const shown = [...(await other.show<IpRoute[]>("-4", "route")), ...(await other.show<IpRoute[]>("-6", "route"))];
  assert.deepEqual(
    shown
      .filter(({ dst }) => ["default", "10.5.0.0/16", "fd00:5::/64"].includes(dst))
      .map(({ dst, gateway, dev, scope }) => [dst, gateway, dev, scope]),
    [
      ["default", "10.1.0.0", "there", undefined],
      ["10.5.0.0/16", undefined, "there", "link"],
      ["fd00:5::/64", "fd00:1::", "there", undefined],
    ],
  );
  assert.throws(
    () => other.routes.addRoute({ destination: undefined, prefixLength: 0, gateway: "192.0.2.1", index: there }),
    { code: "ENETUNREACH", message: "RTM_NEWROUTE of default/0 failed: ENETUNREACH" },
  );
  place.routes.removeLink(here);
  assert.throws(() => place.routes.removeLink(here), { code: "ENODEV" });
  assert.deepEqual([place.routes.linkNamed("here"), other.routes.linkNamed("there")], [undefined, undefined]);
});
