/**
 * A deny list of system calls for every thread of this process, and for every program that it will start, so that nobody can make it do
 * what it never does. A denied call fails with EPERM. The kernel identifies calls by number, and numbers differ by architecture. If they
 * are not known here nothing is denied, which the caller can see.
 */
import { readdirSync, readlinkSync } from "node:fs";

import { SystemFault, addressOf, bind, lastErrno, must } from "./libc.ts";
import { type SystemCall, systemCallNumber } from "./system-calls.ts";

const c = {
  prctl: bind<(option: number, argument: number, a: number, b: number, c: number) => number>(
    "int prctl(int option, unsigned long argument, unsigned long a, unsigned long b, unsigned long c)",
  ),
  seccomp: bind<(call: number, operation: number, flags: number, program: Uint8Array) => number>(
    "long syscall(long call, unsigned int operation, unsigned int flags, void *program)",
  ),
};

/** AUDIT_ARCH_*. */
const ARCHITECTURES: Readonly<Partial<Record<NodeJS.Architecture, number>>> = { x64: 0xc000003e, arm64: 0xc00000b7 };

const PR_SET_NO_NEW_PRIVS = 38;
const SECCOMP_SET_MODE_FILTER = 1;
/** Applies to all threads, including those of Node. */
const SECCOMP_FILTER_FLAG_TSYNC = 1;
const LOAD_WORD = 0x20;
const JUMP_IF_EQUAL = 0x15;
const JUMP_IF_AT_LEAST = 0x35;
const RETURN = 0x06;
const ALLOW = 0x7fff0000;
const DENY = 0x00050000 | 1;
/** Offsets in struct seccomp_data. */
const NUMBER_AT = 0;
const ARCHITECTURE_AT = 4;
/** Numbers from here on are those of the x32 ABI. */
const X32_NUMBERS = 0x40000000;
const INSTRUCTION_BYTES = 8;

/** Returns false on an architecture with unknown numbers. Throws if the kernel refuses. */
export function denyCalls(denied: readonly SystemCall[]): boolean {
  const architecture = ARCHITECTURES[process.arch];
  const seccomp = systemCallNumber("seccomp");
  if (architecture === undefined || seccomp === undefined) return false;
  // libuv aborts if it may not enter a ring that it has opened. It does without a ring if it could not open one.
  const kept: SystemCall | undefined = hasRing() ? "io_uring_enter" : undefined;
  const numbers = denied.flatMap((name) => (name === kept ? [] : (systemCallNumber(name) ?? [])));
  const filter = filterOf(architecture, numbers);
  const program = Buffer.alloc(16);
  program.writeUInt16LE(filter.length / INSTRUCTION_BYTES, 0);
  program.writeBigUInt64LE(BigInt(addressOf(filter)), 8);
  must(c.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "prctl", "PR_SET_NO_NEW_PRIVS");
  const result = c.seccomp(seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, program);
  // A result above 0 is the id of a thread that has its own filter.
  if (result !== 0) throw new SystemFault("seccomp", lastErrno());
  return true;
}

/** Whether Node's event loop has opened an io_uring, as it does from Node 22 on, or with a newer libuv than its own. */
export function hasRing(): boolean {
  return readdirSync("/proc/self/fd").some((fd) => {
    try {
      return readlinkSync(`/proc/self/fd/${fd}`) === "anon_inode:[io_uring]";
    } catch {
      // The directory's own descriptor, which is closed by now.
      return false;
    }
  });
}

function filterOf(architecture: number, numbers: readonly number[]): Buffer {
  const steps: [code: number, ifTrue: number, ifFalse: number, value: number][] = [
    [LOAD_WORD, 0, 0, ARCHITECTURE_AT],
    [JUMP_IF_EQUAL, 1, 0, architecture],
    [RETURN, 0, 0, DENY],
    [LOAD_WORD, 0, 0, NUMBER_AT],
    [JUMP_IF_AT_LEAST, numbers.length + 1, 0, X32_NUMBERS],
    ...numbers.map((number, index): [number, number, number, number] => [
      JUMP_IF_EQUAL,
      numbers.length - index,
      0,
      number,
    ]),
    [RETURN, 0, 0, ALLOW],
    [RETURN, 0, 0, DENY],
  ];
  const filter = Buffer.alloc(steps.length * INSTRUCTION_BYTES);
  for (const [index, [code, ifTrue, ifFalse, value]] of steps.entries()) {
    const at = index * INSTRUCTION_BYTES;
    filter.writeUInt16LE(code, at);
    filter.writeUInt8(ifTrue, at + 2);
    filter.writeUInt8(ifFalse, at + 3);
    filter.writeUInt32LE(value, at + 4);
  }
  return filter;
}
