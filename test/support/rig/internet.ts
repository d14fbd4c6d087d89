// An internet for an engine: a namespace of its own behind the engine's, in which every address of some blocks answers, and a
// capture of what arrives there.
import { closeSync, openSync } from "node:fs";

import { NamespaceRunner } from "../../../src/container/namespace/namespace-runner.ts";
import { PacketSocket, macBytes } from "../packets/frames.ts";
import { check } from "../program/command.ts";
import { Greeters } from "../servers/greeters.ts";
import { Netns, type NetworkContext } from "./netns.ts";

const BLOCKS = ["192.0.2.0/24", "198.51.100.0/24", "2001:db8::/32"];
const PORTS = [443, 22, 5432, 853];
// At both ends.
export const LINK = "net0";
const [HERE, THERE] = ["203.0.113.1", "203.0.113.2"];
const [HERE6, THERE6] = ["fd99::1", "fd99::2"];
const READ_EVERY_MS = 20;
// Longer than a busy machine takes to start a program and connect.
const CONNECT_SECONDS = "20";
const ETHER_TYPES = { ipv4: 0x0800, ipv6: 0x86dd } as const;

// A packet that has arrived.
export interface Arrival {
  // Address, port and protocol that it was sent to: 192.0.2.1:443/6, [2001:db8::1]:443/6. What has no port shows two bytes in its place.
  readonly to: string;
  readonly bytes: Buffer;
}

export class Internet implements AsyncDisposable {
  readonly netns: Netns;
  readonly #runner = new NamespaceRunner();
  readonly #fd: number;
  readonly #greeters = new Greeters();
  readonly #timer: NodeJS.Timeout;
  #mac: Buffer = Buffer.alloc(0);
  #packets: PacketSocket | undefined;
  #arrivals: Arrival[] = [];
  #dropped = 0;

  private constructor(netns: Netns) {
    this.netns = netns;
    this.#fd = openSync(netns.netnsPath, "r");
    // However much arrives, the socket has room.
    this.#timer = setInterval(() => this.#read(), READ_EVERY_MS);
    this.#timer.unref();
  }

  // `machine`: the name of the namespace that the engine is in.
  static async connect(machine: string): Promise<Internet> {
    const internet = new Internet(await Netns.create());
    const { name } = internet.netns;
    await check("ip", ["-n", machine, "link", "add", LINK, "type", "veth", "peer", "name", LINK, "netns", name]);
    for (const [namespace, address, address6] of [
      [machine, HERE, HERE6],
      [name, THERE, THERE6],
    ] as const) {
      await check("ip", ["-n", namespace, "address", "add", `${address}/24`, "dev", LINK]);
      await check("ip", ["-n", namespace, "address", "add", `${address6}/64`, "dev", LINK, "nodad"]);
      await check("ip", ["-n", namespace, "link", "set", LINK, "up"]);
    }
    for (const block of BLOCKS) {
      await check("ip", ["-n", name, "route", "add", "local", block, "dev", "lo"]);
      await check("ip", ["-n", machine, "route", "replace", block, "via", block.includes(":") ? THERE6 : THERE]);
    }
    // Not every engine translates IPv6.
    await check("ip", ["-n", name, "route", "add", "default", "via", HERE6]);
    for (const port of PORTS)
      await internet.#greeters.open(port, (listen) => internet.#runner.within(internet.#fd, listen));
    const shown = await check("ip", ["-n", name, "link", "show", LINK]);
    internet.#mac = macBytes(/link\/ether (\S+)/.exec(shown)?.[1] ?? "");
    const index = Number(/^(\d+):/.exec(shown)?.[1]);
    internet.#packets = internet.#runner.within(internet.#fd, () => new PacketSocket(index));
    return internet;
  }

  // What has arrived since the last call. Throws if anything was missed.
  arrivals(): Arrival[] {
    this.#read();
    if (this.#dropped > 0) throw new Error(`the capture has missed ${this.#dropped} packets`);
    const found = this.#arrivals;
    this.#arrivals = [];
    return found;
  }

  // Destinations of the IPv4 packets among them.
  arrived(): string[] {
    return this.arrivals()
      .filter(({ bytes }) => bytes.readUInt16BE(12) === ETHER_TYPES.ipv4)
      .map(({ to }) => to);
  }

  // Runs a function in its namespace.
  within<T>(work: () => T): T {
    return this.#runner.within(this.#fd, work);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.#timer);
    this.#packets?.close();
    await this.#greeters[Symbol.asyncDispose]();
    closeSync(this.#fd);
    this.#runner.close();
    await this.netns[Symbol.asyncDispose]();
  }

  #read(): void {
    if (this.#packets === undefined) return;
    for (const bytes of this.#packets.frames())
      if (!bytes.subarray(6, 12).equals(this.#mac)) this.#arrivals.push({ to: destinationOf(bytes), bytes });
    this.#dropped += this.#packets.dropped();
  }
}

function destinationOf(frame: Buffer): string {
  const type = frame.readUInt16BE(12);
  if (type === ETHER_TYPES.ipv4) return `${[...frame.subarray(30, 34)].join(".")}:${portAt(frame, 36)}/${frame[23]}`;
  if (type !== ETHER_TYPES.ipv6) return `type ${type}`;
  const groups = Array.from({ length: 8 }, (_each, index) => frame.readUInt16BE(38 + 2 * index).toString(16));
  const address = groups.join(":").replace(/(?:^|:)0(?::0)+(?::|$)/, "::");
  return `[${address}]:${portAt(frame, 56)}/${frame[20]}`;
}

function portAt(frame: Buffer, at: number): number {
  return frame.length < at + 2 ? 0 : frame.readUInt16BE(at);
}

// What a TCP client sees: open, refused, silent, or its error.
export async function connectTo(client: NetworkContext, address: string, port: number): Promise<string> {
  const script = `exec 3<>/dev/tcp/${address}/${port} && head -c 2 <&3`;
  // Without --norc it reads ~/.bashrc, as for a remote shell, because its input is a socket; and what that does may take a minute.
  const { code, stdout, stderr } = await client.enter("timeout", [CONNECT_SECONDS, "bash", "--norc", "-c", script]);
  if (code === 0 && stdout === "ok") return "open";
  if (code === 124) return "silent";
  return /refused/.test(stderr) ? "refused" : stderr;
}
