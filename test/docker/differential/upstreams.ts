// TestUpstreams: the upstream servers of the differential test. There are several, because what a resolver does with one
// server depends on the reply of the one before. They record every message that they receive.

import { type ChildProcessByStdio, spawn } from "node:child_process";
import { createInterface } from "node:readline";
import type { Readable, Writable } from "node:stream";
import { fileURLToPath } from "node:url";

import { wireLabels } from "../../../src/base/dns/name.ts";
import { PROBE_SUFFIX } from "../../../src/base/model/probe-message.ts";
import { SYSTEM_PATH } from "../../support/program/command.ts";
import { addAddress, inNetns } from "../../support/rig/netns.ts";
import { unrefChild } from "../../support/rig/reaper.ts";
import type { Transport } from "../../support/servers/upstream-question.ts";
import { inTime } from "../../support/rig/wait.ts";

export type ReceivedMessage = {
  // The index of the server's address in the list.
  readonly server: number;
  readonly transport: Transport;
  // As hex.
  readonly message: string;
};

export type UpstreamsLine = "ready" | "flushed" | ReceivedMessage;

const PROBE = Buffer.from(wireLabels(PROBE_SUFFIX) ?? []).toString("hex");

export class TestUpstreams implements Disposable {
  readonly #process: ChildProcessByStdio<Writable, Readable, null>;
  readonly #received = new Map<number, ReceivedMessage[]>();
  #onSignal: () => void = () => {};

  private constructor(netnsPath: string, addresses: readonly string[]) {
    const program = fileURLToPath(new URL("./upstreams-main.js", import.meta.url));
    const [command = "", ...args] = inNetns(netnsPath, process.execPath, [program, ...addresses]);
    this.#process = spawn(command, args, {
      stdio: ["pipe", "pipe", "inherit"],
      env: { ...process.env, PATH: SYSTEM_PATH },
    });
    this.#process.stdin.on("error", () => {});
    createInterface({ input: this.#process.stdout }).on("line", (line) =>
      this.#read(JSON.parse(line) as UpstreamsLine),
    );
    unrefChild(this.#process);
  }

  // Adds the addresses to the namespace's loopback interface first, unless it has them already.
  static async start(netnsPath: string, addresses: readonly string[], hasAddresses = false): Promise<TestUpstreams> {
    if (!hasAddresses) for (const address of addresses) await addAddress(netnsPath, address);
    const upstreams = new TestUpstreams(netnsPath, addresses);
    await upstreams.#nextSignal("the start of the upstream servers");
    return upstreams;
  }

  // The messages by id, in the order in which they arrived.
  async received(): Promise<ReadonlyMap<number, readonly ReceivedMessage[]>> {
    this.#process.stdin.write("flush\n");
    await this.#nextSignal("the queries that upstream servers received");
    return this.#received;
  }

  // Before ids are used again.
  forget(): void {
    this.#received.clear();
  }

  [Symbol.dispose](): void {
    this.#process.kill("SIGKILL");
  }

  async #nextSignal(what: string): Promise<void> {
    await inTime(new Promise<void>((resolve) => (this.#onSignal = resolve)), what);
  }

  #read(line: UpstreamsLine): void {
    if (typeof line === "string") {
      this.#onSignal();
      return;
    }
    // What dns11 asks to see whether its rules work, and Docker's resolver forwards while they do not: its id may be that of a question.
    if (line.message.includes(PROBE)) return;
    const id = Buffer.from(line.message.slice(0, 4), "hex").readUInt16BE();
    const others = this.#received.get(id) ?? [];
    this.#received.set(id, [...others, line]);
  }
}
