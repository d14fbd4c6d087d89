/**
 * A command in front of a program for which the kernel has no nftables tables that end with their process: it gets the
 * error that an older kernel gives for the unknown flag of a table.
 */
export const WITHOUT_OWNED_TABLES: readonly string[] = [
  "strace",
  ...["-f", "--seccomp-bpf", "-qq", "-o", "/dev/null"],
  ...["-e", "trace=sendto", "-e", "inject=sendto:error=EOPNOTSUPP:when=1"],
];
