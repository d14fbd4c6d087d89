/**
 * The engine's host: the network and mount namespace of the process behind the engine's socket. "The host" always means
 * that one, so that dns11 does the same on the host itself, in a container that shares its PIDs, and beside a private
 * engine in a test. The engine's files are read as that process sees them, its servers asked from where it stands.
 */
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
  /** Where the engine's own paths begin. */
  readonly root: number;
  readonly network: number;
  readonly networkId: NamespaceId;
  /** Whether a PID that the engine names is the same process here. */
  readonly sharesPids: boolean;
}

/** The process that listens on a unix socket, as we see it. */
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

export function openEngineHost(pid: number): EngineHost {
  if (pid <= 0) {
    throw new Fault(
      "ENGINE_ELSEWHERE",
      "The engine's process is not visible from here: it runs in another PID namespace",
      {
        remedy:
          "Run dns11 on the engine's machine, or in a container with `--pid host`; or name the process: --engine-pid.",
        isFinal: true,
      },
    );
  }
  let root = -1;
  try {
    root = openSync(`/proc/${pid}/root`, O_PATH | constants.O_DIRECTORY);
    const network = openSync(`/proc/${pid}/ns/net`, "r");
    return { pid, root, network, networkId: namespaceId(network), sharesPids: sharesPids(pid) };
  } catch (error) {
    closeQuietly(root);
    const isDenied = codeOf(error) === "EACCES" || codeOf(error) === "EPERM";
    throw new Fault("ENGINE_ELSEWHERE", `Cannot look into the namespaces of the engine's process ${pid}`, {
      cause: error,
      isFinal: isDenied,
      ...(isDenied && { remedy: "dns11 needs CAP_SYS_PTRACE, and as many capabilities as the engine has." }),
    });
  }
}

export function closeEngineHost(host: EngineHost): void {
  closeSync(host.root);
  closeSync(host.network);
}

/** What a file of the engine's host says now. One that is "busy" is there, and cannot be read without waiting. */
export type EngineFile = { readonly kind: "read"; readonly text: string } | { readonly kind: "absent" | "busy" };

/** A file of the engine's. Of one that is too long, the first whole lines. */
export function tryReadEngineFile({ root }: Pick<EngineHost, "root">, path: string): EngineFile {
  try {
    // A container may write its own resolv.conf, and as long as it likes.
    const bytes = readRegular((flags) => openInRoot(root, path, flags), FILE_BYTES_MAX);
    const length = bytes.length < FILE_BYTES_MAX ? bytes.length : bytes.lastIndexOf("\n") + 1;
    return { kind: "read", text: bytes.toString("utf8", 0, length) };
  } catch (error) {
    return { kind: isLeased(error) ? "busy" : "absent" };
  }
}

/**
 * The resolv.conf that the engine made for a container. Where a user has mounted another one over it, the engine names
 * that one: it may be a pipe, or lie where reading waits for a server, and no engine has written anything into it.
 */
export function tryReadContainerFile(host: Pick<EngineHost, "root">, path: string, containerId: string): EngineFile {
  return path.split("/").includes(containerId) ? tryReadEngineFile(host, path) : { kind: "absent" };
}

/** The same as text; undefined where there is none to be read now. */
export function readEngineFile(host: Pick<EngineHost, "root">, path: string): string | undefined {
  const seen = tryReadEngineFile(host, path);
  return seen.kind === "read" ? seen.text : undefined;
}

function sharesPids(pid: number): boolean {
  return readlinkSync(`/proc/${pid}/ns/pid`) === readlinkSync("/proc/self/ns/pid");
}
