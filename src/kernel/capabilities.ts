/**
 * Capabilities belong to threads, and a Node process has eleven threads before our first line runs. So dns11 does not
 * drop capabilities but restarts without them: the calling thread limits its bounding set and executes the program
 * again. The kernel then ends all other threads, the process keeps its pid, and every new thread inherits from the one
 * that is left. What Node reads from its environment before our first line runs is set in the same way.
 */
import { readFileSync, readdirSync } from "node:fs";

import type { CapabilitySets } from "../base/model/capability-sets.ts";
import { SystemFault, dropFromBounding, execute, setCapabilities } from "./libc.ts";

/** Indexed by number. */
const NAMES: readonly string[] = (
  "CHOWN DAC_OVERRIDE DAC_READ_SEARCH FOWNER FSETID KILL SETGID SETUID SETPCAP LINUX_IMMUTABLE NET_BIND_SERVICE " +
  "NET_BROADCAST NET_ADMIN NET_RAW IPC_LOCK IPC_OWNER SYS_MODULE SYS_RAWIO SYS_CHROOT SYS_PTRACE SYS_PACCT SYS_ADMIN " +
  "SYS_BOOT SYS_NICE SYS_RESOURCE SYS_TIME SYS_TTY_CONFIG MKNOD LEASE AUDIT_WRITE AUDIT_CONTROL SETFCAP MAC_OVERRIDE " +
  "MAC_ADMIN SYSLOG WAKE_ALARM BLOCK_SUSPEND AUDIT_READ PERFMON BPF CHECKPOINT_RESTORE"
)
  .split(" ")
  .map((name) => `CAP_${name}`);

const SET_LINES = /^Cap\w+:.*$/gm;

interface Masks {
  readonly effective: bigint;
  readonly permitted: bigint;
  readonly inheritable: bigint;
  readonly bounding: bigint;
  readonly ambient: bigint;
}

/** Effective set of the calling thread. */
export function effectiveCapabilities(): readonly string[] {
  return namesOf(masksIn(statusOf("/proc/thread-self/status") ?? "").effective);
}

/** The sets of all threads of this process; threads with the same sets share an entry. */
export function threadCapabilities(): CapabilitySets[] {
  /** By the lines of the sets. */
  const counts = new Map<string, number>();
  for (const thread of readdirSync("/proc/self/task")) {
    const lines = statusOf(`/proc/self/task/${thread}/status`)?.match(SET_LINES)?.join("\n");
    if (lines !== undefined) counts.set(lines, (counts.get(lines) ?? 0) + 1);
  }
  return [...counts].map(([lines, threads]) => ({ threads, ...namedSets(masksIn(lines)) }));
}

/**
 * Restarts this program with no more capabilities than `needed`, unless it already has no more, and with these variables.
 * Returns the excess capabilities that it still has.
 */
export function restartWith(needed: readonly string[], variables: Readonly<Record<string, string>>): readonly string[] {
  const allowed = needed.reduce((mask, name) => mask | bit(NAMES.indexOf(name)), 0n);
  const masks = masksIn(statusOf("/proc/thread-self/status") ?? "");
  const { effective, permitted, inheritable, bounding } = masks;
  const excess = (bounding | permitted | inheritable) & ~allowed;
  // A capability in the bounding set alone matters only to programs that we might execute.
  const remaining = namesOf((permitted | inheritable) & ~allowed);
  const wasStarted = process.env[RESTARTED] === String(process.pid);
  delete process.env[RESTARTED];
  const canDrop = excess !== 0n && (effective & bit(NAMES.indexOf("CAP_SETPCAP"))) !== 0n;
  const lacksVariables = Object.entries(variables).some(([name, value]) => process.env[name] !== value);
  if (wasStarted || !(canDrop || lacksVariables)) return remaining;
  // A relative path would be resolved in the current folder, and run as root.
  const program = process.argv[1] ?? "";
  if (!program.startsWith("/")) return remaining;
  try {
    if (canDrop) {
      for (let number = 0; number < MASK_BITS; number++) {
        if ((bounding & ~allowed & bit(number)) !== 0n) dropFromBounding(number);
      }
      // The ambient set shrinks with the inheritable set.
      setCapabilities(effective, permitted, inheritable & allowed);
    }
    Object.assign(process.env, variables);
    process.env[RESTARTED] = String(process.pid);
    execute(process.execPath, [process.argv0, ...process.execArgv, program, ...process.argv.slice(2)]);
  } catch (error) {
    // A kernel policy forbids it, or the program was replaced on disk: dns11 serves anyway.
    if (!(error instanceof SystemFault)) throw error;
    delete process.env[RESTARTED];
  }
  return remaining;
}

/**
 * Keeps the restarted program from trying again: a kernel that grants more than requested must not cause a loop.
 */
const RESTARTED = "DNS11_RESTARTED";
const MASK_BITS = 64;

function bit(number: number): bigint {
  return 1n << BigInt(number);
}

/** The thread may have ended meanwhile. */
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

function namedSets(masks: Masks): Omit<CapabilitySets, "threads"> {
  const { effective, permitted, inheritable, bounding, ambient } = masks;
  return {
    effective: namesOf(effective),
    permitted: namesOf(permitted),
    inheritable: namesOf(inheritable),
    bounding: namesOf(bounding),
    ambient: namesOf(ambient),
  };
}

/** A newer kernel has capabilities beyond this list. */
function namesOf(mask: bigint): string[] {
  return Array.from({ length: MASK_BITS }, (_, number) => number)
    .filter((number) => (mask & bit(number)) !== 0n)
    .map((number) => NAMES[number] ?? `CAP_${number}`);
}
