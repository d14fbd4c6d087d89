// A name server that answers 2,000 queries a second, each after 20 milliseconds: forty at once, and the rest waits.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";

import { addAddress, inNetns } from "../support/rig/netns.ts";
import { unrefChild } from "../support/rig/reaper.ts";
import { inTime } from "../support/rig/wait.ts";

const AT_ONCE = 40;
const TOOK_MS = 20;

export async function startSlowServer(
  place: { readonly netnsPath: string },
  address: string,
): Promise<AsyncDisposable> {
  await addAddress(place.netnsPath, address);
  const program = fileURLToPath(new URL("./slow-server-main.js", import.meta.url));
  const args = [program, address, String(AT_ONCE), String(TOOK_MS)];
  const [command = "", ...rest] = inNetns(place.netnsPath, process.execPath, args);
  const child = spawn(command, rest, { stdio: ["pipe", "pipe", "inherit"], detached: true });
  await inTime(once(child.stdout, "data"), "the slow server");
  unrefChild(child);
  return {
    async [Symbol.asyncDispose]() {
      child.stdin.end();
      await inTime(once(child, "exit"), "the exit of the slow server");
    },
  };
}
