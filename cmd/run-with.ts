/**
 * RunWith: dns11 for as long as a command runs, for continuous integration: it serves before the command starts, ends after it,
 * and says which names failed if the command did.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { constants } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";

import type { ControlClient } from "../src/api/control-client.ts";
import { Fault } from "../src/base/lib/fault.ts";
import { type ControlOptions, clientFor } from "./options/control-options.ts";
import { EXIT } from "./process/exit-code.ts";
import { failuresText } from "./text/failures-text.ts";
import { printableText } from "./text/printable.ts";
import { isInForeground } from "./process/own-process.ts";
import { OwnServer } from "./process/own-server.ts";

/** All containers of a busy machine are attached by then. */
const READY_MS = 60_000;
const POLL_MS = 50;
/** As shells do for a command that a signal has ended. */
const SIGNAL_BASE = 128;
/** As shells do for a command that cannot be run. */
const NOT_FOUND = 127;

/** Returns the exit code of the command; or that of dns11, if it does not serve. */
export async function runWith(command: readonly string[], options: ControlOptions): Promise<number> {
  if (command.length === 0)
    throw new Fault("USAGE", "--with needs a command", { remedy: "For example: dns11 run --with -- npm test" });
  const signals = new Signals();
  const server = new OwnServer();
  try {
    const client = await Promise.race([readyClient(server, options, signals.received), server.ended]);
    if (typeof client === "number") return client === EXIT.ok ? EXIT.failure : client;
    if (client === undefined || signals.received.aborted) return EXIT.failure;
    const code = await exitCode(command, signals);
    if (server.exitCode !== undefined && server.exitCode !== EXIT.ok) {
      process.stderr.write("dns11: it ended while the command ran, which had Docker's resolver from then on\n");
      return code === EXIT.ok ? server.exitCode : code;
    }
    if (code !== 0) await explainFailures(client);
    return code;
  } finally {
    await server.stop();
  }
}

/** Signals go to the command while it runs. Before and after it, the first one ends the wait, and a second one the process. */
export class Signals {
  readonly #received = new AbortController();
  /** All that have come. */
  readonly seen = new Set<NodeJS.Signals>();
  child: ChildProcess | undefined;

  constructor() {
    for (const name of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(name, () => this.#on(name));
  }

  get received(): AbortSignal {
    return this.#received.signal;
  }

  #on(name: NodeJS.Signals): void {
    this.seen.add(name);
    if (this.child !== undefined) {
      // Many programs end without cleaning up at the second one.
      if (name === "SIGTERM" || !isInForeground()) this.child.kill(name);
    } else if (this.#received.signal.aborted) process.exit(1);
    else this.#received.abort();
  }
}

export async function readyClient(
  { pid }: OwnServer,
  options: ControlOptions,
  signal: AbortSignal,
): Promise<ControlClient | undefined> {
  for (const endMs = performance.now() + READY_MS; performance.now() < endMs;) {
    if (signal.aborted) return undefined;
    const client = await clientFor(options).catch(() => undefined);
    const status = await client?.status().catch(() => undefined);
    if (status?.isReady === true && status.pid === pid) return client;
    await sleep(POLL_MS);
  }
  throw new Fault("NOT_READY", `dns11 does not serve all containers after ${READY_MS / 1000} seconds`, {
    remedy: "Look at its log, or at: dns11 doctor",
  });
}

export async function exitCode(
  [command = "", ...args]: readonly string[],
  signals: Signals,
  env: NodeJS.ProcessEnv = process.env,
): Promise<number> {
  signals.child = spawn(command, args, { stdio: "inherit", env });
  try {
    return await ended(signals.child, command);
  } finally {
    signals.child = undefined;
  }
}

async function ended(child: ChildProcess, command: string): Promise<number> {
  return await new Promise((resolve) => {
    child.on("error", ({ message }) => {
      process.stderr.write(printableText(`dns11: cannot run "${command}": ${message}\n`));
      resolve(NOT_FOUND);
    });
    child.on("close", (code, signal) =>
      resolve(code ?? SIGNAL_BASE + (signal === null ? 0 : constants.signals[signal])),
    );
  });
}

/** Nothing if no name of a container failed. */
async function explainFailures(client: ControlClient): Promise<void> {
  const report = await client.failures().catch(() => undefined);
  if (report === undefined || report.failures.length === 0) return;
  process.stderr.write(`dns11: names that failed while the command ran:\n${failuresText(report, true)}`);
}
