/**
 * dnsmasq, unbound, BIND and others started by a test: independent name servers with a configuration of a few lines, in any network
 * namespace. They end with the process that started them.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";

import { SYSTEM_PATH } from "../program/command.ts";
import { addAddress, inNetns } from "../rig/netns.ts";
import { unrefChild } from "../rig/reaper.ts";
import { inTime } from "../rig/wait.ts";

export interface RealServerOptions {
  readonly address: string;
  readonly port?: number;
  /** What the command is started by. */
  readonly prefix?: readonly string[];
  readonly args?: readonly string[];
  /** Further lines of the server's configuration, after those for its address. */
  readonly lines: readonly string[];
}

/** How a server is started, and what it prints when it is ready. */
interface Program {
  readonly command: string;
  readonly args: readonly string[];
  readonly lines: (address: string, port: number) => string[];
  readonly ready: RegExp;
}

/**
 * Starts a program whose input is a pipe that it can open by name: Node's is a socket, which it cannot. So its configuration
 * is no file, which a test that is killed would leave, and no argument, which is too short for thousands of names.
 */
const WITH_INPUT = ["sh", "-c", 'exec "$@" <<EOF\n$(cat)\nEOF', "sh"];

const UNBOUND: Program = {
  command: "unbound",
  args: ["-d", "-d", "-c", "/dev/stdin"],
  lines: (address, port) => [
    "server:",
    `interface: ${address}@${port}`,
    "access-control: 0.0.0.0/0 allow",
    "do-not-query-localhost: no",
    "num-threads: 1",
    // Stay root: a process that changes its user loses the parent death signal.
    'username: ""',
    'chroot: ""',
    'pidfile: ""',
    "use-syslog: no",
    'logfile: ""',
    "verbosity: 1",
    'module-config: "iterator"',
    "local-zone: test. nodefault",
  ],
  ready: /start of service/,
};

const DNSMASQ: Program = {
  command: "dnsmasq",
  args: ["--keep-in-foreground", "--conf-file=/dev/stdin"],
  lines: (address, port) => [
    `listen-address=${address}`,
    `port=${port}`,
    "bind-interfaces",
    "user=root",
    "pid-file=",
    "no-resolv",
    "no-hosts",
    "log-facility=-",
  ],
  ready: /started, version/,
};

/** By TLS alone; the lines say with which certificate, and what it answers. It writes to its standard output. */
const DNSDIST: Program = {
  command: "sh",
  args: ["-c", "exec dnsdist --supervised --disable-syslog -C /dev/stdin >&2"],
  lines: (address) => ['setSecurityPollSuffix("")', `setLocal("${address}:5399")`, 'setACL("0.0.0.0/0")'],
  ready: /No downstream servers/,
};

/** The same. Its arguments say where its folder is. */
const KRESD: Program = {
  command: "kresd",
  args: ["-n", "-c", "/dev/stdin"],
  lines: () => ["modules.unload('ta_update')", "modules.unload('detect_time_skew')", "modules.unload('priming')"],
  ready: /is ready/,
};

/** It logs each query, with what it is told of who asks. */
const BIND: Program = {
  command: "named",
  args: ["-g", "-c", "/dev/stdin"],
  lines: (address, port) => [
    `options { listen-on port ${port} { ${address}; }; listen-on-v6 { none; }; recursion no; querylog yes;`,
    '  directory "/"; pid-file none; session-keyfile none; allow-query { any; }; };',
    "controls { };",
  ],
  ready: /running$/m,
};

type NamespaceOwner = { readonly netnsPath: string };

export async function startUnbound(place: NamespaceOwner, options: RealServerOptions): Promise<RealServer> {
  return await start(place, UNBOUND, options);
}

export async function startDnsdist(place: NamespaceOwner, options: RealServerOptions): Promise<RealServer> {
  return await start(place, DNSDIST, options);
}

export async function startKresd(place: NamespaceOwner, options: RealServerOptions): Promise<RealServer> {
  return await start(place, KRESD, {
    ...options,
    lines: [...options.lines, String.raw`io.stderr:write('is ready\n')`],
  });
}

export async function startDnsmasq(place: NamespaceOwner, options: RealServerOptions): Promise<RealServer> {
  return await start(place, DNSMASQ, options);
}

export async function startBind(place: NamespaceOwner, options: RealServerOptions): Promise<RealServer> {
  return await start(place, BIND, options);
}

async function start(
  { netnsPath }: NamespaceOwner,
  program: Program,
  { address, port = 53, prefix = [], args: more = [], lines }: RealServerOptions,
): Promise<RealServer> {
  if (!address.startsWith("127.")) await addAddress(netnsPath, address);
  const settings = [...program.lines(address, port), ...lines].join("\n");
  // Only the engine cleans up its namespace, so this must end with the test process.
  const [command = "", ...args] = [...prefix, ...WITH_INPUT, program.command, ...program.args, ...more];
  const inside = inNetns(netnsPath, command, args);
  const child = spawn("setpriv", ["--pdeathsig", "KILL", "--", ...inside], {
    stdio: ["pipe", "ignore", "pipe"],
    detached: true,
    env: { ...process.env, PATH: SYSTEM_PATH },
  });
  const server = new RealServer(child);
  // One that ends before it has read all says why.
  child.stdin.on("error", () => undefined).end(settings);
  await server.until(program.ready);
  return server;
}

export class RealServer implements AsyncDisposable {
  readonly #process: ChildProcess;
  readonly #ended: Promise<void>;
  #stderr = "";
  #onStderr: () => void = () => {};

  constructor(process: ChildProcess) {
    this.#process = process;
    process.stderr?.on("data", (chunk: Buffer) => {
      this.#stderr += chunk.toString();
      this.#onStderr();
    });
    this.#ended = once(process, "close").then(() => undefined);
    unrefChild(process);
  }

  /** Of the server itself: setpriv and nsenter exec it. */
  get pid(): number {
    return this.#process.pid ?? 0;
  }

  /** What it has written. */
  get log(): string {
    return this.#stderr;
  }

  /** Waits until its output matches. */
  async until(pattern: RegExp): Promise<void> {
    const ended = this.#ended.then(() => {
      throw new Error(`the server exited: ${this.#stderr.trim()}`);
    });
    const matched = new Promise<void>((resolve) => {
      this.#onStderr = () => (pattern.test(this.#stderr) ? resolve() : undefined);
      this.#onStderr();
    });
    try {
      await inTime(Promise.race([matched, ended]), `${String(pattern)} in the server's output`);
    } catch (error) {
      await this[Symbol.asyncDispose]();
      throw error;
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#process.kill("SIGKILL");
    await inTime(this.#ended, "the exit of the server");
  }
}
