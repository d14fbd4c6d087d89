/**
 * avahi-daemon of Debian without D-Bus, as the mDNS program of a test's host and of other machines on its local network, which are
 * network namespaces on one segment. Each has a /run of its own.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { createInterface } from "node:readline";

import type { Engine } from "../../support/engine/engine.ts";
import { SYSTEM_PATH, check } from "../../support/program/command.ts";
import { makeFolder } from "../../support/rig/folder.ts";
import { Netns } from "../../support/rig/netns.ts";
import { unrefChild } from "../../support/rig/reaper.ts";
import { inTime, waitFor } from "../../support/rig/wait.ts";

/** The link of the engine's host to the local network. */
export const LINK = "lan0";
export const LAN = { host: "192.168.77.1", host6: "fd77::1", machine: "192.168.77.2", machine6: "fd77::2" } as const;

const START = `
set -eu
mkdir -p /run/avahi-daemon
exec avahi-daemon --no-drop-root --no-chroot --no-rlimits --no-proc-title -f "$1"
`;
const OWN_FILES = `mount -t tmpfs tmpfs /run\nmount --bind "$2" /etc/avahi/hosts\n${START}`;

interface AvahiOptions {
  readonly hostName: string;
  readonly links: readonly string[];
  /** Names of other machines that it announces, with their addresses. */
  readonly hosts?: Readonly<Record<string, string>>;
}

/** The engine's own; its socket is where the host's programs look for it. */
export async function startHostAvahi(engine: Engine, options: AvahiOptions): Promise<Avahi> {
  const target = ["nsenter", "--target", String(engine.hostPid), "--mount", "--net"];
  const avahi = await start([...target, "sh", "-c", START], options);
  await waitFor("the socket of avahi-daemon", () => (existsSync(socketOf(engine)) ? true : undefined));
  return avahi;
}

/** The first line that the engine's avahi-daemon replies. */
export async function askAvahi(engine: Engine, line: string): Promise<string> {
  const socket = connect(socketOf(engine));
  socket.write(`${line}\n`);
  for await (const reply of createInterface({ input: socket })) return reply;
  return "";
}

function socketOf(engine: Engine): string {
  return `/proc/${engine.hostPid}/root/run/avahi-daemon/socket`;
}

/** A machine on the local network of the engine's host, which it makes. */
export async function addMachine(engine: Engine, options: Omit<AvahiOptions, "links">): Promise<Machine> {
  const netns = await Netns.create();
  await check("ip", [
    "-n",
    engine.id,
    "link",
    "add",
    LINK,
    "type",
    "veth",
    "peer",
    "name",
    "eth0",
    "netns",
    netns.name,
  ]);
  for (const [name, link, address, address6] of [
    [engine.id, LINK, LAN.host, LAN.host6],
    [netns.name, "eth0", LAN.machine, LAN.machine6],
  ] as const) {
    await check("ip", ["-n", name, "address", "add", `${address}/24`, "dev", link]);
    await check("ip", ["-n", name, "address", "add", `${address6}/64`, "dev", link, "nodad"]);
    await check("ip", ["-n", name, "link", "set", link, "up"]);
  }
  return new Machine(netns, await startIn(netns, { ...options, links: ["eth0"] }));
}

/** In the network namespace of a machine or a container, with the test's files. */
export async function startIn(place: { readonly netnsPath: string }, options: AvahiOptions): Promise<Avahi> {
  return await start(
    ["nsenter", `--net=${place.netnsPath}`, "--", "unshare", "--mount", "sh", "-c", OWN_FILES],
    options,
  );
}

async function start(words: readonly string[], { hostName, links, hosts = {} }: AvahiOptions): Promise<Avahi> {
  const folder = makeFolder("avahi");
  const config = join(folder, "avahi.conf");
  const lines = [
    "[server]",
    `host-name=${hostName}`,
    "use-ipv4=yes",
    "use-ipv6=yes",
    "enable-dbus=no",
    `allow-interfaces=${links.join(",")}`,
    "[wide-area]",
    "enable-wide-area=no",
    "[publish]",
    "publish-workstation=no",
  ];
  writeFileSync(config, `${lines.join("\n")}\n`);
  const others = join(folder, "hosts");
  writeFileSync(
    others,
    Object.entries(hosts)
      .map(([name, address]) => `${address} ${name}\n`)
      .join(""),
  );
  const child = spawn("setpriv", ["--pdeathsig", "KILL", "--", ...words, "avahi", config, others], {
    stdio: ["ignore", "ignore", "pipe"],
    detached: true,
    env: { ...process.env, PATH: SYSTEM_PATH },
  });
  const avahi = new Avahi(child);
  await avahi.until(/Server startup complete/);
  return avahi;
}

export class Avahi implements AsyncDisposable {
  readonly #process: ChildProcess;
  readonly #ended: Promise<unknown>;
  #stderr = "";

  constructor(child: ChildProcess) {
    this.#process = child;
    child.stderr?.on("data", (chunk: Buffer) => (this.#stderr += chunk.toString()));
    this.#ended = once(child, "close");
    unrefChild(child);
  }

  async until(pattern: RegExp): Promise<void> {
    await waitFor(`${pattern} of avahi-daemon`, () => {
      if (this.#process.exitCode !== null) throw new Error(`avahi-daemon has ended: ${this.#stderr}`);
      return pattern.test(this.#stderr) ? true : undefined;
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#process.kill("SIGKILL");
    await inTime(this.#ended, "the exit of avahi-daemon");
  }
}

export class Machine implements AsyncDisposable {
  readonly netns: Netns;
  readonly avahi: Avahi;

  constructor(netns: Netns, avahi: Avahi) {
    this.netns = netns;
    this.avahi = avahi;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.avahi[Symbol.asyncDispose]();
    await this.netns[Symbol.asyncDispose]();
  }
}
