/**
 * Denied: what the keeper and the main process can never be made to do, because the kernel refuses it to each of their
 * threads. Both deny what looks into other processes or changes the machine as a whole; the keeper, which only keeps and
 * deletes, also what starts programs, opens connections, or enters namespaces.
 */
import type { SystemCall } from "../kernel/seccomp.ts";

/** The main process enters namespaces and starts programs (its keeper, the older iptables), and nothing of this. */
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
