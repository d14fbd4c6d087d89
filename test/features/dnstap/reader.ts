/** A reader of dnstap that others have written: fstrm_capture writes what it is sent into a file, which dnstap-ldns decodes. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync, rmSync } from "node:fs";

import { SYSTEM_PATH, check } from "../../support/program/command.ts";
import { unrefChild } from "../../support/rig/reaper.ts";
import { inTime, waitFor } from "../../support/rig/wait.ts";

/** The flags of a listening socket, in /proc/net/unix. */
const LISTENS = " 00010000 ";

export class Reader implements AsyncDisposable {
  readonly #socket: string;
  readonly #file: string;
  readonly #process: ChildProcess;
  readonly #ended: Promise<unknown>;

  private constructor(process: ChildProcess, socket: string, file: string) {
    this.#socket = socket;
    this.#process = process;
    this.#file = file;
    this.#ended = once(process, "close");
    unrefChild(process);
  }

  /** Ends with the process of the test. */
  static async start(socket: string, file: string): Promise<Reader> {
    rmSync(socket, { force: true });
    const capture = ["fstrm_capture", "-t", "protobuf:dnstap.Dnstap", "-u", socket, "-w", file];
    const child = spawn("setpriv", ["--pdeathsig", "KILL", "--", ...capture], {
      stdio: "ignore",
      env: { ...process.env, PATH: SYSTEM_PATH },
    });
    const reader = new Reader(child, socket, file);
    await waitFor("the socket of the reader", () => Promise.resolve(existsSync(socket) ? true : undefined));
    return reader;
  }

  signal(name: NodeJS.Signals): void {
    this.#process.kill(name);
  }

  /** Ends it and returns what it has got: lines such as `2026-01-01 12:00:00.000000 CQ 172.18.0.2 UDP 40b "web." IN A`. */
  async lines(): Promise<string[]> {
    return (await this.#decoded("-q")).split("\n").filter((line) => line !== "");
  }

  /** The same with the messages, in YAML. */
  async messages(): Promise<string[]> {
    return (await this.#decoded("-y")).split("\n---\n").filter((text) => text.includes("type: MESSAGE"));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#end("SIGKILL");
  }

  async #decoded(form: string): Promise<string> {
    await this.#finished();
    await this.#end("SIGTERM");
    return await check("dnstap-ldns", [form, "-r", this.#file]);
  }

  /** It has read all, and confirmed that, when the last connection is closed. */
  async #finished(): Promise<void> {
    const isConnection = (line: string): boolean => line.endsWith(` ${this.#socket}`) && !line.includes(LISTENS);
    await waitFor("the end of the connections to the reader", () => {
      const lines = readFileSync(`/proc/${this.#process.pid}/net/unix`, "utf8").split("\n");
      return Promise.resolve(lines.some(isConnection) ? undefined : true);
    });
  }

  async #end(name: NodeJS.Signals): Promise<void> {
    if (this.#process.exitCode === null && this.#process.signalCode === null) this.#process.kill(name);
    await inTime(this.#ended, "the exit of the reader");
  }
}
