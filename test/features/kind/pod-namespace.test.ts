/**
 * A probe pod on the real kernel: a node like KIND's (eth0, reverse path filter on, an address of its gateway redirected to
 * a server on lo), whose server is queried from the pod. Afterwards nothing of the pod is left.
 */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync, readFileSync, readdirSync, readlinkSync } from "node:fs";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

import {
  type PodNamespace,
  conversationsOf,
  openPodNamespace,
  removePodLink,
} from "../../../src/features/kind/pod-namespace.ts";
import { NamespaceRunner } from "../../../src/container/namespace/namespace-runner.ts";
import { type ProbeRequest, type ProbeTarget, probe } from "../../../src/container/rules/probe.ts";
import { deleteConversations } from "../../../src/kernel/conntrack.ts";
import { NLM_F_ACK } from "../../../src/kernel/netlink-message.ts";
import { NetlinkMemory, NetlinkSocket } from "../../../src/kernel/netlink-socket.ts";
import { check, run, stdoutOf } from "../../support/program/command.ts";
import { dataOf, dig } from "../../support/client/dig.ts";
import { Netns, type NetworkContext, inNetns } from "../../support/rig/netns.ts";
import { type RealServer, startDnsmasq } from "../../support/servers/real-server.ts";
import { untilSame, waitFor } from "../../support/rig/wait.ts";

const VIP = { ipv4: "10.77.0.1", ipv6: "fd00:77::1" } as const;
const LISTENER = { ipv4: "169.254.53.53", ipv6: "fd00:53::53" } as const;
const PORT = 5353;
const ZONE = 4711;
const ROUNDS = 10;

/** What redirects queries of pods to dns11 in production: a zone of our own, then the listener. */
const RULES = `
table inet pod_redirect {
  chain zone {
    type filter hook prerouting priority -300
    ip daddr ${VIP.ipv4} meta l4proto { tcp, udp } th dport 53 ct zone set ${ZONE}
    ip6 daddr ${VIP.ipv6} meta l4proto { tcp, udp } th dport 53 ct zone set ${ZONE}
  }
  chain reply {
    type filter hook output priority -300
    ip saddr ${LISTENER.ipv4} meta l4proto { tcp, udp } th sport ${PORT} ct zone set ${ZONE}
    ip6 saddr ${LISTENER.ipv6} meta l4proto { tcp, udp } th sport ${PORT} ct zone set ${ZONE}
  }
  chain query {
    type nat hook prerouting priority -101
    ip daddr ${VIP.ipv4} meta l4proto { tcp, udp } th dport 53 dnat ip to ${LISTENER.ipv4}:${PORT}
    ip6 daddr ${VIP.ipv6} meta l4proto { tcp, udp } th dport 53 dnat ip6 to [${LISTENER.ipv6}]:${PORT}
  }
}`;

class Node implements AsyncDisposable {
  readonly netns: Netns;
  readonly fd: number;
  readonly runner = new NamespaceRunner();
  readonly memory = new NetlinkMemory();
  readonly #outside: Netns;
  readonly #servers: RealServer[] = [];

  private constructor(netns: Netns, outside: Netns) {
    this.netns = netns;
    this.#outside = outside;
    this.fd = openSync(netns.netnsPath, "r");
  }

