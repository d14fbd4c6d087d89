/** UiCommand: running `dns11 ui` of a test, the URL that it prints, and requests to its page. */
import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { type IncomingMessage, request } from "node:http";
import { Readable } from "node:stream";
import type { ReadableStream } from "node:stream/web";

import { PROGRAM } from "./built.ts";
import { SYSTEM_PATH } from "./command.ts";
import { PublicCopy } from "./public-copy.ts";
import { inTime, waitFor } from "../rig/wait.ts";

/** Of the instance whose page it is. */
export interface UiPlace {
  readonly host: string;
  readonly stateDir: string;
}

export interface UiOptions {
  readonly args?: readonly string[];
  readonly env?: NodeJS.ProcessEnv;
  /** User and group. */
  readonly uid?: number;
}

interface UiRequest {
  readonly method?: string;
  readonly body?: string;
  readonly signal?: AbortSignal | undefined;
  readonly token?: string;
}

export class UiCommand implements AsyncDisposable {
  /** With the token. */
  readonly url: string;
  readonly #child: ChildProcess;
  readonly #exited: Promise<unknown>;
  readonly #output: { text: string };

  private constructor(child: ChildProcess, exited: Promise<unknown>, output: { text: string }, url: string) {
    this.#child = child;
    this.#exited = exited;
    this.#output = output;
    this.url = url;
  }

  static async start({ host, stateDir }: UiPlace, options: UiOptions = {}): Promise<UiCommand> {
    const { args = ["--no-open"], env = {}, uid } = options;
    const words = ["ui", "--port", "0", "-H", host, "--state-dir", stateDir, ...args];
    const copy = uid === undefined ? undefined : await PublicCopy.get();
    const child = spawn(copy?.node ?? process.execPath, [copy?.pathOf(PROGRAM) ?? PROGRAM, ...words], {
      stdio: ["ignore", "pipe", "pipe"],
      env: { ...process.env, PATH: SYSTEM_PATH, ...env },
      ...(uid !== undefined && { uid, gid: uid }),
    });
    const exited = once(child, "close").catch(() => undefined);
    const output = { text: "" };
    for (const stream of [child.stdout, child.stderr])
      stream.on("data", (chunk: Buffer) => (output.text += chunk.toString()));
    const url = await waitFor("dns11 ui to print its URL", () => {
      if (child.exitCode !== null) throw new Error(`dns11 ui exited: ${output.text}`);
      return /^http:\S+$/m.exec(output.text)?.[0];
    });
    return new UiCommand(child, exited, output, url);
  }

  /** Without path and token. */
  get origin(): string {
    return new URL(this.url).origin;
  }

  get port(): string {
    return new URL(this.url).port;
  }

  get token(): string {
    return new URLSearchParams(new URL(this.url).hash.slice(1)).get("token") ?? "";
  }

  /** All that it has written so far. */
  get output(): string {
    return this.#output.text;
  }

  /** As a browser, which knows where names below localhost are; the machine's libc need not. */
  async fetch(path: string, { method = "GET", body, signal, token = this.token }: UiRequest = {}): Promise<Response> {
    const { hostname, host, port } = new URL(this.url);
    assert.match(hostname, /^d11-[0-9a-f]{32}\.localhost$/);
    const headers = { host, "x-dns11-token": token };
    const options = { host: "127.0.0.1", port, path, method, headers, agent: false, signal };
    const answer = await new Promise<IncomingMessage>((resolve, reject) => {
      request(options, resolve).on("error", reject).end(body);
    });
    answer.on("error", () => undefined);
    const stream = Readable.toWeb(answer) as ReadableStream<Uint8Array>;
    return new Response(stream, { status: answer.statusCode ?? 0 });
  }

  async end(signal: NodeJS.Signals = "SIGTERM"): Promise<number | null> {
    if (this.#child.exitCode === null && this.#child.signalCode === null) this.#child.kill(signal);
    await inTime(this.#exited, "dns11 ui to exit");
    return this.#child.exitCode;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.end();
  }
}
