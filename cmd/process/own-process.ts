/**
 * OwnProcess: a command that looks into containers runs in a process of its own. Whoever reads the rules of a container waits for
 * their lock, at the latest when the process ends, and nothing interrupts that. So whoever typed the command has the result and
 * the prompt when the command is done, and the other process ends when the lock is free.
 */
import { fork } from "node:child_process";
import { closeSync, readFileSync } from "node:fs";
import { constants } from "node:os";
import { EXIT } from "./exit-code.ts";
import { Fault } from "../../src/base/lib/fault.ts";

/** Aborts at the first SIGTERM or SIGINT, or one of these, for a graceful shutdown; a second one exits at once. */
export function abortOnSignal(...others: readonly NodeJS.Signals[]): AbortSignal {
  const controller = new AbortController();
  const onSignal = (): void => {
    if (controller.signal.aborted) process.exit(1);
    controller.abort();
  };
  for (const name of ["SIGTERM", "SIGINT", ...others] as const) process.on(name, onSignal);
  return controller.signal;
}

/** Whether the terminal sends its signals to this process; then it sends them to its children, too. */
export function isInForeground(): boolean {
  const stat = readFileSync("/proc/self/stat", "latin1");
  const [, , group, , , foreground] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return group === foreground;
}

export function stopped(): Fault {
  return new Fault("ENDED", "dns11 has stopped, or another process has replaced it", {
    remedy: "Run the command again. If dns11 does not run any more, its log says why.",
  });
}

const VARIABLE = "DNS11_OWN_PROCESS";
const STANDARD_STREAMS = [0, 1, 2];
/** Added to the number of the signal that ended a process, as shells do. */
const BY_SIGNAL = 128;

const isOwn = process.env[VARIABLE] !== undefined && process.channel !== undefined;
delete process.env[VARIABLE];

type Action<Words extends unknown[]> = (...words: Words) => Promise<void>;

/** The action of a command that looks into containers. */
export function inOwnProcess<Words extends unknown[]>(work: Action<Words>): Action<Words> {
  return async (...words) => {
    if (!isOwn) {
      process.exitCode = await runAgain();
      return;
    }
    process.channel?.unref();
    // Nobody waits for the result any more.
    process.once("disconnect", () => process.exit());
    await work(...words);
  };
}

/** Ends the process, whatever is still pending. All output must have been written. */
export function endProcess(): void {
  if (!isOwn) process.exit();
  process.send?.(process.exitCode ?? EXIT.ok, () => {
    // Whoever reads the output waits for its end, too.
    for (const fd of STANDARD_STREAMS) closeSync(fd);
    process.exit();
  });
}

/** Runs this command line once more; resolves to its exit code when it is done, or has ended in another way. */
async function runAgain(): Promise<number> {
  const env = { ...process.env, [VARIABLE]: "1" };
  const child = fork(process.argv[1] ?? "", process.argv.slice(2), { stdio: "inherit", env });
  return await new Promise((resolve, reject) => {
    child.once("message", (code) => resolve(Number(code)));
    child.once("exit", (code, signal) => resolve(code ?? BY_SIGNAL + constants.signals[signal ?? "SIGKILL"]));
    child.once("error", reject);
  });
}