  static async create(): Promise<Node> {
    const node = new Node(await Netns.create(), await Netns.create());
    const { name } = node.netns;
    await check("ip", ["-n", name, "link", "add", "eth0", "type", "veth", "peer", "eth0", "netns", node.#outside.name]);
    await node.ip("address", "add", "10.77.0.2/24", "dev", "eth0");
    await node.ip("address", "add", "fd00:77::2/64", "dev", "eth0", "nodad");
    // Its own link-local address would appear a second later than the rest, during a comparison.
    await node.ip("link", "set", "eth0", "addrgenmode", "none", "up");
    await check("ip", ["-n", node.#outside.name, "link", "set", "eth0", "up"]);
    await node.ip("route", "add", "default", "via", VIP.ipv4);
    await node.ip("-6", "route", "add", "default", "via", VIP.ipv6);
    for (const which of ["all", "default"]) {
      await node.set(`net.ipv4.conf.${which}.rp_filter=1`);
      await node.set(`net.ipv6.conf.${which}.forwarding=1`);
    }
    await node.set("net.ipv4.ip_forward=1");
    return node;
  }

  async ip(...args: string[]): Promise<void> {
    await check("ip", ["-n", this.netns.name, ...args]);
  }

  async set(what: string): Promise<void> {
    stdoutOf(await this.netns.enter("sysctl", ["-q", "-w", what]), what);
  }

  async serve(): Promise<void> {
    stdoutOf(await this.netns.enter("nft", ["-f", "-"], { input: RULES }), "nft");
    for (const address of Object.values(LISTENER)) {
      const lines = ["host-record=web.test,10.88.0.3", "txt-record=dns11.invalid,any", "local=/dns11.invalid/"];
      this.#servers.push(
        await startDnsmasq(this.netns, { address, port: PORT, lines: [...lines, "address=/dns11.invalid/192.0.2.1"] }),
      );
    }
  }

  async open(): Promise<PodNamespace> {
    return await openPodNamespace(this.runner, this.memory, this.fd);
  }

  /** Everything that a pod could leave behind: links, addresses, conntrack entries, namespaces behind links. */
  async traces(): Promise<Record<string, string>> {
    const output = async (command: string, ...args: string[]): Promise<string> =>
      stdoutOf(await this.netns.enter(command, args), command);
    return {
      links: (await output("ip", "-brief", "link")).replaceAll(/ +/g, " "),
      addresses: (await output("ip", "-brief", "address")).replaceAll(/ +/g, " "),
      routes: await output("ip", "route", "show", "table", "all"),
      conversations: await output("conntrack", "-L"),
    };
  }

  /** The kernel assigns ids to the namespaces that are known here, and removes those of dead ones. */
  async knownNamespaces(): Promise<number> {
    const listed = await check("ip", ["-n", this.netns.name, "-json", "netns", "list-id"]);
    return listed.trim() === "" ? 0 : (JSON.parse(listed) as unknown[]).length;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const server of this.#servers) await server[Symbol.asyncDispose]();
    closeSync(this.fd);
    this.runner.close();
    await this.netns[Symbol.asyncDispose]();
    await this.#outside[Symbol.asyncDispose]();
  }
}

function insideOf(pod: PodNamespace): NetworkContext {
  return {
    enter: async (command, args = [], options = {}) => {
      const [first = "", ...rest] = inNetns(`/proc/${process.pid}/fd/${pod.fd}`, command, args);
      return await run(first, rest, options);
    },
  };
}

/** The listener does not know the nonce: only the reply counts. */
const probeOf = (destination: string): ProbeRequest => ({ destination, protocols: ["udp", "tcp"], isTrial: false });
const ANY_CLIENT: ProbeTarget = {
  expect: () => {},
  hasSeen: () => true,
  isBehind: () => false,
  hasLost: () => false,
  reset: () => {},
};

function descriptors(): string[] {
  return readdirSync("/proc/self/fd").flatMap((fd) => {
    try {
      return [readlinkSync(`/proc/self/fd/${fd}`)];
    } catch {
      return [];
    }
  });
}

const ways = [
  [VIP.ipv4, "+notcp"],
  [VIP.ipv4, "+tcp"],
  [VIP.ipv6, "+notcp"],
  [VIP.ipv6, "+tcp"],
] as const;

test("a pod reaches the node's redirect target by both protocols and families, and nothing of the pod stays", async () => {
  await using node = await Node.create();
  await node.serve();
  const before = await node.traces();
  const known = await node.knownNamespaces();
  const pod = await node.open();
  const inside = insideOf(pod);
  for (const [address, protocol] of ways) {
    const reply = await dig(inside, `@${address}`, protocol, "web.test");
    assert.deepEqual(dataOf(reply), ["10.88.0.3"], `${address} ${protocol}: ${reply.raw}`);
  }
  const { conversations = "" } = await node.traces();
  const listed = conversations.split("\n").filter((line) => line !== "");
  assert.equal(listed.length, 4, listed.join("\n"));
  assert.ok(
    listed.every((line) => line.includes(`zone=${ZONE}`)),
    listed.join("\n"),
  );
  for (const address of Object.values(pod.addresses)) {
    assert.equal(listed.filter((line) => new RegExp(`^[^=]*src=${address} `).test(line)).length, 2, listed.join("\n"));
  }
  assert.equal(await node.knownNamespaces(), known + 1);
  pod.close();
  assert.deepEqual(await node.traces(), before);
  await waitFor("the end of the namespace", async () => ((await node.knownNamespaces()) === known ? true : undefined));
  pod.close();
  assert.deepEqual(await node.traces(), before);
});

test("the probe can send from a pod at once, by IPv6, too, and the first packet is not lost", async () => {
  await using node = await Node.create();
  await node.serve();
  const before = await node.traces();
  const known = await node.knownNamespaces();
  const resent: number[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    const pod = await node.open();
    for (const address of Object.values(VIP)) {
      const result = await probe((work) => node.runner.within(pod.fd, work), ANY_CLIENT, probeOf(address));
      assert.deepEqual(result, { kind: "works" }, `${address}, round ${round}`);
    }
    resent.push(node.runner.within(pod.fd, sentAgain));
    pod.close();
  }
  // UDP does not resend a lost packet. TCP does; also one that the kernel of a busy machine has acknowledged late.
  assert.ok(resent.filter((count) => count === 0).length > ROUNDS / 2, resent.join());
  assert.deepEqual(await node.traces(), before);
  await waitFor("the end of the namespaces", async () => ((await node.knownNamespaces()) === known ? true : undefined));
});

test("abandoning a pod makes the kernel search nothing and remove no link, and soon nothing of it is left", async ({
  mock,
}) => {
  await using node = await Node.create();
  await node.serve();
  const before = await node.traces();
  const known = await node.knownNamespaces();
  const pod = await node.open();
  const within = <T>(work: () => T): T => node.runner.within(pod.fd, work);
  for (const address of Object.values(VIP)) {
    assert.deepEqual(
      await probe(within, ANY_CLIENT, { ...probeOf(address), sourcePort: pod.sourcePort }),
      { kind: "works" },
      address,
    );
  }
  assert.equal((await node.traces())["conversations"]?.trim().split("\n").length, 4);
  const requests = mock.method(NetlinkSocket.prototype, "request");
  const conversations = conversationsOf(pod, Object.values(VIP));
  node.runner.within(node.fd, () => deleteConversations(node.memory, conversations, [0, ZONE]));
  pod.abandon();
  const deletions = requests.mock.calls.map(({ arguments: [request] }) => request);
  requests.mock.restore();
  // Each connection is deleted in two zones, with one request each.
  assert.deepEqual(
    [...new Set(deletions.map(({ call, flags }) => `${call} ${flags}`))],
    [`conntrack delete ${NLM_F_ACK}`],
  );
  assert.equal(deletions.length, 8);
  assert.equal((await node.traces())["conversations"], before["conversations"]);
  await waitFor("the end of the namespace", async () => ((await node.knownNamespaces()) === known ? true : undefined));
  // The kernel forgets a namespace's number before it removes its links.
  await untilSame("nothing to be left", async () => await node.traces(), before);
});

test("the link of an abandoned pod can be removed at once, and no other with its number", async () => {
  await using node = await Node.create();
  const before = await node.traces();
  const pod = await node.open();
  node.runner.within(node.fd, () => removePodLink(node.memory, { ...pod.link, name: "another" }));
  assert.notDeepEqual(await node.traces(), before);
  pod.abandon();
  node.runner.within(node.fd, () => removePodLink(node.memory, pod.link));
  assert.deepEqual(await node.traces(), before);
  node.runner.within(node.fd, () => removePodLink(node.memory, pod.link));
});

test("a pod without answers reports that, and is removed as well", async () => {
  await using node = await Node.create();
  const before = await node.traces();
  const pod = await node.open();
  const results = await Promise.all(
    Object.values(VIP).map((address) =>
      probe((work) => node.runner.within(pod.fd, work), ANY_CLIENT, probeOf(address)),
    ),
  );
  pod.close();
  assert.deepEqual(
    results.map(({ kind }) => kind),
    ["broken", "broken"],
  );
  assert.deepEqual(await node.traces(), before);
});

test("several pods of one node, of one process or of two, do not interfere", async () => {
  await using node = await Node.create();
  await node.serve();
  const before = await node.traces();
  const pods = await Promise.all(Array.from({ length: 20 }, async () => await node.open()));
  assert.equal(new Set(pods.flatMap(({ addresses }) => [addresses.ipv4, addresses.ipv6])).size, 40);
  for (const pod of [pods[0], pods[19]] as PodNamespace[]) {
    assert.deepEqual(dataOf(await dig(insideOf(pod), `@${VIP.ipv4}`, "web.test")), ["10.88.0.3"]);
    assert.deepEqual(dataOf(await dig(insideOf(pod), `@${VIP.ipv6}`, "web.test")), ["10.88.0.3"]);
  }
  for (const pod of pods) pod.close();
  assert.deepEqual(await node.traces(), before);
});

test("if all addresses are in use, that is an error with a code, and nothing is left", async () => {
  await using node = await Node.create();
  const lines = Array.from({ length: 128 }, (_, index) => `address add 169.254.54.${2 * index}/32 dev lo`);
  await check("ip", ["-n", node.netns.name, "-batch", "-"], { input: lines.join("\n") });
  const before = await node.traces();
  const descriptorsBefore = descriptors();
  await assert.rejects(node.open(), { code: "NO_FREE_ADDRESS" });
  assert.deepEqual(await node.traces(), before);
  assert.deepEqual(descriptors(), descriptorsBefore);
  await node.ip("address", "delete", "169.254.54.84/32", "dev", "lo");
  const pod = await node.open();
  assert.equal(pod.addresses.ipv4, "169.254.54.85");
  pod.close();
});

test("a failure after the link was created removes the link", async () => {
  await using node = await Node.create();
  const before = await node.traces();
  const known = await node.knownNamespaces();
  const descriptorsBefore = descriptors();
  let entered = 0;
  class Broken extends NamespaceRunner {
    override withinScratch<T>(work: () => T): T {
      const made = super.withinScratch(work);
      // The pod's descriptor is closed, so the first step inside fails.
      const { inside } = made as { inside: { close(): void } };
      inside.close();
      entered += 1;
      return made;
    }
  }
  const broken = new Broken();
  await assert.rejects(openPodNamespace(broken, node.memory, node.fd), { code: "EBADF" });
  broken.close();
  assert.equal(entered, 1);
  assert.deepEqual(descriptors(), descriptorsBefore);
  await waitFor("the end of the namespace", async () => ((await node.knownNamespaces()) === known ? true : undefined));
  // The kernel forgets a namespace's number before it removes its links.
  await untilSame("nothing to be left", async () => await node.traces(), before);
});

test("without IPv6 in the node the pod has none", async () => {
  await using node = await Node.create();
  await node.serve();
  await node.set("net.ipv6.conf.default.disable_ipv6=1");
  const pod = await node.open();
  assert.equal(pod.addresses.ipv6, undefined);
  assert.deepEqual(dataOf(await dig(insideOf(pod), `@${VIP.ipv4}`, "web.test")), ["10.88.0.3"]);
  pod.close();
});

test("a pod whose link was removed by another program can still be closed", async () => {
  await using node = await Node.create();
  const before = await node.traces();
  const pod = await node.open();
  const links = (await node.traces())["links"] ?? "";
  const name = /dns11-pod-\d+/.exec(links)?.[0] ?? "";
  await node.ip("link", "delete", name);
  pod.close();
  assert.deepEqual(await node.traces(), before);
});

test("nothing of a pod outlives the process that created it, however it ends", async () => {
  await using node = await Node.create();
  const before = await node.traces();
  const known = await node.knownNamespaces();
  const program = fileURLToPath(new URL("./pod-main.js", import.meta.url));
  const child = spawn(process.execPath, [program, node.netns.netnsPath], { stdio: ["pipe", "pipe", "inherit"] });
  const ended = once(child, "exit");
  try {
    await once(child.stdout, "data");
    assert.notDeepEqual(await node.traces(), before);
    assert.equal(await node.knownNamespaces(), known + 1);
  } finally {
    child.kill("SIGKILL");
  }
  await ended;
  await waitFor("the end of the namespace", async () => ((await node.knownNamespaces()) === known ? true : undefined));
  // The kernel forgets a namespace's number before it removes its links.
  await untilSame("nothing to be left", async () => await node.traces(), before);
});

test("many pods leave no descriptor, and the thread is in its own namespace", async () => {
  await using node = await Node.create();
  const home = readlinkSync("/proc/thread-self/ns/net");
  const descriptorsBefore = descriptors();
  for (let round = 0; round < 30; round++) (await node.open()).close();
  // The kernel closes some of them in its own time.
  await untilSame("they are closed", async () => await Promise.resolve(descriptors()), descriptorsBefore);
  assert.equal(readlinkSync("/proc/thread-self/ns/net"), home);
  assert.ok(!readFileSync("/proc/net/dev", "utf8").includes("dns11-pod"));
});

/** The number of TCP retransmissions in the calling thread's namespace. */
function sentAgain(): number {
  const [names = [], values = []] = readFileSync("/proc/thread-self/net/snmp", "utf8")
    .split("\n")
    .filter((line) => line.startsWith("Tcp:"))
    .map((line) => line.split(" "));
  return Number(values[names.indexOf("RetransSegs")]);
}
