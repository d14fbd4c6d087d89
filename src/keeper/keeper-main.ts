/**
 * The keeper's process: descriptor 3 is the channel to the main process that started it, 4 the socket where successors
 * connect. It gives up what it does not need, keeps what it is given, and ends when there is nothing left to keep.
 */
import { closeSync, openSync, writeSync } from "node:fs";

import { LIMITS } from "../base/limits.ts";
import { Channel, waitReadable } from "../kernel/channel.ts";
import { setCapabilities } from "../kernel/libc.ts";
import { NetlinkMemory } from "../kernel/netlink-socket.ts";
import { denyCalls } from "../kernel/seccomp.ts";
import { reasonOf } from "../base/lib/fault.ts";
import { DENIED_TO_KEEPER } from "./denied-calls.ts";
import { Keeper } from "./keeper.ts";
import { PeerProcess } from "./peer-process.ts";

const STDERR = 2;
const CHANNEL = 3;
const LISTENER = 4;
const CAP_NET_ADMIN = 1n << 12n;
/** What asks a process to stop comes to whole groups of them; the keeper ends when the main process has. */
const SIGNALS = ["SIGTERM", "SIGINT", "SIGHUP"] as const;

for (const signal of SIGNALS) process.on(signal, () => undefined);
giveUp();
const main = new PeerProcess(new Channel(CHANNEL));
const keeper = new Keeper({ main, listener: LISTENER, memory: new NetlinkMemory(), onEvent: tell });
keeper.run();
// Nobody connects any more, or waits for the end of our log: the lowest free number is that of what was closed last.
closeSync(LISTENER);
closeSync(STDERR);
openSync("/dev/null", "w");
// What is let go of follows when closing it costs nothing.
waitReadable([], LIMITS.nftLingerMs);
process.exit(0);

/** Only this thread's capabilities can be given up; what the others could do by theirs, no thread may. */
function giveUp(): void {
  try {
    if (!denyCalls(DENIED_TO_KEEPER))
      tell({ architecture: process.arch }, "system calls are not denied on this machine");
    setCapabilities(CAP_NET_ADMIN, CAP_NET_ADMIN, 0n);
  } catch (error) {
    tell({ reason: reasonOf(error) }, "the keeper could not give up what it does not need");
  }
}

/** As the log has it for machines. */
function tell(about: Readonly<Record<string, unknown>>, msg: string): void {
  const line = { level: "warn", time: new Date().toISOString(), keeper: process.pid, ...about, msg };
  try {
    writeSync(STDERR, `${JSON.stringify(line)}\n`);
  } catch {
    // Nobody reads it any more.
  }
}
