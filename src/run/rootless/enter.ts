/**
 * Enter: a command of a normal user executes itself again inside the user and network namespace of that user's rootless
 * engine, where it is root and has all rights over the engine's containers. This takes nsenter, before Node starts: the
 * kernel lets no process with threads into a user namespace. The mount namespace stays the user's, with its files; the
 * engine's files are read through the root folder of its process, as for every engine.
 */
import { spawnSync } from "node:child_process";
import { accessSync, constants } from "node:fs";
import { join } from "node:path";

import { engineAddress, isOwnEngine, ownerOf } from "../../api/engine-address.ts";
import { Fault, engineFault } from "../../base/lib/fault.ts";
import { socketPeerPid } from "../../container/namespace/engine-host.ts";
import { belongsTo } from "../../container/namespace/engine-owner.ts";
import { execute } from "../../kernel/libc.ts";
import { rootlesskitFolder, sharesNetwork, userNamespaceOf, userOf } from "../../kernel/process.ts";

const ROOT = 0;
const NSENTER = "nsenter";
const TRIAL_MS = 10_000;
/** These are searched after PATH. */
const SYSTEM_FOLDERS = "/usr/local/sbin:/usr/sbin:/sbin:/usr/local/bin:/usr/bin:/bin";

export interface RootlessOptions {
  readonly host?: string;
  readonly stateDir: string;
  readonly enginePid?: number;
}

/**
 * Returns where there is nothing to enter: for root, also inside, and for an engine that runs as root. Throws a Fault if
 * the engine is rootless and cannot be entered.
 */
export function enterRootlessEngine({ host, stateDir, enginePid }: RootlessOptions): void {
  const user = process.getuid?.() ?? ROOT;
  const { socketPath } = engineAddress(host, process.env);
  if (!isOwnEngine(socketPath, process.env, user)) return refuseOthers(socketPath, user);
  const pid = enginePid ?? listenerOf(socketPath);
  const owner = userOf(pid);
  if (owner === undefined) throw notEntered(pid, "its process is not visible here");
  // Root's engine, whose socket was given to this user.
  if (owner === ROOT) return;
  if (owner !== user) throw belongsTo(owner);
  if (userNamespaceOf(pid) === userNamespaceOf("self")) return;
  const nsenter = programIn(`${process.env["PATH"] ?? ""}:${SYSTEM_FOLDERS}`);
  const network = sharesNetwork(pid) ? `--net=${detachedNetworkOf(pid)}` : "--net";
  const words = ["--user", "--preserve-credentials", network, "--target", String(pid), "--"];
  tryOut(nsenter, words, pid);
  // The user's own engine and state directory are no defaults of the root inside.
  process.env["DOCKER_HOST"] = `unix://${socketPath}`;
  process.env["DNS11_STATE_DIR"] = stateDir;
  const program = [process.execPath, ...process.execArgv, ...process.argv.slice(1)];
  execute(nsenter, [NSENTER, ...words, ...program]);
}

/**
 * The machine's engine is root's; a socket of somebody else is a rootless engine that is not ours. Root may also find an
 * engine of its own behind a socket that it gave away.
 */
function refuseOthers(socketPath: string, user: number): void {
  const owner = ownerOf(socketPath);
  if (owner === undefined || owner === ROOT) return;
  if (user === ROOT && !isServedByOther(socketPath)) return;
  throw belongsTo(owner);
}

/** That is not known while nobody listens. */
function isServedByOther(socketPath: string): boolean {
  try {
    const owner = userOf(socketPeerPid(socketPath));
    return owner !== undefined && owner !== ROOT;
  } catch {
    return false;
  }
}

function listenerOf(socketPath: string): number {
  try {
    return socketPeerPid(socketPath);
  } catch (error) {
    throw engineFault(error, socketPath);
  }
}

/** nsenter's own errors would be the last words of the command; so its first run is one that only tries. */
function tryOut(nsenter: string, words: readonly string[], pid: number): void {
  const { error, status, stderr } = spawnSync(nsenter, [...words, "true"], {
    encoding: "utf8",
    timeout: TRIAL_MS,
    stdio: ["ignore", "ignore", "pipe"],
    env: { ...process.env, LC_ALL: "C" },
  });
  if (status === 0) return;
  const reason = error?.message ?? (stderr.trim().split("\n").at(-1) || `nsenter ended with ${status}`);
  throw notEntered(pid, reason, words);
}

function notEntered(
  pid: number,
  reason: string,
  words: readonly string[] = ["--user", "--preserve-credentials", "--net", "--target", String(pid), "--"],
): Fault {
  return new Fault(
    "ENGINE_ROOTLESS",
    `Cannot enter the namespaces of the rootless engine's process ${pid}: ${reason}`,
    {
      remedy: `As the engine's user, this must work: nsenter ${words.join(" ")} true. A container or a sandbox around dns11 may forbid it.`,
      isFinal: true,
    },
  );
}

/** With --detach-netns, rootlesskit's default since Docker 29.5, the engine stays in the machine's network, and its containers' is a file. */
function detachedNetworkOf(pid: number): string {
  const folder = rootlesskitFolder(pid);
  if (folder !== undefined) return join(`/proc/${pid}/root`, folder, "netns");
  throw new Fault(
    "ENGINE_ROOTLESS",
    `The rootless engine's process ${pid} is in the machine's network, which its user cannot enter, and does not say where that of its containers is`,
    {
      remedy:
        "Start it with dockerd-rootless.sh, or with DOCKERD_ROOTLESS_ROOTLESSKIT_DETACH_NETNS=false in a drop-in of the user's docker.service.",
      isFinal: true,
    },
  );
}

function programIn(path: string): string {
  for (const folder of path.split(":").filter((each) => each.startsWith("/"))) {
    try {
      accessSync(join(folder, NSENTER), constants.X_OK);
      return join(folder, NSENTER);
    } catch {
      // It is in a later folder, or in none.
    }
  }
  throw new Fault("ENGINE_ROOTLESS", "A rootless engine is entered with the program nsenter, which is not installed", {
    remedy: "Install the package util-linux.",
    isFinal: true,
  });
}
