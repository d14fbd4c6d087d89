/**
 * Proof that a namespace is the container's. An engine names namespaces by paths and by PIDs; paths come and go, PIDs are
 * reused, and in another PID namespace they mean something else: /proc/2/ns/net is the host's own. So a namespace is held
 * by a descriptor first and proved then, and ours and the engine's are refused whatever the engine says.
 */
import { constants, openSync } from "node:fs";

import { Fault, type FaultOptions } from "../../base/lib/fault.ts";
import { closeQuietly, isNetworkNamespace, openInRoot } from "../../kernel/libc.ts";
import { procText } from "../../kernel/proc-text.ts";
import type { FailureCode } from "../../base/model/not-served.ts";
import { type NamespaceId, namespaceId } from "./namespace-runner.ts";
import type { EngineHost } from "./engine-host.ts";

/** What the engine says about where a container's network lives. */
export interface NamespaceClaim {
  readonly containerId: string;
  /** The engine's path to the namespace; empty where it tells none. */
  readonly sandboxKey: string;
  /** The container's first process, in the engine's numbers; 0 while there is none. */
  readonly pid: number;
}

export interface ProvenNamespace {
  readonly fd: number;
  readonly id: NamespaceId;
}

/** Opens what is claimed, or throws a Fault that says why it is not to be believed. The caller closes it. */
export function proveNamespace(claim: NamespaceClaim, host: EngineHost, homeId: NamespaceId): ProvenNamespace {
  const fd = claim.sandboxKey === "" ? openByPid(claim, host) : openByPath(claim.sandboxKey, host);
  try {
    if (!isNetworkNamespace(fd)) {
      throw notProven("NAMESPACE_NOT_READY", `"${claim.sandboxKey}" is not a network namespace (yet, or any more)`);
    }
    const id = namespaceId(fd);
    if (id === homeId || id === host.networkId) {
      const whose = id === homeId ? "dns11's own" : "the engine's own";
      throw notProven("NAMESPACE_IS_HOST", `The namespace claimed for the container is ${whose}; it is left alone`);
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
    throw notProven("NAMESPACE_GONE", `The namespace at "${sandboxKey}" is not there`, { cause: error });
  }
}

/** Without a path, the process must be the container's before its namespace is opened, and still be so afterwards. */
function openByPid({ containerId, pid }: NamespaceClaim, host: EngineHost): number {
  if (pid <= 0) throw notProven("NAMESPACE_NOT_READY", "The container has neither a namespace path nor a process yet");
  if (!host.sharesPids) {
    throw notProven("PID_ELSEWHERE", `PID ${pid} belongs to the engine's PID namespace and means another process here`);
  }
  if (!isOfContainer(pid, containerId)) throw notOfContainer(pid);
  let fd;
  try {
    fd = openSync(`/proc/${pid}/ns/net`, "r");
  } catch (error) {
    throw notProven("NAMESPACE_GONE", `Process ${pid} of the container is gone`, { cause: error });
  }
  if (isOfContainer(pid, containerId)) return fd;
  closeQuietly(fd);
  throw notOfContainer(pid);
}

function notOfContainer(pid: number): Fault {
  return notProven(
    "PID_NOT_CONTAINER",
    `Process ${pid} is not in a cgroup of the container: its number was given away`,
  );
}

function notProven(code: FailureCode, ...about: [message: string, options?: FaultOptions]): Fault {
  return new Fault(code, ...about);
}

/** The control group names the container, in every cgroup driver's way of writing it. */
export function isOfContainer(pid: number, containerId: string): boolean {
  try {
    return procText(`/proc/${pid}/cgroup`)?.includes(containerId) === true;
  } catch {
    return false;
  }
}
