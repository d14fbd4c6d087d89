/**
 * FolderWatch: reports that the files of a folder have changed. The folder is polled, too: a file may be a link to one in
 * another folder.
 */
import { type FSWatcher, watch } from "node:fs";
import { LIMITS } from "../../base/limits.ts";
import { fingerprintOfFolder } from "../../config/file/files.ts";
import { DebounceTimer } from "./debounce-timer.ts";
import type { NamedFolder } from "../../config/settings.ts";

export class FolderWatch {
  readonly #onChange: () => void;
  readonly #timer = new DebounceTimer(() => void this.#poll());
  #watcher: FSWatcher | undefined;
  #folder: string | undefined;
  #fingerprint = "";

  constructor(onChange: () => void) {
    this.#onChange = onChange;
  }

  /** Watches a folder from the state on that has this fingerprint. */
  watch(folder: string, fingerprint: string): void {
    this.#folder = folder;
    this.#fingerprint = fingerprint;
    this.#arm(folder);
    // It may have changed since then.
    this.#timer.trigger();
  }

  /** Watches nothing. */
  close(): void {
    this.#folder = undefined;
    this.#timer.cancel();
    this.#watcher?.close();
  }

  async #poll(): Promise<void> {
    this.#timer.cancel();
    const folder = this.#folder;
    if (folder === undefined) return;
    // Before the files are read: what changes in between is read again.
    this.#arm(folder);
    const now = await fingerprintOfFolder(folder);
    if (folder !== this.#folder || now === this.#fingerprint) return;
    this.#fingerprint = now;
    this.#onChange();
  }

  #arm(folder: string): void {
    this.#watcher?.close();
    this.#watcher = undefined;
    this.#timer.runAfter(LIMITS.hostFilePollMs);
    try {
      this.#watcher = watch(folder, { persistent: false }, () => this.#timer.trigger());
      this.#watcher.on("error", () => this.#watcher?.close());
    } catch {
      // The next poll tries again.
    }
  }
}

/** Follows the folders of other programs that settings come from. */
export class FolderWatches {
  readonly #onChange: () => void;
  #isClosed = false;
  readonly #watches = new Map<string, FolderWatch>();

  constructor(onChange: () => void) {
    this.#onChange = onChange;
  }

  /** These instead of those before. */
  watch(folders: readonly NamedFolder[]): void {
    if (!this.#isClosed) this.#watch(folders);
  }

  close(): void {
    this.#isClosed = true;
    this.#watch([]);
  }

  #watch(folders: readonly NamedFolder[]): void {
    const before = new Map(this.#watches);
    for (const { path, fingerprint } of folders) {
      const each = before.get(path) ?? new FolderWatch(this.#onChange);
      before.delete(path);
      this.#watches.set(path, each);
      each.watch(path, fingerprint);
    }
    for (const [path, each] of before) {
      each.close();
      this.#watches.delete(path);
    }
  }
}
