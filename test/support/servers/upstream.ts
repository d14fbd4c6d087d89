/**
 * Small DNS server that simulates upstream servers in a test: real sockets in a network namespace of the test's choice,
 * behaviours that no real server shows on demand (see upstream-answer.ts), and a record of the queries it received.
 */
import { type ChildProcessByStdio, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import type { Readable, Writable } from "node:stream";
import { fileURLToPath } from "node:url";
import { SYSTEM_PATH } from "../program/command.ts";
import { addAddress, inNetns } from "../rig/netns.ts";
import { unrefChild } from "../rig/reaper.ts";
import type { UpstreamQuestion } from "./upstream-question.ts";
import { inTime } from "../rig/wait.ts";

export interface UpstreamOptions {
  readonly address?: string | undefined;
  readonly port?: number | undefined;
}

/** Output of the server's process, one JSON value a line. */
export type UpstreamLine = { readonly ready: true } | { readonly query: UpstreamQuestion } | { readonly echo: string };

/** A line of its input. */
export const RELEASE = "release";

type Server = ChildProcessByStdio<Writable, Readable, Readable>;

/**
 * Listens by default on 127.0.0.1, the nameserver of an engine's default resolv.conf; any other address is first added
 * to the namespace's loopback.
 */
export async function startUpstream(place: { netnsPath: string }, options: UpstreamOptions = {}): Promise<Upstream> {
  const { address = "127.0.0.1", port = 53 } = options;
  if (!address.startsWith("127.") && address !== "::1") await addAddress(place.netnsPath, address);
  const program = fileURLToPath(new URL("./upstream-main.js", import.meta.url));
  const [command = "", ...args] = inNetns(place.netnsPath, process.execPath, [program, address, String(port)]);
  const server = spawn(command, args, {
    stdio: ["pipe", "pipe", "pipe"],
    detached: true,
    env: { ...process.env, PATH: SYSTEM_PATH },
  });
  const upstream = new Upstream(server, address, port);
  await upstream.ready();
  return upstream;
}

export class Upstream implements AsyncDisposable {
  readonly address: string;
  readonly port: number;
  readonly #server: Server;
  readonly #questions: UpstreamQuestion[] = [];
  readonly #echoes = new Map<string, () => void>();
  readonly #ended: Promise<void>;
  #ready: () => void = () => {};
  #stderr = "";
  #echoed = 0;

  constructor(server: Server, address: string, port: number) {
    this.#server = server;
    this.address = address;
    this.port = port;
    server.stderr.on("data", (chunk: Buffer) => (this.#stderr += chunk.toString()));
    server.stdin.on("error", () => {});
    createInterface({ input: server.stdout }).on("line", (line) => this.#onLine(JSON.parse(line) as UpstreamLine));
    this.#ended = once(server, "close").then(() => undefined);
    unrefChild(server);
  }

  async ready(): Promise<void> {
    await this.#unlessEnded(new Promise<void>((resolve) => (this.#ready = resolve)));
  }

  /**
   * Every query since the start or the last forget(). The lines of one pipe come in order, so queries that arrived
   * before this call are included.
   */
  async queries(): Promise<readonly UpstreamQuestion[]> {
    const word = `echo ${(this.#echoed += 1)}`;
    const echo = new Promise<void>((resolve) => this.#echoes.set(word, resolve));
    this.#server.stdin.write(`${word}\n`);
    await this.#unlessEnded(echo);
    return [...this.#questions];
  }

  /** Those for one name, ignoring case. */
  async queriesFor(name: string): Promise<readonly UpstreamQuestion[]> {
    return (await this.queries()).filter((question) => question.name.toLowerCase() === name.toLowerCase());
  }

  /** Lets go of the replies that it holds. */
  release(): void {
    this.#server.stdin.write(`${RELEASE}\n`);
  }

  async forget(): Promise<void> {
    await this.queries();
    this.#questions.length = 0;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.stdin.end();
    await inTime(this.#ended, "the exit of the upstream server");
  }

  #onLine(line: UpstreamLine): void {
    if ("query" in line) this.#questions.push(line.query);
    else if ("echo" in line) this.#echoes.get(line.echo)?.();
    else this.#ready();
  }

  async #unlessEnded(what: Promise<void>): Promise<void> {
    const ended = this.#ended.then(() => {
      throw new Error(`the upstream server at ${this.address} exited: ${this.#stderr.trim()}`);
    });
    await inTime(Promise.race([what, ended]), "a line from the upstream server");
  }
}
