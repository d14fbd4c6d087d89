/**
 * EngineHost: the network and mount namespace of the process that listens on the engine's socket. "The host" always
 * means this one, so that dns11 works the same on the host itself, in a container with the host's PIDs, and beside a
 * private engine in a test. Files are read through that process's root, and host servers are queried from its network
 * namespace.
 */
import { createHash } from "node:crypto";
import { closeSync, constants, openSync, readlinkSync } from "node:fs";

import { Fault, codeOf } from "../../base/lib/fault.ts";
import {
  AF_UNIX,
  O_PATH,
  SOCK_STREAM,
  closeQuietly,
  connectTo,
  openInRoot,
  peerProcess,
  socket,
} from "../../kernel/libc.ts";
import { isLeased, readRegular } from "../../kernel/regular-file.ts";
import { type NamespaceId, namespaceId } from "./namespace-runner.ts";

const FILE_BYTES_MAX = 64 * 1024;

export interface EngineHost {
  readonly pid: number;
  /** The engine's root folder. */
  readonly root: number;
  readonly network: number;
  /** The resolv.conf of that network, where it is not the machine's. */
  readonly resolvConf?: string;
  readonly networkId: NamespaceId;
  /** Whether the engine's PIDs are the same processes here. */
  readonly sharesPids: boolean;
}

/** The PID, in our PID namespace, of the process that listens on a unix socket. */
export function socketPeerPid(socketPath: string): number {
  const fd = socket(AF_UNIX, SOCK_STREAM);
  try {
    const address = Buffer.concat([Buffer.of(AF_UNIX, 0), Buffer.from(socketPath), Buffer.of(0)]);
    connectTo(fd, address, socketPath);
    return peerProcess(fd);
  } finally {
    closeQuietly(fd);
  }
}

/** `detached` where the engine's containers are connected to our network, and not to its own. */
export function openEngineHost(pid: number, detached?: Pick<EngineHost, "resolvConf">): EngineHost {
  if (pid <= 0) {
    throw new Fault("ENGINE_ELSEWHERE", "Cannot see the engine's process: it runs in another PID namespace", {
      remedy:
        "Run dns11 on the engine's machine or in a container with `--pid host`, or pass the PID with --engine-pid.",
      isFinal: true,
    });
  }
  let root = -1;
  try {
    root = openSync(`/proc/${pid}/root`, O_PATH | constants.O_DIRECTORY);
    const network = openSync(`/proc/${detached === undefined ? pid : "self"}/ns/net`, "r");
    return { ...detached, pid, root, network, networkId: namespaceId(network), sharesPids: sharesPids(pid) };
  } catch (error) {
    closeQuietly(root);
    const isDenied = codeOf(error) === "EACCES" || codeOf(error) === "EPERM";
    throw new Fault("ENGINE_ELSEWHERE", `Cannot open the namespaces of the engine's process ${pid}`, {
      cause: error,
      isFinal: isDenied,
      remedy: isDenied
        ? "dns11 needs CAP_SYS_PTRACE and every capability that the engine has."
        : "If the engine was restarted, and dns11 has its PID from --engine-pid: restart dns11 with the PID that it has now.",
    });
  }
}

/** The host's network namespace, opened once more; the caller closes it. */
export function openHostNetwork({ network }: Pick<EngineHost, "network">): number {
  return openSync(`/proc/self/fd/${network}`, "r");
}

export function closeEngineHost(host: EngineHost): void {
  closeSync(host.root);
  closeSync(host.network);
}

/** A file of the engine's host. "busy": it exists and cannot be read without waiting. */
export type EngineFile = { readonly kind: "read"; readonly text: string } | { readonly kind: "absent" | "busy" };

/** Reads a file of the engine's host; of one that is too long, the first whole lines. */
export function tryReadEngineFile({ root }: Pick<EngineHost, "root">, path: string): EngineFile {
  try {
    // A container can write its own resolv.conf, of any length.
    const bytes = readRegular((flags) => openInRoot(root, path, flags), FILE_BYTES_MAX);
    const length = bytes.length < FILE_BYTES_MAX ? bytes.length : bytes.lastIndexOf("\n") + 1;
    return { kind: "read", text: bytes.toString("utf8", 0, length) };
  } catch (error) {
    return { kind: isLeased(error) ? "busy" : "absent" };
  }
}

/**
 * Reads the resolv.conf that the engine wrote for a container. If a user mounted another file over it, the engine
 * reports that path: it may be a pipe or on a network file system that blocks, and holds nothing that an engine wrote.
 */
export function tryReadContainerFile(host: Pick<EngineHost, "root">, path: string, containerId: string): EngineFile {
  return isContainerPath(path, containerId) ? tryReadEngineFile(host, path) : { kind: "absent" };
}

/**
 * Whether the resolv.conf of a container is as the engine wrote it, by the checksum that the engine keeps beside it, outside of
 * the container; undefined if there is none. Only for files that are copies of the host's: for those of its own resolver the
 * engine's checksum is of an earlier text.
 */
export function isAsWritten(
  host: Pick<EngineHost, "root">,
  path: string,
  { id, text }: { readonly id: string; readonly text: string },
): boolean | undefined {
  const kept = tryReadContainerFile(host, `${path}.hash`, id);
  if (kept.kind !== "read") return undefined;
  return kept.text.trim() === `sha256:${createHash("sha256").update(text).digest("hex")}`;
}

/** Whether the engine made the file for the container. */
export function isContainerPath(path: string, containerId: string): boolean {
  return path.split("/").includes(containerId);
}

/** The text of a file of the engine's host; undefined if it cannot be read now. */
export function readEngineFile(host: Pick<EngineHost, "root">, path: string): string | undefined {
  const file = tryReadEngineFile(host, path);
  return file.kind === "read" ? file.text : undefined;
}

function sharesPids(pid: number): boolean {
  return readlinkSync(`/proc/${pid}/ns/pid`) === readlinkSync("/proc/self/ns/pid");
}
