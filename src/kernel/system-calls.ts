/**
 * SystemCalls: the numbers of the system calls that are made or denied by number. They differ by architecture; on other architectures than
 * these they are unknown, which the caller can see.
 */

/** Each with its number on x86-64 and on arm64; undefined where the architecture has no such call. */
export const SYSTEM_CALLS = {
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
  seccomp: [317, 277],
  setns: [308, 268],
  socket: [41, 198],
  swapoff: [168, 225],
  swapon: [167, 224],
  umount2: [166, 39],
  unshare: [272, 97],
  userfaultfd: [323, 282],
} as const satisfies Readonly<Record<string, readonly [number, number | undefined]>>;

export type SystemCall = keyof typeof SYSTEM_CALLS;

const COLUMNS: Readonly<Partial<Record<NodeJS.Architecture, 0 | 1>>> = { x64: 0, arm64: 1 };

/** Undefined if the architecture has no such call, or is not known. */
export function systemCallNumber(call: SystemCall, architecture = process.arch): number | undefined {
  const column = COLUMNS[architecture];
  return column === undefined ? undefined : SYSTEM_CALLS[call][column];
}
