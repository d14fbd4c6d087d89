/**
 * The keeper's process. Descriptor 3 is the channel to the main process that started it, 4 the socket where new processes
 * connect. It drops the privileges that it does not need, holds what it is given, and exits when there is nothing left
 * to hold.
 */
import { closeSync, fstatSync, openSync, writeSync } from "node:fs";

import { LIMITS } from "../base/limits.ts";
import { Channel, waitReadable } from "../kernel/channel.ts";
import { setCapabilities } from "../kernel/libc.ts";
import { NetlinkMemory } from "../kernel/netlink-socket.ts";
import { denyCalls } from "../kernel/seccomp.ts";
import { reasonOf } from "../base/lib/fault.ts";
import { printableJson } from "../base/lib/text.ts";
import { DENIED_TO_KEEPER } from "./denied-calls.ts";
import { Keeper } from "./keeper.ts";
import { PeerProcess } from "./peer-process.ts";

const STDERR = 2;
/** By which systemd tells a service that its log is the journal, and which socket that is. */
const JOURNAL_VARIABLE = "JOURNAL_STREAM";
const CHANNEL = 3;
const LISTENER = 4;
const CAP_NET_ADMIN = 1n << 12n;
/** To see the namespaces of a process that wants to take over. It can trace none: that call is denied. */
const CAP_SYS_PTRACE = 1n << 19n;
/** Stop signals go to whole process groups; the keeper exits after the main process. */
const SIGNALS = ["SIGTERM", "SIGINT", "SIGHUP"] as const;

for (const signal of SIGNALS) process.on(signal, () => undefined);
dropPrivileges();
const main = new PeerProcess(new Channel(CHANNEL));
const keeper = new Keeper({
  main,
  listener: LISTENER,
  memory: new NetlinkMemory(),
  onEvent: log,
  onAlone: () => isWaitedFor() && endLog(),
});
await keeper.run();
endLog();
// Released descriptors are closed once that no longer blocks.
waitReadable([], LIMITS.nftLingerMs);
process.exit(0);

/** Whether somebody reads the log until its end, and would wait for ours after the main process: not the journal, nor a file. */
function isWaitedFor(): boolean {
  const stderr = fstatSync(STDERR);
  const isJournal = process.env[JOURNAL_VARIABLE] === `${stderr.dev}:${stderr.ino}`;
  return (stderr.isFIFO() || stderr.isSocket()) && !isJournal;
}

/** Nothing should wait for the end of our log. A new descriptor gets the lowest free number, which is that of the one closed last. */
function endLog(): void {
  closeSync(STDERR);
  openSync("/dev/null", "w");
}

/**
 * Capabilities can only be dropped for this thread. For the other threads the filter denies what theirs would allow.
 */
function dropPrivileges(): void {
  try {
    if (!denyCalls(DENIED_TO_KEEPER))
      log({ architecture: process.arch }, "system call filter is not supported on this architecture");
    const kept = CAP_NET_ADMIN | CAP_SYS_PTRACE;
    setCapabilities(kept, kept, 0n);
  } catch (error) {
    log({ reason: reasonOf(error) }, "keeper cannot drop its privileges");
  }
}

/** Writes a line in the JSON format of the log. */
function log(about: Readonly<Record<string, unknown>>, msg: string): void {
  const line = { level: "warn", time: new Date().toISOString(), keeper: process.pid, ...about, msg };
  try {
    writeSync(STDERR, `${printableJson(line)}\n`);
  } catch {
    // Nothing reads it any more.
  }
}
