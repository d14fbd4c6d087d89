// Name servers beside dns11 and dockerd in one container, each on its own port of the resolver's address. They have the
// same names and the same upstream.

import { spawn } from "node:child_process";

import { SYSTEM_PATH } from "../support/program/command.ts";
import type { Container } from "../support/engine/container.ts";
import { inNetns } from "../support/rig/netns.ts";
import { RealServer, startDnsmasq, startUnbound } from "../support/servers/real-server.ts";
import { startAardvark } from "./aardvark.ts";
import { RESOLVER } from "./redirect.ts";
import { type Host, UPSTREAM_LINES } from "./questions.ts";
import type { Server } from "./server.ts";

const PORTS = { dnsmasq: 5301, unbound: 5302, "aardvark-dns": 5303, floor: 5304 } as const;
// Upstream server in the container, for servers that forward from there.
const UPSTREAM = "127.1.0.1";

const DNSMASQ_LINES = [`server=${UPSTREAM}`, "cache-size=10000", "dns-forward-max=1000"];
const UNBOUND_LINES = [
  "msg-cache-size: 64m",
  "rrset-cache-size: 64m",
  "num-queries-per-thread: 2048",
  "outgoing-range: 4096",
  "incoming-num-tcp: 128",
];
const UNBOUND_FORWARD_LINES = ["forward-zone:", 'name: "."', `forward-addr: ${UPSTREAM}`];
// With more names no other types are queried, and dnsmasq would scan all of these lines.
const CLOSED_NAMES_MAX = 100;

type Rival = { readonly server: Server; readonly port: number; readonly pid: number };

export class Rivals implements AsyncDisposable {
  readonly all: Rival[] = [];
  readonly #owned: RealServer[] = [];

  // Without the floor if there is no compiler, without aardvark-dns if it is not installed.
  static async start(client: Container, hosts: readonly Host[], floor: string | undefined): Promise<Rivals> {
    const rivals = new Rivals();
    try {
      await rivals.#start(client, hosts, floor);
      return rivals;
    } catch (error) {
      await rivals[Symbol.asyncDispose]();
      throw error;
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const server of this.#owned) await server[Symbol.asyncDispose]();
  }

  async #start(client: Container, hosts: readonly Host[], floor: string | undefined): Promise<void> {
    this.#owned.push(await startUnbound(client, { address: UPSTREAM, lines: UPSTREAM_LINES }));
    const at = (server: keyof typeof PORTS) => ({ address: RESOLVER, port: PORTS[server] });
    this.#add("dnsmasq", await startDnsmasq(client, { ...at("dnsmasq"), lines: dnsmasqLines(hosts) }));
    this.#add("unbound", await startUnbound(client, { ...at("unbound"), lines: unboundLines(hosts) }));
    const aardvark = await startAardvark(client, { ...at("aardvark-dns"), upstream: UPSTREAM, hosts });
    if (aardvark !== undefined) this.#add("aardvark-dns", aardvark.server, aardvark.pid);
    if (floor !== undefined) this.#add("floor", await startFloor(client, floor, PORTS.floor));
  }

  #add(server: keyof typeof PORTS, owned: RealServer, pid = owned.pid): void {
    this.#owned.push(owned);
    this.all.push({ server, port: PORTS[server], pid });
  }
}

function dnsmasqLines(hosts: readonly Host[]): string[] {
  const closed = hosts.length > CLOSED_NAMES_MAX ? [] : hosts.map(({ name }) => `local=/${name}/`);
  return [...hosts.map(({ name, address }) => `host-record=${name},${address}`), ...closed, ...DNSMASQ_LINES];
}

function unboundLines(hosts: readonly Host[]): string[] {
  const local = hosts.flatMap(({ name, address }) => [
    `local-data: "${name}. 600 A ${address}"`,
    `local-data-ptr: "${address} 600 ${name}."`,
  ]);
  return [...UNBOUND_LINES, ...local, ...UNBOUND_FORWARD_LINES];
}

async function startFloor(client: Container, program: string, port: number): Promise<RealServer> {
  const inside = inNetns(client.netnsPath, program, [RESOLVER, String(port)]);
  const child = spawn("setpriv", ["--pdeathsig", "KILL", "--", ...inside], {
    stdio: ["ignore", "ignore", "pipe"],
    detached: true,
    env: { ...process.env, PATH: SYSTEM_PATH },
  });
  const server = new RealServer(child);
  await server.until(/ready/);
  return server;
}
