/**
 * PathWatch: reports that the files at some paths may have changed. Files are replaced, symlinks are swapped, folders
 * are removed and re-created. So every folder on the path is watched for the next name, following symlinks as a process
 * with the engine's root would. The file itself is watched, too, because it may be written by another path (a bind
 * mount).
 *
 * The kernel watches inodes, not paths: after a change nothing is watched, and the caller must arm the watch again before it reads.
 */
import { closeSync, fstatSync, readlinkSync, watch } from "node:fs";
import { posix } from "node:path";

import { O_PATH, openInRoot } from "../../kernel/libc.ts";

/** Path components to follow, including those of symlinks; the kernel itself follows at most 40 symlinks. */
const STEPS_MAX = 256;

export class PathWatch {
  readonly #onEvent: () => void;
  /** The names to watch in each folder. */
  readonly #folders = new Map<string, Set<string>>();
  #closers: (() => void)[] = [];
  #isBlind = false;

  constructor(onEvent: () => void) {
    this.#onEvent = onEvent;
  }

  /** Whether changes may be missed, because the kernel refused a watch. */
  get isBlind(): boolean {
    return this.#isBlind;
  }

  /** Watches these paths as they are now; changes after it has returned are not missed. */
  arm(root: number, paths: readonly string[]): void {
    this.close();
    for (const path of paths) this.#follow(root, path);
  }

  close(): void {
    for (const close of this.#closers) close();
    this.#closers = [];
    this.#folders.clear();
    this.#isBlind = false;
  }

  #follow(root: number, path: string): void {
    const rest = path.split("/").toReversed();
    let folder = "/";
    for (let steps = 0; steps < STEPS_MAX; steps++) {
      const name = rest.pop();
      if (name === undefined) break;
      if (name === "" || name === ".") continue;
      if (name === "..") {
        folder = posix.dirname(folder);
        continue;
      }
      const target = withOpen(root, folder, (fd) => {
        // Watch before reading the link, so that a swap in between is reported.
        this.#watchFolder(fd, folder, name);
        return linkTarget(fd, name) ?? "";
      });
      // The folder does not exist. Its parent is watched and will report its creation.
      if (target === undefined) return;
      if (target.startsWith("/")) folder = "/";
      if (target === "") folder = posix.join(folder, name);
      else rest.push(...target.split("/").toReversed());
    }
    withOpen(root, folder, (fd) => this.#watch(fd, () => true));
  }

  #watchFolder(fd: number, folder: string, name: string): void {
    const known = this.#folders.get(folder);
    if (known !== undefined) {
      known.add(name);
      return;
    }
    const names = new Set([name]);
    this.#folders.set(folder, names);
    this.#watch(fd, (changed) => changed === null || names.has(changed));
  }

  #watch(fd: number, counts: (name: string | null) => boolean): void {
    const stat = fstatSync(fd);
    // A device such as /dev/null is written all the time.
    if (!stat.isFile() && !stat.isDirectory()) return;
    try {
      const watcher = watch(`/proc/self/fd/${fd}`, { persistent: false }, (_, name) => {
        if (!counts(name)) return;
        // Files are written any number of times a second. The caller arms the watch again.
        this.close();
        this.#onEvent();
      });
      watcher.on("error", () => (this.#isBlind = true));
      this.#closers.push(() => watcher.close());
    } catch {
      this.#isBlind = true;
    }
  }
}

/** Calls `use` with the opened path; undefined if it cannot be opened. */
function withOpen<T>(root: number, path: string, use: (fd: number) => T): T | undefined {
  let fd;
  try {
    // O_PATH: the file may be a pipe, or leased.
    fd = openInRoot(root, path, O_PATH);
  } catch {
    return undefined;
  }
  try {
    return use(fd);
  } finally {
    closeSync(fd);
  }
}

function linkTarget(folder: number, name: string): string | undefined {
  try {
    return readlinkSync(`/proc/self/fd/${folder}/${name}`);
  } catch {
    return undefined;
  }
}
