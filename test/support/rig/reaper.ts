/**
 * Reaper: cleans up after a test file however it ends. A small separate process knows what the test has created; its
 * pipe closes when the test dies, also by SIGKILL, and then it removes what is left. It is a shell, which starts Node only if something
 * is left: a Node for each file took some percent of the processor time of a whole run.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { Socket } from "node:net";
import { fileURLToPath } from "node:url";
import { type Leftovers, removeLeftovers } from "./leftovers.ts";

/** Keeps the last line of each id that begins with "hold", and gives these, without their first two words, to the program in $1 and $2. */
const SCRIPT = `
awk '$1 == "hold" { held[$2] = substr($0, length($1 $2) + 3) } $1 == "release" { delete held[$2] } END { for (id in held) print held[id] }' |
  { IFS= read -r first || exit 0; { printf '%s\n' "$first"; cat; } | xargs -d '\n' "$@"; }
`;

let reaper: ChildProcess | undefined;

/** Call it before creating the resource: half-created ones must be removed, too. */
export function hold(leftovers: Leftovers): void {
  reaper ??= startReaper();
  order(reaper, `hold ${leftovers.id} ${JSON.stringify(leftovers)}`);
}

export async function removeTracked(leftovers: Leftovers): Promise<void> {
  await removeLeftovers(leftovers);
  release(leftovers);
}

/** For a resource that its owner has removed. */
export function release({ id }: Leftovers): void {
  if (reaper !== undefined) order(reaper, `release ${id}`);
}

/** Keeps a child that a test did not stop, and the pipes to it, from keeping the test process alive. */
export function unrefChild(child: ChildProcess): void {
  child.unref();
  for (const pipe of [child.stdin, child.stdout, child.stderr]) {
    if (pipe instanceof Socket) pipe.unref();
  }
}

function order(child: ChildProcess, line: string): void {
  child.stdin?.write(`${line}\n`);
}

function startReaper(): ChildProcess {
  const program = fileURLToPath(new URL("./reaper-main.js", import.meta.url));
  // Detached: Ctrl-C in a terminal must not kill it together with the test.
  const child = spawn("sh", ["-c", SCRIPT, "reaper", process.execPath, program], {
    stdio: ["pipe", "ignore", "ignore"],
    detached: true,
  });
  // A missing reaper is no reason to fail the test, which still cleans up itself.
  child.stdin.on("error", () => {});
  unrefChild(child);
  return child;
}
