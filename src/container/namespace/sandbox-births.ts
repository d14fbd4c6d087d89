/**
 * SandboxBirths: the network namespaces that the engine makes, each as soon as it is there. The engine keeps a file for each, and
 * makes it before the container that it is for has run an instruction: a process of the runtime waits in there, in the
 * container's control group. Threads and children of the engine come and go.
 */
import { type FSWatcher, constants, fstatSync, watch } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";

import { guard } from "../../base/lib/guard.ts";
import { gatherInSlices } from "../../base/lib/slices.ts";
import { O_PATH, closeQuietly, isNetworkNamespace, openInRoot } from "../../kernel/libc.ts";
import { procText } from "../../kernel/process.ts";
import type { EngineHost } from "./engine-host.ts";
import { type Sandbox, inodeOf } from "./find-sandbox.ts";

export interface BirthHooks {
  /** The awaited container to which a process with these control groups belongs. */
  readonly ownerOf: (groups: string) => string | undefined;
  readonly onBorn: (id: string, sandbox: Sandbox) => void;
}

interface SandboxBirthsParts {
  /** Another one after each start of the engine. */
  readonly host: () => EngineHost;
  /** Where the engine keeps the files. */
  readonly folder: () => string;
}

/** The file is mounted, and the loopback is up, soon after the file was made. */
const LOOK_AGAIN_MS = 5;
const LOOKS_MAX = 20;
/** The process is one of the newest: so many processes and threads are looked at, on a busy machine as many as start in seconds. */
const NEWEST = 4_096;
const LOOPBACK = "127.0.0.1";

export class SandboxBirths {
  readonly #parts: SandboxBirthsParts;
  #watched: { readonly host: EngineHost; readonly folder: string; readonly watcher: FSWatcher } | undefined;
  #hooks: BirthHooks = { ownerOf: () => undefined, onBorn: () => undefined };

  constructor(parts: SandboxBirthsParts) {
    this.#parts = parts;
  }

  follow(hooks: BirthHooks): void {
    this.#hooks = hooks;
  }

  /** Call when a container is awaited: the engine makes the folder with its first container. */
  arm(): void {
    const [host, folder] = [this.#parts.host(), this.#parts.folder()];
    if (this.#watched?.host === host && this.#watched.folder === folder) return;
    this.close();
    if (!host.sharesPids) return;
    let fd = -1;
    try {
      fd = openInRoot(host.root, folder, O_PATH | constants.O_DIRECTORY);
      const watcher = watch(`/proc/self/fd/${fd}`, { persistent: false }, (event, name) => {
        if (event !== "rename" || name === null) return;
        void this.#look(host, `${folder}/${name}`).catch((error: unknown) => guard.report(error, "attach"));
      });
      watcher.on("error", () => this.close());
      this.#watched = { host, folder, watcher };
    } catch {
      // It is not there yet, or the kernel refuses a watch: containers are served when they have started.
    } finally {
      closeQuietly(fd);
    }
  }

  close(): void {
    this.#watched?.watcher.close();
    this.#watched = undefined;
  }

  async #look(host: EngineHost, path: string): Promise<void> {
    let owned: { readonly id: string; readonly pid: number } | undefined;
    for (let looks = 0; looks < LOOKS_MAX && this.#watched?.host === host; looks++) {
      if (looks > 0) await sleep(LOOK_AGAIN_MS, undefined, { ref: false });
      const inode = namespaceAt(host.root, path);
      if (inode === "gone") return;
      if (inode === "unmounted") continue;
      [owned] = owned === undefined ? await gatherInSlices(this.#ownedIn(inode)) : [owned];
      if (owned === undefined) return;
      const { id, pid } = owned;
      if (procText(`/proc/${pid}/net/fib_trie`)?.includes(LOOPBACK) !== true) continue;
      this.#hooks.onBorn(id, { path, pid });
      return;
    }
  }

  /** The process in a namespace that belongs to an awaited container, and that container; ends with it. */
  *#ownedIn(inode: number): Generator<{ readonly id: string; readonly pid: number } | undefined> {
    const last = Number(procText("/proc/loadavg")?.trim().split(" ").at(-1));
    for (let pid = last; pid > 0 && pid > last - NEWEST; pid--) {
      const isInside = inodeOf(`/proc/${pid}/ns/net`) === inode;
      const isProcess = isInside && procText(`/proc/${pid}/status`)?.includes(`\nTgid:\t${pid}\n`) === true;
      const id = isProcess ? this.#hooks.ownerOf(procText(`/proc/${pid}/cgroup`) ?? "") : undefined;
      yield id === undefined ? undefined : { id, pid };
      if (id !== undefined) return;
    }
  }
}

/** The inode of the namespace. */
function namespaceAt(root: number, path: string): number | "unmounted" | "gone" {
  let fd = -1;
  try {
    fd = openInRoot(root, path, constants.O_RDONLY);
    return isNetworkNamespace(fd) ? fstatSync(fd).ino : "unmounted";
  } catch {
    return "gone";
  } finally {
    closeQuietly(fd);
  }
}
