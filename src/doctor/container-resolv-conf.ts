/**
 * ContainerResolvConf reader: the resolv.conf that the processes of a container read, and whether it is the engine's file.
 */
import type { ContainerResolvConf } from "./checks/resolv-conf-check.ts";
import { isContainerResolvConf } from "../container/files/resolv-conf-file.ts";
import { readUnder, withContainerRoot } from "../container/namespace/container-root.ts";
import { readEngineFile } from "../container/namespace/engine-host.ts";
import type { ContainerFact } from "../container/facts/fact.ts";
import type { DoctorContext } from "./machine-check.ts";

const PATH = "/etc/resolv.conf";
const BYTES_MAX = 64 * 1024;

export function readContainerResolvConf(
  { id, pid, resolvConfPath }: ContainerFact,
  { host }: Pick<DoctorContext, "host">,
): ContainerResolvConf {
  const path = resolvConfPath ?? "";
  let text;
  try {
    text = withContainerRoot(pid, id, host, (root) => readUnder(root, PATH, BYTES_MAX)?.toString("utf8"));
  } catch {
    // The container's files cannot be read from here. The engine's file is mounted there unless a user mounted another.
    return { text: path === "" ? undefined : readEngineFile(host, path), origin: "unknown" };
  }
  return { text, origin: isContainerResolvConf(host, path, pid, id) ? "engine" : "mounted" };
}
