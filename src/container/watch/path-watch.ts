/**
 * PathWatch: says that what some paths lead to may have changed, wherever on the way: files are replaced, links are
 * swapped, folders are removed and made anew. So every folder on the way is watched for the one name that leads on, links
 * followed as a process whose root is the engine's would follow them; and the file itself, too, which somebody may write
 * to by another path (a bind mount).
 *
 * The kernel watches what was there, not what it was called. Whoever is told of a change arms anew, and reads then.
 */
import { closeSync, fstatSync, readlinkSync, watch } from "node:fs";
import { posix } from "node:path";

import { O_PATH, openInRoot } from "../../kernel/libc.ts";

/** Steps on the way to a path, those along links included; the kernel itself follows no more than 40 links. */
const STEPS_MAX = 256;

export class PathWatch {
  readonly #onEvent: () => void;
  /** The names that count in each folder that is watched. */
  readonly #folders = new Map<string, Set<string>>();
  #closers: (() => void)[] = [];
  #isBlind = false;

  constructor(onEvent: () => void) {
    this.#onEvent = onEvent;
  }

  /** Whether changes may go unseen, because the kernel gave no watch. */
  get isBlind(): boolean {
    return this.#isBlind;
  }

  /** Watches the ways to these paths as they lead now; what changes after it has returned is not missed. */
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
        // The watch first, the look second: a link that is swapped in between is heard of.
        this.#watchFolder(fd, folder, name);
        return linkTarget(fd, name) ?? "";
      });
      // There is no such folder. It is heard of when it comes, in the folder that it will be in.
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
    // Everybody writes to a device such as /dev/null.
    if (!stat.isFile() && !stat.isDirectory()) return;
    try {
      const watcher = watch(`/proc/self/fd/${fd}`, { persistent: false }, (_, name) => {
        if (counts(name)) this.#onEvent();
      });
      watcher.on("error", () => (this.#isBlind = true));
      this.#closers.push(() => watcher.close());
    } catch {
      this.#isBlind = true;
    }
  }
}

/** What `use` makes of an opened path; undefined where it cannot be opened. */
function withOpen<T>(root: number, path: string, use: (fd: number) => T): T | undefined {
  let fd;
  try {
    // Found, not opened: what stands there may be a pipe, or leased.
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
