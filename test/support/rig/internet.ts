// An internet for an engine: a namespace of its own behind the engine's, in which every address of some blocks answers, and a
// capture of what arrives there.
import { closeSync, openSync } from "node:fs";

import { NamespaceRunner } from "../../../src/container/namespace/namespace-runner.ts";
import { PacketSocket } from "../packets/frames.ts";
import { check } from "../program/command.ts";
import { Greeters } from "../servers/greeters.ts";
import { Netns, type NetworkContext } from "./netns.ts";

const BLOCKS = ["192.0.2.0/24", "198.51.100.0/24"];
const PORTS = [443, 22, 5432];
const LINK = "net0";
const [HERE, THERE] = ["203.0.113.1", "203.0.113.2"];

export class Internet implements AsyncDisposable {
  readonly netns: Netns;
  readonly #runner = new NamespaceRunner();
  readonly #fd: number;
  readonly #greeters = new Greeters();
  #packets: PacketSocket | undefined;

  private constructor(netns: Netns) {
    this.netns = netns;
    this.#fd = openSync(netns.netnsPath, "r");
  }

  // `machine`: the name of the namespace that the engine is in.
  static async connect(machine: string): Promise<Internet> {
    const internet = new Internet(await Netns.create());
    const { name } = internet.netns;
    await check("ip", ["-n", machine, "link", "add", LINK, "type", "veth", "peer", "name", LINK, "netns", name]);
    for (const [namespace, address] of [
      [machine, HERE],
      [name, THERE],
    ]) {
      await check("ip", ["-n", namespace ?? "", "address", "add", `${address}/24`, "dev", LINK]);
      await check("ip", ["-n", namespace ?? "", "link", "set", LINK, "up"]);
    }
    for (const block of BLOCKS) {
      await check("ip", ["-n", name, "route", "add", "local", block, "dev", "lo"]);
      await check("ip", ["-n", machine, "route", "replace", block, "via", THERE]);
    }
    for (const port of PORTS)
      await internet.#greeters.open(port, (listen) => internet.#runner.within(internet.#fd, listen));
    const [, index] = /^(\d+):/.exec(await check("ip", ["-n", name, "link", "show", LINK])) ?? [];
    internet.#packets = internet.#runner.within(internet.#fd, () => new PacketSocket(Number(index)));
    return internet;
  }

  // Destinations of the IPv4 packets that have arrived since the last call, with protocol and port: 192.0.2.1:443/6.
  arrived(): string[] {
    const frames = this.#packets?.frames() ?? [];
    return frames
      .filter((frame) => frame.readUInt16BE(12) === 0x0800 && [...frame.subarray(30, 34)].join(".") !== HERE)
      .map((frame) => `${[...frame.subarray(30, 34)].join(".")}:${frame.readUInt16BE(36)}/${frame[23]}`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#packets?.close();
    await this.#greeters[Symbol.asyncDispose]();
    closeSync(this.#fd);
    this.#runner.close();
    await this.netns[Symbol.asyncDispose]();
  }
}

// What a TCP client sees: open, refused, silent, or its error.
export async function connectTo(client: NetworkContext, address: string, port: number): Promise<string> {
  const script = `exec 3<>/dev/tcp/${address}/${port} && head -c 2 <&3`;
  const { code, stdout, stderr } = await client.enter("timeout", ["5", "bash", "-c", script]);
  if (code === 0 && stdout === "ok") return "open";
  if (code === 124) return "silent";
  return /refused/.test(stderr) ? "refused" : stderr;
}
