/**
 * Flags of a container that runs the machine's own programs: dockerd, iptables, dig. Its image (MACHINE_IMAGE) is
 * empty; the machine's folders are read-only volumes.
 */
import { existsSync } from "node:fs";

import { threadCapabilities } from "../../../src/kernel/capabilities.ts";

const RESOURCES = "CAP_SYS_RESOURCE";
/** Whether this machine can give a container the capability to raise limits, which some sandboxes lack. */
export const GIVES_RESOURCES = threadCapabilities().every(({ bounding }) => bounding.includes(RESOURCES));

const MACHINE_FILES = ["/usr", "/etc/alternatives", "/etc/ld.so.cache", "/etc/ssl", "/etc/services", "/etc/protocols"];

/**
 * Not --privileged, which needs capabilities that a sandboxed machine may not have. What it would do besides,
 * remounting /proc/sys and /sys writable, the container's own script does.
 */
export const MACHINE_RIGHTS: readonly string[] = [
  "--cap-add=ALL",
  ...(GIVES_RESOURCES ? [] : [`--cap-drop=${RESOURCES}`]),
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
