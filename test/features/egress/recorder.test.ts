/**
 * What the kernel records on the host's side of a veth, by frames as a container with NET_RAW can send them: whatever they
 * look like, a connection that leaves is counted, and an answer is not.
 */
import assert from "node:assert/strict";
import { closeSync, openSync } from "node:fs";
import { test } from "node:test";

import { addressBytes, addressText } from "../../../src/base/model/address.ts";
import { NamespaceRunner } from "../../../src/container/namespace/namespace-runner.ts";
import { EGRESS_LIMITS } from "../../../src/features/egress/limits.ts";
import { Recorder } from "../../../src/features/egress/recorder.ts";
import { SOCK_RAW, bindTo, send, socket } from "../../../src/kernel/libc.ts";
import { NetlinkMemory } from "../../../src/kernel/netlink-socket.ts";
import { RouteSocket } from "../../../src/kernel/rtnetlink.ts";
import { check, stdoutOf } from "../../support/program/command.ts";
import { Netns } from "../../support/rig/netns.ts";
import { waitFor } from "../../support/rig/wait.ts";

const AF_PACKET = 17;
const ETH_P_ALL = Buffer.of(0x00, 0x03);
const [IPV4, IPV6, VLAN] = [0x0800, 0x86dd, 0x8100];
const [ICMP, TCP, UDP, ICMP6, SCTP] = [1, 6, 17, 58, 132];
const [SYN, SYN_ACK, ACK, RST] = [0x02, 0x12, 0x10, 0x04];
const [OWN, OTHER, FAR] = ["10.9.0.2", "10.9.0.99", "198.51.100.7"];
const ID = "c0ffee";

/** A host and a container, and the recorder of the host. */
class Rig implements AsyncDisposable {
  readonly host: Netns;
  readonly container: Netns;
  readonly recorder: Recorder;
  readonly #runner: NamespaceRunner;
  readonly #hostFd: number;
  readonly #sockets = new Map<string, number>();

  private constructor(host: Netns, container: Netns, runner: NamespaceRunner, hostFd: number, recorder: Recorder) {
    this.host = host;
    this.container = container;
    this.recorder = recorder;
    this.#runner = runner;
    this.#hostFd = hostFd;
  }

  static async create(): Promise<Rig> {
    const host = await Netns.create();
    const container = await Netns.create();
    const peer = ["type", "veth", "peer", "name", "eth0", "netns", container.name];
    await check("ip", ["-n", host.name, "link", "add", "port", ...peer]);
    await check("ip", ["-n", host.name, "link", "set", "port", "up"]);
    await check("ip", ["-n", container.name, "link", "set", "eth0", "up"]);
    const runner = new NamespaceRunner();
    const hostFd = openSync(host.netnsPath, "r");
    const recorder = await Recorder.open(runner.namespaceOf(hostFd, new NetlinkMemory()));
    return new Rig(host, container, runner, hostFd, recorder);
  }

  get index(): number {
    const routes = this.#runner.within(this.#hostFd, () => new RouteSocket(new NetlinkMemory()));
    try {
      return routes.linkNamed("port")?.index ?? 0;
    } finally {
      routes.close();
    }
  }

  async begin(): Promise<void> {
    this.recorder.record(ID, [{ index: this.index, name: "port" }]);
    await this.recorder.settled();
    assert.equal(this.recorder.failureOf(ID), undefined);
  }

  /** Sends frames from inside the container, or from the host to it. */
  send(side: "container" | "host", ...frames: readonly Buffer[]): void {
    let fd = this.#sockets.get(side);
    if (fd === undefined) {
      const [netns, name] = side === "host" ? [this.host, "port"] : [this.container, "eth0"];
      fd = this.#openSocket(netns, name);
      this.#sockets.set(side, fd);
    }
    for (const frame of frames) assert.equal(send(fd, frame), frame.length);
  }

