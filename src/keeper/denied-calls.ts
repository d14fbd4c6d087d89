/**
 * DeniedCalls: system calls that the kernel refuses to every thread of the keeper and of the main process. Both are
 * denied calls that inspect other processes or change the whole machine. The keeper, which only holds and deletes, may
 * not start programs, open connections or enter namespaces either.
 */
import type { SystemCall } from "../kernel/system-calls.ts";

/** The main process enters namespaces and starts its keeper, and makes none of these calls. */
export const DENIED_TO_MAIN: readonly SystemCall[] = [
  "add_key",
  "bpf",
  "chroot",
  "delete_module",
  "finit_module",
  "fsconfig",
  "fsmount",
  "fsopen",
  "fspick",
  "init_module",
  "io_uring_enter",
  "io_uring_register",
  "io_uring_setup",
  "ioperm",
  "iopl",
  "kexec_file_load",
  "kexec_load",
  "keyctl",
  "mount",
  "mount_setattr",
  "move_mount",
  "open_by_handle_at",
  "open_tree",
  "perf_event_open",
  "pivot_root",
  "process_vm_readv",
  "process_vm_writev",
  "ptrace",
  "reboot",
  "request_key",
  "swapoff",
  "swapon",
  "umount2",
  "userfaultfd",
];

export const DENIED_TO_KEEPER: readonly SystemCall[] = [
  ...DENIED_TO_MAIN,
  "connect",
  "execve",
  "execveat",
  "setns",
  "socket",
  "unshare",
];
