/**
 * Flags of a container that runs the machine's own programs: dockerd, iptables, dig. Its image (MACHINE_IMAGE) is
 * empty; the machine's folders are read-only volumes.
 */
import { existsSync } from "node:fs";

const MACHINE_FILES = ["/usr", "/etc/alternatives", "/etc/ld.so.cache", "/etc/ssl", "/etc/services", "/etc/protocols"];

/**
 * Not --privileged, which needs capabilities that a sandboxed machine may not have. What it would do besides,
 * remounting /proc/sys and /sys writable, the container's own script does.
 */
export const MACHINE_RIGHTS: readonly string[] = [
  "--cap-add=ALL",
  "--cap-drop=SYS_RESOURCE",
  "--security-opt=seccomp=unconfined",
  "--security-opt=apparmor=unconfined",
  "--tmpfs=/run:exec",
  "--tmpfs=/tmp:exec",
];

/** Further folders appear inside under the same path. */
export function machineVolumes(further: readonly string[] = []): string[] {
  const seen = [...MACHINE_FILES, ...further];
  return seen.filter((path) => existsSync(path)).map((path) => `--volume=${path}:${path}:ro`);
}
