/**
 * Proof that a network namespace is the container's. An engine identifies namespaces by paths and by PIDs. Paths come
 * and go; PIDs are reused, and in another PID namespace they are other processes: /proc/2/ns/net is the host's. So the
 * namespace is opened first and checked through its descriptor, and dns11's and the engine's own are always refused.
 */
import { constants, openSync } from "node:fs";

import { Fault, type FaultOptions } from "../../base/lib/fault.ts";
import { closeQuietly, isNetworkNamespace, openInRoot } from "../../kernel/libc.ts";
import { procText } from "../../kernel/process.ts";
import type { FailureCode } from "../../base/model/finding.ts";
import { type NamespaceId, namespaceId } from "./namespace-runner.ts";
import type { EngineHost } from "./engine-host.ts";

/** The engine's claim about a container's network namespace. */
export interface NamespaceClaim {
  readonly containerId: string;
  /** The engine's path to the namespace; empty if it reports none. */
  readonly sandboxKey: string;
  /** The container's first process, as a PID of the engine's PID namespace; 0 while there is none. */
  readonly pid: number;
}

export interface ProvenNamespace {
  readonly fd: number;
  readonly id: NamespaceId;
}

/** Opens the claimed namespace, or throws a Fault if it is not the container's. The caller closes it. */
export function proveNamespace(claim: NamespaceClaim, host: EngineHost, homeId: NamespaceId): ProvenNamespace {
  const fd = claim.sandboxKey === "" ? openByPid(claim, host) : openByPath(claim.sandboxKey, host);
  try {
    if (!isNetworkNamespace(fd)) {
      throw notProven(
        "NAMESPACE_NOT_READY",
        `"${claim.sandboxKey}" is not a network namespace (not mounted yet, or already unmounted)`,
      );
    }
    const id = namespaceId(fd);
    if (id === homeId || id === host.networkId) {
      const owner = id === homeId ? "dns11's own" : "the engine's own";
      throw notProven(
        "NAMESPACE_IS_HOST",
        `The engine reports ${owner} network namespace for this container; dns11 does not serve it`,
      );
    }
    return { fd, id };
  } catch (error) {
    closeQuietly(fd);
    throw error;
  }
}

function openByPath(sandboxKey: string, host: EngineHost): number {
  try {
    return openInRoot(host.root, sandboxKey, constants.O_RDONLY);
  } catch (error) {
    throw notProven("NAMESPACE_GONE", `Cannot open the network namespace "${sandboxKey}"`, { cause: error });
  }
}

/** Without a path, the process must belong to the container before and after its namespace is opened. */
function openByPid({ containerId, pid }: NamespaceClaim, host: EngineHost): number {
  if (pid <= 0) throw notProven("NAMESPACE_NOT_READY", "The container has neither a namespace path nor a process yet");
  if (!host.sharesPids) {
    throw notProven("PID_ELSEWHERE", `Cannot use PID ${pid}: the engine runs in another PID namespace`);
  }
  if (!isOfContainer(pid, containerId)) throw notOfContainer(pid);
  let fd;
  try {
    fd = openSync(`/proc/${pid}/ns/net`, "r");
  } catch (error) {
    throw notProven("NAMESPACE_GONE", `Process ${pid} of the container has exited`, { cause: error });
  }
  if (isOfContainer(pid, containerId)) return fd;
  closeQuietly(fd);
  throw notOfContainer(pid);
}

function notOfContainer(pid: number): Fault {
  return notProven("PID_NOT_CONTAINER", `Process ${pid} is not in a cgroup of the container: the PID was reused`);
}

function notProven(code: FailureCode, ...about: [message: string, options?: FaultOptions]): Fault {
  return new Fault(code, ...about);
}

/** Every cgroup driver puts the container's id into the cgroup's path. */
export function isOfContainer(pid: number, containerId: string): boolean {
  try {
    return procText(`/proc/${pid}/cgroup`)?.includes(containerId) === true;
  } catch {
    return false;
  }
}
