// HostServer: the host's nameserver in the hostile tests; see host-server-main.ts.

import { type ChildProcessByStdio, spawn } from "node:child_process";
import { once } from "node:events";
import type { Readable, Writable } from "node:stream";
import { fileURLToPath } from "node:url";

import { SYSTEM_PATH } from "../support/program/command.ts";
import { inNetns } from "../support/rig/netns.ts";
import { unrefChild } from "../support/rig/reaper.ts";
import { inTime } from "../support/rig/wait.ts";

const PROGRAM = fileURLToPath(new URL("./host-server-main.js", import.meta.url));

export class HostServer implements AsyncDisposable {
  readonly #process: ChildProcessByStdio<Writable, Readable, null>;
  readonly #ended: Promise<unknown>;

  private constructor(netnsPath: string, address: string, zones: Readonly<Record<string, string>>) {
    // It runs before others, so that only attacks can make it slow.
    const [command = "", ...args] = inNetns(netnsPath, "nice", [
      ...["-n", "-15", process.execPath, PROGRAM],
      address,
      ...Object.entries(zones).map((zone) => zone.join("=")),
    ]);
    this.#process = spawn(command, args, {
      stdio: ["pipe", "pipe", "inherit"],
      env: { ...process.env, PATH: SYSTEM_PATH },
    });
    this.#process.stdin.on("error", () => undefined);
    this.#ended = once(this.#process, "close");
  }

  static async at(
    place: { netnsPath: string },
    address: string,
    zones: Readonly<Record<string, string>>,
  ): Promise<HostServer> {
    const server = new HostServer(place.netnsPath, address, zones);
    await inTime(once(server.#process.stdout, "data"), "the host's server");
    unrefChild(server.#process);
    return server;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#process.stdin.end();
    await inTime(this.#ended, "the end of the host's server");
  }
}
