/**
 * A deny list of system calls for every thread of this process, and for every program that it will start: it cannot be
 * made to do what it never does. A denied call fails with EPERM. The kernel identifies calls by number, and numbers
 * differ by architecture. Where they are not known here nothing is denied, which the caller can see.
 */
import { SystemFault, addressOf, bind, lastErrno, must } from "./libc.ts";

const c = {
  prctl: bind<(option: number, argument: number, a: number, b: number, c: number) => number>(
    "int prctl(int option, unsigned long argument, unsigned long a, unsigned long b, unsigned long c)",
  ),
  seccomp: bind<(call: number, operation: number, flags: number, program: Uint8Array) => number>(
    "long syscall(long call, unsigned int operation, unsigned int flags, void *program)",
  ),
};

/** Each with its number on x86-64 and on arm64; undefined where the architecture has no such call. */
const NUMBERS = {
  add_key: [248, 217],
  bpf: [321, 280],
  chroot: [161, 51],
  connect: [42, 203],
  delete_module: [176, 106],
  execve: [59, 221],
  execveat: [322, 281],
  finit_module: [313, 273],
  fsconfig: [431, 431],
  fsmount: [432, 432],
  fsopen: [430, 430],
  fspick: [433, 433],
  init_module: [175, 105],
  io_uring_enter: [426, 426],
  io_uring_register: [427, 427],
  io_uring_setup: [425, 425],
  ioperm: [173, undefined],
  iopl: [172, undefined],
  kexec_file_load: [320, 294],
  kexec_load: [246, 104],
  keyctl: [250, 219],
  mount: [165, 40],
  mount_setattr: [442, 442],
  move_mount: [429, 429],
  open_by_handle_at: [304, 265],
  open_tree: [428, 428],
  perf_event_open: [298, 241],
  pivot_root: [155, 41],
  process_vm_readv: [310, 270],
  process_vm_writev: [311, 271],
  ptrace: [101, 117],
  reboot: [169, 142],
  request_key: [249, 218],
  setns: [308, 268],
  socket: [41, 198],
  swapoff: [168, 225],
  swapon: [167, 224],
  umount2: [166, 39],
  unshare: [272, 97],
  userfaultfd: [323, 282],
} as const satisfies Readonly<Record<string, readonly [number, number | undefined]>>;

export type SystemCall = keyof typeof NUMBERS;

interface Machine {
  /** In the pairs above. */
  readonly column: 0 | 1;
  /** AUDIT_ARCH_*. */
  readonly architecture: number;
  readonly seccomp: number;
}

const MACHINES: Readonly<Partial<Record<string, Machine>>> = {
  x64: { column: 0, architecture: 0xc000003e, seccomp: 317 },
  arm64: { column: 1, architecture: 0xc00000b7, seccomp: 277 },
};

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
  const machine = MACHINES[process.arch];
  if (machine === undefined) return false;
  const numbers = denied.flatMap((name) => NUMBERS[name][machine.column] ?? []);
  const filter = filterOf(machine.architecture, numbers);
  const program = Buffer.alloc(16);
  program.writeUInt16LE(filter.length / INSTRUCTION_BYTES, 0);
  program.writeBigUInt64LE(BigInt(addressOf(filter)), 8);
  must(c.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "prctl", "PR_SET_NO_NEW_PRIVS");
  const result = c.seccomp(machine.seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, program);
  // A result above 0 is the id of a thread that has its own filter.
  if (result !== 0) throw new SystemFault("seccomp", lastErrno());
  return true;
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
