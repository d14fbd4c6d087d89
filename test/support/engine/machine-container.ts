/**
 * Owns what a container needs to run the machine's own programs inside: dockerd, iptables, dig. The image for it
 * (MACHINE_IMAGE) is empty; the machine's folders come in as read-only volumes.
 */
import { existsSync } from "node:fs";

const MACHINE_FILES = ["/usr", "/etc/alternatives", "/etc/ld.so.cache", "/etc/ssl", "/etc/services", "/etc/protocols"];

/**
 * Not --privileged, which asks for capabilities that a machine in a sandbox may not hold itself. What it would have
 * lifted besides, the read-only mounts of /proc/sys and /sys, the container's own script has to lift.
 */
export const MACHINE_RIGHTS: readonly string[] = [
  "--cap-add=ALL",
  "--cap-drop=SYS_RESOURCE",
  "--security-opt=seccomp=unconfined",
  "--security-opt=apparmor=unconfined",
  "--tmpfs=/run:exec",
  "--tmpfs=/tmp:exec",
];

/** Further folders are seen inside under the same path, too. */
export function machineVolumes(further: readonly string[] = []): string[] {
  const seen = [...MACHINE_FILES, ...further];
  return seen.filter((path) => existsSync(path)).map((path) => `--volume=${path}:${path}:ro`);
}