  #openSocket(netns: Netns, name: string): number {
    const netnsFd = openSync(netns.netnsPath, "r");
    try {
      return this.#runner.within(netnsFd, () => {
        const routes = new RouteSocket(new NetlinkMemory());
        const fd = socket(AF_PACKET, SOCK_RAW, ETH_P_ALL.readUInt16LE());
        const address = Buffer.alloc(20);
        address.writeUInt16LE(AF_PACKET, 0);
        address.set(ETH_P_ALL, 2);
        address.writeInt32LE(routes.linkNamed(name)?.index ?? 0, 4);
        routes.close();
        bindTo(fd, address, name);
        return fd;
      });
    } finally {
      closeSync(netnsFd);
    }
  }

  /** As `ADDRESS protocol/port count`, without what the container's own kernel sends. */
  recorded(): string[] {
    const reading = this.recorder.read(ID);
    for (let step = reading.next(); ; step = reading.next()) {
      if (step.done !== true) continue;
      return step.value.recorded
        .map(({ address, ...each }) => ({ ...each, address: addressText(address) }))
        .filter(({ address }) => !address.startsWith("ff02:"))
        .map(({ address, protocol, port, count }) => `${address} ${protocol}/${port} ${count}`)
        .toSorted();
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.recorder.close();
    for (const fd of this.#sockets.values()) closeSync(fd);
    closeSync(this.#hostFd);
    this.#runner.close();
    await this.container[Symbol.asyncDispose]();
    await this.host[Symbol.asyncDispose]();
  }
}

function ethernet(type: number, payload: Buffer): Buffer {
  const header = Buffer.alloc(14, 0xff);
  header.writeUInt16BE(type, 12);
  return Buffer.concat([header, payload]);
}

interface Ip {
  readonly from?: string;
  readonly to: string;
  readonly protocol: number;
  /** In units of 8 bytes. */
  readonly fragment?: number;
  readonly isMore?: boolean;
  readonly options?: Buffer;
}

function ipv4(
  { from = OWN, to, protocol, fragment = 0, isMore = false, options = Buffer.alloc(0) }: Ip,
  data: Buffer,
): Buffer {
  const header = Buffer.alloc(20);
  header[0] = 0x45 + options.length / 4;
  header.writeUInt16BE(20 + options.length + data.length, 2);
  header.writeUInt16BE(fragment | (isMore ? 0x2000 : 0), 6);
  header[8] = 64;
  header[9] = protocol;
  header.set(addressBytes(from) ?? [], 12);
  header.set(addressBytes(to) ?? [], 16);
  return ethernet(IPV4, Buffer.concat([header, options, data]));
}

function ipv6(to: string, protocol: number, data: Buffer, from = "fd00::2"): Buffer {
  const header = Buffer.alloc(40);
  header[0] = 0x60;
  header.writeUInt16BE(data.length, 4);
  header[6] = protocol;
  header[7] = 64;
  header.set(addressBytes(from) ?? [], 8);
  header.set(addressBytes(to) ?? [], 24);
  return ethernet(IPV6, Buffer.concat([header, data]));
}

function tcp(port: number, flags: number): Buffer {
  const header = Buffer.alloc(20);
  header.writeUInt16BE(40_000, 0);
  header.writeUInt16BE(port, 2);
  header[12] = 0x50;
  header[13] = flags;
  return header;
}

function udp(port: number, from = 40_000): Buffer {
  const header = Buffer.alloc(9, "x");
  header.writeUInt16BE(from, 0);
  header.writeUInt16BE(port, 2);
  header.writeUInt16BE(9, 4);
  return header;
}

const tagged = (frame: Buffer): Buffer =>
  Buffer.concat([frame.subarray(0, 12), Buffer.of(VLAN >> 8, VLAN & 0xff, 0, 5), frame.subarray(12)]);
/** An empty destination options header before another one. */
const behindOptions = (next: number, data: Buffer): Buffer =>
  Buffer.concat([Buffer.of(next, 0, 1, 4, 0, 0, 0, 0), data]);

const CASES: readonly (readonly [what: string, frames: readonly Buffer[], expected: readonly string[]])[] = [
  [
    "the begin of a TCP connection, twice",
    [1, 2].map(() => ipv4({ to: FAR, protocol: TCP }, tcp(443, SYN))),
    [`${FAR} 6/443 2`],
  ],
  ["no other packet of it", [SYN_ACK, ACK, RST].map((flags) => ipv4({ to: FAR, protocol: TCP }, tcp(443, flags))), []],
  [
    "from an address that is not its own",
    [ipv4({ from: OTHER, to: FAR, protocol: TCP }, tcp(443, SYN))],
    [`${FAR} 6/443 1`],
  ],
  ["with a VLAN tag", [tagged(ipv4({ to: FAR, protocol: TCP }, tcp(443, SYN)))], [`${FAR} 6/443 1`]],
  [
    "with IP options",
    [ipv4({ to: FAR, protocol: TCP, options: Buffer.of(1, 1, 1, 0) }, tcp(443, SYN))],
    [`${FAR} 6/443 1`],
  ],
  [
    "in fragments so small that the flags are in the second",
    [
      ipv4({ to: FAR, protocol: TCP, isMore: true }, tcp(443, SYN).subarray(0, 8)),
      ipv4({ to: FAR, protocol: TCP, fragment: 1 }, tcp(443, SYN).subarray(8)),
    ],
    [`${FAR} 6/0 1`, `${FAR} 6/443 1`],
  ],
  ["UDP", [ipv4({ to: FAR, protocol: UDP }, udp(53))], [`${FAR} 17/53 1`]],
  ["SCTP", [ipv4({ to: FAR, protocol: SCTP }, udp(38412))], [`${FAR} 132/38412 1`]],
  [
    "an echo request, and no echo reply",
    [8, 0].map((type) => ipv4({ to: FAR, protocol: ICMP }, Buffer.of(type, 0, 0, 0, 0, 0, 0, 0))),
    [`${FAR} 1/0 1`],
  ],
  ["a protocol without ports", [ipv4({ to: FAR, protocol: 47 }, Buffer.alloc(8))], [`${FAR} 47/0 1`]],
  [
    "IPv6",
    [ipv6("2001:db8::7", TCP, tcp(443, SYN)), ipv6("2001:db8::7", UDP, udp(53))],
    ["2001:db8::7 17/53 1", "2001:db8::7 6/443 1"],
  ],
  [
    "IPv6 with headers in between",
    [ipv6("2001:db8::7", 60, behindOptions(TCP, tcp(443, SYN)))],
    ["2001:db8::7 6/443 1"],
  ],
  [
    "an IPv6 echo request, and no neighbour message",
    [128, 135].map((type) => ipv6("2001:db8::7", ICMP6, Buffer.of(type, 0, 0, 0, 0, 0, 0, 0))),
    ["2001:db8::7 58/0 1"],
  ],
];

for (const [what, frames, expected] of CASES) {
  test(`recorded: ${what}`, async () => {
    await using rig = await Rig.create();
    await rig.begin();
    // What comes first arrives first, so the marker shows that all have.
    rig.send("container", ...frames, ipv4({ to: "192.0.2.255", protocol: UDP }, udp(9)));
    const all = await waitFor("the frames to arrive", () => {
      const found = rig.recorded();
      return found.includes("192.0.2.255 17/9 1") ? found : undefined;
    });
    assert.deepEqual(
      all.filter((each) => !each.startsWith("192.0.2.255")),
      expected,
    );
  });
}

test("a datagram that answers one from outside is none of its own, but only to the same address and port", async () => {
  await using rig = await Rig.create();
  await rig.begin();
  rig.send("host", ipv4({ from: FAR, to: OWN, protocol: UDP }, udp(5000, 6000)));
  rig.send("host", ipv6("fd00::2", UDP, udp(5000, 6000), "2001:db8::7"));
  rig.send(
    "container",
    ipv4({ to: FAR, protocol: UDP }, udp(6000, 5000)),
    ipv6("2001:db8::7", UDP, udp(6000, 5000)),
    ipv4({ to: FAR, protocol: UDP }, udp(6001, 5000)),
    ipv4({ to: FAR, protocol: UDP }, udp(6000, 5001)),
  );
  assert.deepEqual(rig.recorded(), [`${FAR} 17/6000 1`, `${FAR} 17/6001 1`]);
});

test("senders beyond those that the kernel keeps are answered, and these answers are counted", async () => {
  await using rig = await Rig.create();
  await rig.begin();
  const ports = Array.from({ length: EGRESS_LIMITS.incoming + 50 }, (_, index) => 10_000 + index);
  for (const port of ports) rig.send("host", ipv4({ from: FAR, to: OWN, protocol: UDP }, udp(5000, port)));
  for (const port of ports) rig.send("container", ipv4({ to: FAR, protocol: UDP }, udp(port, 5000)));
  assert.equal(rig.recorded().length, 50);
});

test("a full set says so, loses what it gave, and has room again", async () => {
  await using rig = await Rig.create();
  await rig.begin();
  const ports = Array.from({ length: EGRESS_LIMITS.kernel + 50 }, (_, index) => 10_000 + index);
  for (const port of ports) rig.send("container", ipv4({ to: FAR, protocol: TCP }, tcp(port, SYN)));
  const parts = rig.recorder.read(ID);
  let reading = parts.next();
  while (reading.done !== true) reading = parts.next();
  assert.equal(reading.value.isFull, true);
  await rig.recorder.makeRoom(ID, reading.value);
  rig.send("container", ipv4({ to: OTHER, protocol: TCP }, tcp(22, SYN)));
  assert.deepEqual(rig.recorded(), [`${OTHER} 6/22 1`]);
});

test("the rules go with the link, the sets stay until they are forgotten, and all goes with the recorder", async () => {
  await using rig = await Rig.create();
  await rig.begin();
  const rules = async (): Promise<string> => stdoutOf(await rig.host.enter("nft", ["list", "ruleset"]), "nft");
  rig.send("container", ipv4({ to: FAR, protocol: TCP }, tcp(443, SYN)));
  await check("ip", ["-n", rig.host.name, "link", "del", "port"]);
  rig.recorder.record(ID, []);
  await rig.recorder.settled();
  assert.deepEqual(rig.recorded(), [`${FAR} 6/443 1`]);
  assert.doesNotMatch(await rules(), /chain/);
  rig.recorder.forget(ID);
  await rig.recorder.settled();
  assert.doesNotMatch(await rules(), /connections/);
  rig.recorder.close();
  await waitFor("the table to be gone", async () => ((await rules()).includes("dns11") ? undefined : true));
});

test("a link that cannot be recorded does not keep others from being recorded", async () => {
  await using rig = await Rig.create();
  // The kernel may accept one that is gone already, but no name of this length.
  rig.recorder.record("gone", [{ index: 4711, name: "longer-than-any-link" }]);
  rig.recorder.record(ID, [{ index: rig.index, name: "port" }]);
  await rig.recorder.settled();
  assert.match(rig.recorder.failureOf("gone") ?? "", /nf_tables/);
  assert.equal(rig.recorder.failureOf(ID), undefined);
  rig.send("container", ipv4({ to: FAR, protocol: TCP }, tcp(443, SYN)));
  assert.deepEqual(rig.recorded(), [`${FAR} 6/443 1`]);
});
