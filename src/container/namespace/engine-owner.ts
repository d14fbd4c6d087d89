/**
 * EngineOwner: whose a rootless engine is. It is under the control of its user, who decides what it says about its
 * containers, so it is served with the rights of that user and no others: never by root, whose rights its user could
 * borrow.
 */
import { join } from "node:path";

import { Fault } from "../../base/lib/fault.ts";
import { rootlesskitFolder, sharesNetwork, userNamespaceOf, userOf } from "../../kernel/process.ts";
import { type EngineHost, openEngineHost } from "./engine-host.ts";

interface Rootless {
  readonly isRootless: boolean;
}

/** The host of an engine that may be served; throws a Fault for another user's. */
export function openOwnEngineHost(rootless: Rootless, enginePid: number): EngineHost {
  requireOwnEngine(rootless, enginePid);
  return openEngineHost(enginePid, rootless.isRootless ? detachedNetwork(enginePid) : undefined);
}

/**
 * With rootlesskit's --detach-netns the engine is in the machine's network, which its user cannot enter. We have entered that of its
 * containers, whose own servers lead to those of the machine.
 */
function detachedNetwork(enginePid: number): Pick<EngineHost, "resolvConf"> | undefined {
  const folder = sharesNetwork(enginePid) ? undefined : rootlesskitFolder(enginePid);
  return folder === undefined ? undefined : { resolvConf: join(folder, "resolv.conf") };
}

/** Throws unless the engine's process has our rights, where it is rootless. */
function requireOwnEngine({ isRootless }: Rootless, enginePid: number): void {
  const owner = isRootless && enginePid > 0 ? userOf(enginePid) : undefined;
  // A process that has exited has no namespaces either, which is reported later.
  if (owner === undefined) return;
  if (owner !== process.getuid?.()) throw belongsTo(owner);
  if (userNamespaceOf(enginePid) === userNamespaceOf("self")) return;
  throw new Fault("ENGINE_RESTARTED", "The rootless engine was restarted, and its namespaces are new", {
    remedy: "Start dns11 again; as a systemd user service it starts again by itself.",
    isFinal: true,
  });
}

/** The rootless engine of another user. */
export function belongsTo(owner: number): Fault {
  return new Fault("ENGINE_ROOTLESS", `This engine is rootless, and belongs to the user with the ID ${owner}`, {
    remedy: `Run dns11 as that user, without sudo. From root: sudo -u '#${owner}' XDG_RUNTIME_DIR=/run/user/${owner} dns11 run`,
    isFinal: true,
  });
}
