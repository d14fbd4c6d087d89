/**
 * Service manager of a test: a Unix datagram socket, with a path or an abstract name, and the sd_notify messages it
 * received. It uses python3, because Node has no such sockets; so it shares no code with dns11.
 */
import { type ChildProcessByStdio, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import type { Readable } from "node:stream";

import { SYSTEM_PATH } from "./command.ts";
import { unrefChild } from "../rig/reaper.ts";
import { waitFor } from "../rig/wait.ts";

const RECEIVER = `
import json, socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
name = sys.argv[1]
s.bind("\\0" + name[1:] if name.startswith("@") else name)
print("ready", flush=True)
while True:
    print(json.dumps(s.recv(65536).decode()), flush=True)
`;

export async function startSupervisor(name: string): Promise<Supervisor> {
  const receiver = spawn("python3", ["-c", RECEIVER, name], {
    stdio: ["ignore", "pipe", "inherit"],
    env: { ...process.env, PATH: SYSTEM_PATH },
  });
  unrefChild(receiver);
  const supervisor = new Supervisor(name, receiver);
  await waitFor("the supervisor's socket", async () => await Promise.resolve(supervisor.isReady ? true : undefined));
  return supervisor;
}

export class Supervisor implements AsyncDisposable {
  readonly name: string;
  readonly #receiver: ChildProcessByStdio<null, Readable, null>;
  readonly #messages: Record<string, string>[] = [];
  isReady = false;

  constructor(name: string, receiver: ChildProcessByStdio<null, Readable, null>) {
    this.name = name;
    this.#receiver = receiver;
    createInterface({ input: receiver.stdout }).on("line", (line) => {
      if (!this.isReady) this.isReady = true;
      else this.#messages.push(assignments(JSON.parse(line) as string));
    });
  }

  /** Each message as its assignments. */
  get messages(): readonly Readonly<Record<string, string>>[] {
    return this.#messages;
  }

  /** The first message with this assignment, after the first `skipped` messages. */
  async message(key: string, value?: string | RegExp, skipped = 0): Promise<Readonly<Record<string, string>>> {
    const fits = (text: string | undefined): boolean => {
      if (text === undefined) return false;
      if (value === undefined) return true;
      return typeof value === "string" ? text === value : value.test(text);
    };
    try {
      return await waitFor(`${key}=${String(value)}`, async () => {
        return await Promise.resolve(this.#messages.slice(skipped).find((message) => fits(message[key])));
      });
    } catch (error) {
      throw new Error(`Received: ${JSON.stringify(this.#messages)}`, { cause: error });
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    // It was unreferenced so that a failing test can end; here we wait for its exit.
    this.#receiver.ref();
    this.#receiver.kill("SIGKILL");
    await once(this.#receiver, "close");
  }
}

function assignments(text: string): Record<string, string> {
  return Object.fromEntries(
    text.split("\n").map((line) => [line.slice(0, line.indexOf("=")), line.slice(line.indexOf("=") + 1)]),
  );
}
