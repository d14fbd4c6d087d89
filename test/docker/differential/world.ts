// Owns the world's name servers of the differential test: several at once, for what a resolver does with one server
// hangs on what it got from the one before. They remember every message they got.

import { type ChildProcessByStdio, spawn } from "node:child_process";
import { createInterface } from "node:readline";
import type { Readable, Writable } from "node:stream";
import { fileURLToPath } from "node:url";

import { SYSTEM_PATH } from "../../support/program/command.ts";
import { addAddress, inNetns } from "../../support/rig/netns.ts";
import { unrefChild } from "../../support/rig/reaper.ts";
import type { Transport } from "../../support/servers/upstream-question.ts";
import { inTime } from "../../support/rig/wait.ts";

export type Asked = {
  // The place of the server's address in the list.
  readonly server: number;
  readonly transport: Transport;
  // As hex.
  readonly message: string;
};

export type WorldLine = "ready" | "told" | Asked;

export class World implements Disposable {
  readonly #process: ChildProcessByStdio<Writable, Readable, null>;
  readonly #asked = new Map<number, Asked[]>();
  #onWord: () => void = () => {};

  private constructor(netnsPath: string, addresses: readonly string[]) {
    const program = fileURLToPath(new URL("./world-main.js", import.meta.url));
    const [command = "", ...args] = inNetns(netnsPath, process.execPath, [program, ...addresses]);
    this.#process = spawn(command, args, {
      stdio: ["pipe", "pipe", "inherit"],
      env: { ...process.env, PATH: SYSTEM_PATH },
    });
    this.#process.stdin.on("error", () => {});
    createInterface({ input: this.#process.stdout }).on("line", (line) => this.#hear(JSON.parse(line) as WorldLine));
    unrefChild(this.#process);
  }

  // At addresses that are put on the namespace's loopback first, unless it has them already.
  static async start(netnsPath: string, addresses: readonly string[], hasAddresses = false): Promise<World> {
    if (!hasAddresses) for (const address of addresses) await addAddress(netnsPath, address);
    const world = new World(netnsPath, addresses);
    await world.#word("the start of the world's servers");
    return world;
  }

  // The messages under this id, in the order in which they came.
  async asked(): Promise<ReadonlyMap<number, readonly Asked[]>> {
    this.#process.stdin.write("tell\n");
    await this.#word("what the world's servers were asked");
    return this.#asked;
  }

  [Symbol.dispose](): void {
    this.#process.kill("SIGKILL");
  }

  async #word(what: string): Promise<void> {
    await inTime(new Promise<void>((resolve) => (this.#onWord = resolve)), what);
  }

  #hear(line: WorldLine): void {
    if (typeof line === "string") {
      this.#onWord();
      return;
    }
    const id = Buffer.from(line.message.slice(0, 4), "hex").readUInt16BE();
    const others = this.#asked.get(id) ?? [];
    this.#asked.set(id, [...others, line]);
  }
}
