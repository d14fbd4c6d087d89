/**
 * FolderWatch: reports that the files of a folder have changed. The folder is polled, too: a file may be a link to one in
 * another folder.
 */
import { type FSWatcher, watch } from "node:fs";

import { LIMITS } from "../../base/limits.ts";
import { fingerprintOfFolder } from "../../config/file/files.ts";
import { DebounceTimer } from "../../container/watch/debounce-timer.ts";

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
