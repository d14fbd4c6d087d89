// ResolverClient: queries both resolvers, Docker's and ours, from inside one container. It uses the ports on which each
// one listens, so that the redirect rules of neither are involved.

import { type ChildProcessByStdio, spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import type { Readable, Writable } from "node:stream";
import { fileURLToPath } from "node:url";

import { SYSTEM_PATH } from "../../support/program/command.ts";
import { inNetns } from "../../support/rig/netns.ts";
import { unrefChild } from "../../support/rig/reaper.ts";
import { inTime } from "../../support/rig/wait.ts";
import type { Question } from "./question.ts";

export type Ports = { readonly udp: number; readonly tcp: number };

// One line to the process in the namespace.
export type QueryRequest = {
  readonly key: number;
  // An IPv4 address; default: 127.0.0.11.
  readonly server?: string | undefined;
  readonly port: number;
  readonly transport: "udp" | "tcp";
  // As hex, like all octets here.
  readonly messages: readonly string[];
  readonly tail?: string | undefined;
  readonly chunk?: number | undefined;
  readonly isHalfClosed?: boolean | undefined;
  readonly untilClosed?: boolean | undefined;
  readonly waitMs: number;
};

// One line from it.
export type Outcome = {
  readonly key: number;
  readonly replies: readonly string[];
  readonly ended: string;
  readonly elapsedMs: number;
};

// In addition to the time that the process itself waits.
const LATE_MS = 20_000;

export class ResolverClient implements Disposable {
  readonly #process: ChildProcessByStdio<Writable, Readable, null>;
  readonly #pending = new Map<number, (outcome: Outcome) => void>();
  #keys = 0;

  constructor(netnsPath: string) {
    const program = fileURLToPath(new URL("./client-main.js", import.meta.url));
    const [command = "", ...args] = inNetns(netnsPath, process.execPath, [program]);
    this.#process = spawn(command, args, {
      stdio: ["pipe", "pipe", "inherit"],
      env: { ...process.env, PATH: SYSTEM_PATH },
    });
    this.#process.stdin.on("error", () => {});
    createInterface({ input: this.#process.stdout }).on("line", (line) => {
      const outcome = JSON.parse(line) as Outcome;
      this.#pending.get(outcome.key)?.(outcome);
    });
    unrefChild(this.#process);
  }

  // Sets this id in every message that is long enough to have one.
  async query(question: Question, id: number, ports: Ports, server?: string): Promise<Outcome> {
    const key = (this.#keys += 1);
    const { transport, tail, chunk, isHalfClosed, untilClosed, waitMs } = question;
    const messages = question.messages.map((message) => withId(message, id).toString("hex"));
    const port = ports[transport];
    const options = { tail: tail?.toString("hex"), chunk, isHalfClosed, untilClosed, waitMs };
    const outcome = new Promise<Outcome>((resolve) => this.#pending.set(key, resolve));
    const request: QueryRequest = { key, server, port, transport, messages, ...options };
    this.#process.stdin.write(`${JSON.stringify(request)}\n`);
    return await inTime(outcome, `the outcome of "${question.label}"`, waitMs + LATE_MS);
  }

  [Symbol.dispose](): void {
    this.#process.kill("SIGKILL");
  }
}

function withId(message: Buffer, id: number): Buffer {
  if (message.length < 2) return message;
  const octets = Buffer.from(message);
  octets.writeUInt16BE(id);
  return octets;
}

const RESOLVER_IN_PROC = "0B00007F";
const LISTENING = "0A";

// The ports of the resolver at 127.0.0.11 in the namespace of this process. Before dns11 attaches, that is Docker's.
export function portsAt(pid: number): Ports {
  const sockets = (protocol: string): number[] =>
    readFileSync(`/proc/${pid}/net/${protocol}`, "utf8")
      .split("\n")
      .map((line) => line.trim().split(/\s+/))
      .filter(([, local = "", , state]) => {
        return local.startsWith(`${RESOLVER_IN_PROC}:`) && (protocol === "udp" || state === LISTENING);
      })
      .map(([, local = ""]) => Number.parseInt(local.split(":")[1] ?? "", 16));
  const [udp, ...otherUdp] = sockets("udp");
  const [tcp, ...otherTcp] = sockets("tcp");
  if (udp === undefined || tcp === undefined || otherUdp.length + otherTcp.length > 0) {
    throw new Error(`expected exactly one resolver at 127.0.0.11 of process ${pid}`);
  }
  return { udp, tcp };
}
