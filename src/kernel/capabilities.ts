/**
 * Capabilities belong to threads, and a process made by Node has eleven of them before its first line of ours runs. So they
 * are not given up but never had: the calling thread bounds what it may have, and becomes the program anew. The kernel
 * ends all other threads then, the process keeps its number, and every thread to come inherits from the one that is left.
 */
import { readFileSync, readdirSync } from "node:fs";

import type { CapabilitySets } from "../base/model/capability-sets.ts";
import { SystemFault, dropFromBounding, execute, setCapabilities } from "./libc.ts";

/** By their numbers. */
const NAMES: readonly string[] = (
  "CHOWN DAC_OVERRIDE DAC_READ_SEARCH FOWNER FSETID KILL SETGID SETUID SETPCAP LINUX_IMMUTABLE NET_BIND_SERVICE " +
  "NET_BROADCAST NET_ADMIN NET_RAW IPC_LOCK IPC_OWNER SYS_MODULE SYS_RAWIO SYS_CHROOT SYS_PTRACE SYS_PACCT SYS_ADMIN " +
  "SYS_BOOT SYS_NICE SYS_RESOURCE SYS_TIME SYS_TTY_CONFIG MKNOD LEASE AUDIT_WRITE AUDIT_CONTROL SETFCAP MAC_OVERRIDE " +
  "MAC_ADMIN SYSLOG WAKE_ALARM BLOCK_SUSPEND AUDIT_READ PERFMON BPF CHECKPOINT_RESTORE"
)
  .split(" ")
  .map((name) => `CAP_${name}`);

interface Masks {
  readonly effective: bigint;
  readonly permitted: bigint;
  readonly inheritable: bigint;
  readonly bounding: bigint;
  readonly ambient: bigint;
}

/** What the calling thread may do now. */
export function effectiveCapabilities(): readonly string[] {
  return namesOf(masksIn(statusOf("/proc/thread-self/status") ?? "").effective);
}

/** Of every thread of this process; one entry where all are alike. */
export function threadCapabilities(): CapabilitySets[] {
  const counts = new Map<string, number>();
  for (const thread of readdirSync("/proc/self/task")) {
    const status = statusOf(`/proc/self/task/${thread}/status`);
    if (status === undefined) continue;
    const key = JSON.stringify(named(masksIn(status)));
    counts.set(key, (counts.get(key) ?? 0) + 1);
  }
  return [...counts].map(([key, threads]) => ({ threads, ...(JSON.parse(key) as Omit<CapabilitySets, "threads">) }));
}

/**
 * Starts this program anew with no more than `needed`, unless it has no more already. Returns what may not be had and is
 * had all the same: nothing, where all is well.
 */
export function dropCapabilities(needed: readonly string[]): readonly string[] {
  const allowed = needed.reduce((mask, name) => mask | bit(NAMES.indexOf(name)), 0n);
  const masks = masksIn(statusOf("/proc/thread-self/status") ?? "");
  const { effective, permitted, inheritable, bounding } = masks;
  const excess = (bounding | permitted | inheritable) & ~allowed;
  // What bounds nobody but the programs that we might become is no harm done.
  const kept = namesOf((permitted | inheritable) & ~allowed);
  const wasStarted = process.env[STARTED_ANEW] === String(process.pid);
  delete process.env[STARTED_ANEW];
  if (excess === 0n || wasStarted || (effective & bit(NAMES.indexOf("CAP_SETPCAP"))) === 0n) return kept;
  // Whatever else would be looked for where somebody happens to stand, and run as root.
  const program = process.argv[1] ?? "";
  if (!program.startsWith("/")) return kept;
  try {
    for (let number = 0; number < MASK_BITS; number++) {
      if ((bounding & ~allowed & bit(number)) !== 0n) dropFromBounding(number);
    }
    // What is ambient goes with what is inheritable.
    setCapabilities(effective, permitted, inheritable & allowed);
    process.env[STARTED_ANEW] = String(process.pid);
    execute(process.execPath, [process.argv0, ...process.execArgv, program, ...process.argv.slice(2)]);
  } catch (error) {
    // A kernel's policy, or a program that was replaced meanwhile: names are answered all the same.
    if (!(error instanceof SystemFault)) throw error;
    delete process.env[STARTED_ANEW];
  }
  return kept;
}

/** Says to whom we become that it has been tried: a kernel that gives more than it was told to must not keep us at it. */
const STARTED_ANEW = "DNS11_STARTED_ANEW";
const MASK_BITS = 64;

function bit(number: number): bigint {
  return 1n << BigInt(number);
}

/** A thread may end while it is looked at. */
function statusOf(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return undefined;
  }
}

function masksIn(status: string): Masks {
  const mask = (name: string): bigint => {
    return BigInt(`0x${new RegExp(`^${name}:\\s*([0-9a-f]+)$`, "m").exec(status)?.[1] ?? "0"}`);
  };
  return {
    effective: mask("CapEff"),
    permitted: mask("CapPrm"),
    inheritable: mask("CapInh"),
    bounding: mask("CapBnd"),
    ambient: mask("CapAmb"),
  };
}

function named(masks: Masks): Omit<CapabilitySets, "threads"> {
  const { effective, permitted, inheritable, bounding, ambient } = masks;
  return {
    effective: namesOf(effective),
    permitted: namesOf(permitted),
    inheritable: namesOf(inheritable),
    bounding: namesOf(bounding),
    ambient: namesOf(ambient),
  };
}

/** A kernel that is newer than this list has more of them. */
function namesOf(mask: bigint): string[] {
  return Array.from({ length: MASK_BITS }, (_, number) => number)
    .filter((number) => (mask & bit(number)) !== 0n)
    .map((number) => NAMES[number] ?? `CAP_${number}`);
}
