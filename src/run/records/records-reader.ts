/**
 * RecordsReader: the names that the operator declares: those of the settings, and those of the files in the records
 * folder, which is followed. A file that turns bad keeps the names that it had; the others are not affected.
 */
import type { RecordsReport } from "../../api/status.ts";
import { BadSettings } from "../../config/bad-settings.ts";
import type { RecordsFile } from "../../config/file/records-files.ts";
import { fingerprintOfFolder } from "../../config/file/files.ts";
import { readRecordsInWorker } from "../../config/file/worker.ts";
import { DeclaredSet } from "../../config/records/declared-set.ts";
import type { Settings } from "../../config/settings.ts";
import { reasonOf } from "../../base/lib/fault.ts";
import { LIMITS } from "../../base/limits.ts";
import type { DeclaredName } from "../../base/model/declared-name.ts";
import type { ReportEvent } from "../../base/log/log.ts";
import { FolderWatch } from "../../container/watch/folder-watch.ts";

interface RecordsReaderParts {
  readonly onEvent: ReportEvent;
  /** Called with all names, whenever they change. */
  readonly onNames: (names: readonly DeclaredName[]) => void;
}

export class RecordsReader {
  readonly #parts: RecordsReaderParts;
  readonly #watch = new FolderWatch(() => void this.#load());
  #settings: Pick<Settings, "records" | "recordsDir"> = { records: [], recordsDir: undefined };
  /** The last valid names of each file. */
  readonly #valid = new Map<string, readonly DeclaredName[]>();
  #report: RecordsReport = { names: 0, problems: [] };
  #last: Promise<void> = Promise.resolve();
  #isClosed = false;

  constructor(parts: RecordsReaderParts) {
    this.#parts = parts;
  }

  get report(): RecordsReport {
    return this.#report;
  }

  /** Applies other settings and reads the folder again. */
  async configure(settings: Pick<Settings, "records" | "recordsDir">): Promise<void> {
    if (settings.recordsDir !== this.#settings.recordsDir) this.#valid.clear();
    this.#settings = settings;
    await this.#load();
  }

  close(): void {
    this.#isClosed = true;
    this.#watch.close();
  }

  /** One after the other, so that an older reading never replaces a newer one. */
  async #load(): Promise<void> {
    this.#last = this.#last.then(async () => await this.#read());
    await this.#last;
  }

  async #read(): Promise<void> {
    const { records, recordsDir } = this.#settings;
    if (this.#isClosed) return;
    if (recordsDir === undefined) {
      this.#watch.close();
      this.#apply(records, []);
      return;
    }
    // Before the files are read: what changes in between is read again.
    const fingerprint = await fingerprintOfFolder(recordsDir);
    if (this.#isClosed) return;
    this.#watch.watch(recordsDir, fingerprint);
    try {
      this.#apply(records, await readRecordsInWorker(recordsDir));
    } catch (error) {
      const problems = error instanceof BadSettings ? error.lines : [`${recordsDir}: ${reasonOf(error)}`];
      // A folder that cannot be read keeps all its names.
      const kept = [...this.#valid].map(([path, names]): RecordsFile => ({ path, names, mistakes: [] }));
      this.#apply(records, kept, problems);
    }
  }

  #apply(records: readonly DeclaredName[], files: readonly RecordsFile[], problems: readonly string[] = []): void {
    const all = new DeclaredSet();
    all.add(records);
    const found = [...problems];
    const paths = new Set(files.map(({ path }) => path));
    for (const path of this.#valid.keys()) if (!paths.has(path)) this.#valid.delete(path);
    for (const { path, names, mistakes } of files) {
      const contradictions = names === undefined ? mistakes : all.add(names);
      if (names !== undefined && contradictions.length === 0) {
        this.#valid.set(path, names);
        continue;
      }
      found.push(...contradictions.slice(0, LIMITS.recordsProblems));
      const before = this.#valid.get(path);
      if (before !== undefined && all.add(before).length > 0) this.#valid.delete(path);
    }
    this.#tell(found.slice(0, LIMITS.recordsProblems), all.names);
  }

  #tell(problems: readonly string[], names: readonly DeclaredName[]): void {
    const { onEvent, onNames } = this.#parts;
    const known = new Set(this.#report.problems);
    const added = problems.filter((each) => !known.has(each));
    if (added.length > 0) onEvent({ problems: added }, "records have mistakes, keeping the previous names", "warn");
    else if (problems.length === 0 && known.size > 0) onEvent({ names: names.length }, "records are valid again");
    this.#report = { names: names.length, problems };
    onNames(names);
  }
}
