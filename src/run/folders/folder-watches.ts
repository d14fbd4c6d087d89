/**
 * FolderWatches: follows the folders of other programs that settings come from.
 */
import type { NamedFolder } from "../../config/settings.ts";
import { FolderWatch } from "./folder-watch.ts";

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
      const watch = before.get(path) ?? new FolderWatch(this.#onChange);
      before.delete(path);
      this.#watches.set(path, watch);
      watch.watch(path, fingerprint);
    }
    for (const [path, watch] of before) {
      watch.close();
      this.#watches.delete(path);
    }
  }
}
