/**
 * Reaper: cleans up after a test file however it ends. A small separate process knows what the test has created; its
 * pipe closes when the test dies, also by SIGKILL, and then it removes what is left.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { Socket } from "node:net";
import { fileURLToPath } from "node:url";
import { type Leftovers, removeLeftovers } from "./leftovers.ts";

export type ReaperOrder = { readonly hold: Leftovers } | { readonly release: string };

let reaper: ChildProcess | undefined;

/** Call it before creating the resource: half-created ones must be removed, too. */
export function hold(leftovers: Leftovers): void {
  reaper ??= startReaper();
  order(reaper, { hold: leftovers });
}

export async function removeTracked(leftovers: Leftovers): Promise<void> {
  await removeLeftovers(leftovers);
  release(leftovers);
}

/** For a resource that its owner has removed. */
export function release({ id }: Leftovers): void {
  if (reaper !== undefined) order(reaper, { release: id });
}

/** Keeps a child that a test did not stop, and the pipes to it, from keeping the test process alive. */
export function unrefChild(child: ChildProcess): void {
  child.unref();
  for (const pipe of [child.stdin, child.stdout, child.stderr]) {
    if (pipe instanceof Socket) pipe.unref();
  }
}

function order(child: ChildProcess, message: ReaperOrder): void {
  child.stdin?.write(`${JSON.stringify(message)}\n`);
}

function startReaper(): ChildProcess {
  const program = fileURLToPath(new URL("./reaper-main.js", import.meta.url));
  // Detached: Ctrl-C in a terminal must not kill it together with the test.
  const child = spawn(process.execPath, [program], { stdio: ["pipe", "ignore", "ignore"], detached: true });
  // A missing reaper is no reason to fail the test, which still cleans up itself.
  child.stdin.on("error", () => {});
  unrefChild(child);
  return child;
}
