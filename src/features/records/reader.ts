/**
 * RecordsReader: the names that the operator declares: those of the settings, and those of the files in the records folder, which is
 * followed. A file that turns bad keeps the names that it had; the others are not affected.
 */
import type { RecordsReport } from "../../api/status.ts";
import { reasonOf } from "../../base/lib/fault.ts";
import type { ReportEvent } from "../../base/log/log.ts";
import { LIMITS } from "../../base/limits.ts";
import type { DeclaredName } from "../../base/model/declared-name.ts";
import { BadSettings } from "../../config/bad-settings.ts";
import { fingerprintOfFolder } from "../../config/file/files.ts";
import { readFolderInWorker } from "../../config/file/worker.ts";
import { DeclaredSet } from "../../config/records/declared-set.ts";
import { FolderWatch } from "../../container/watch/folder-watch.ts";
import type { RecordsSettings } from "./feature.ts";
import type { RecordsFile } from "./files.ts";

/** What was read for some settings. */
interface Reading {
  /** Of the folder, before its files were read: what changes in between is read again. */
  readonly fingerprint: string;
  /** Undefined where the folder could not be read. */
  readonly files: readonly RecordsFile[] | undefined;
  readonly problems: readonly string[];
}

/** Puts what was read into force, and returns all names. */
export type ApplyRecords = () => readonly DeclaredName[];

export class RecordsReader {
  readonly #onEvent: ReportEvent;
  readonly #onNames: (names: readonly DeclaredName[]) => void;
  readonly #watch = new FolderWatch(() => void this.#readAgain());
  #settings: RecordsSettings = { records: [], folder: undefined };
  /** The last valid names of each file. */
  readonly #valid = new Map<string, readonly DeclaredName[]>();
  #report: RecordsReport = { names: 0, problems: [] };
  #last: Promise<void> = Promise.resolve();
  #isClosed = false;

  /** `onNames` is called with all names when files have changed. */
  constructor(onEvent: ReportEvent, onNames: (names: readonly DeclaredName[]) => void) {
    this.#onEvent = onEvent;
    this.#onNames = onNames;
  }

  get report(): RecordsReport {
    return this.#report;
  }

  /** Reads what these settings declare, while others are in force. */
  async prepare(settings: RecordsSettings): Promise<ApplyRecords> {
    const reading = await read(settings);
    return () => {
      if (settings.folder !== this.#settings.folder) this.#valid.clear();
      this.#settings = settings;
      if (settings.folder === undefined) this.#watch.close();
      else if (!this.#isClosed) this.#watch.watch(settings.folder, reading.fingerprint);
      return this.#apply(reading);
    };
  }

  close(): void {
    this.#isClosed = true;
    this.#watch.close();
  }

  /** One after the other, so that an older reading never replaces a newer one. */
  async #readAgain(): Promise<void> {
    this.#last = this.#last.then(async () => await this.#readOnce());
    await this.#last;
  }

  async #readOnce(): Promise<void> {
    const settings = this.#settings;
    if (this.#isClosed) return;
    const reading = await read(settings);
    // Other settings may have come into force meanwhile, with what was read for them.
    if (settings === this.#settings && !this.#isClosed) this.#onNames(this.#apply(reading));
  }

  #apply({ files, problems }: Reading): readonly DeclaredName[] {
    const all = new DeclaredSet();
    all.add(this.#settings.records);
    const found = [...problems];
    // A folder that cannot be read keeps all its names.
    const each = files ?? [...this.#valid].map(([path, names]): RecordsFile => ({ path, names, mistakes: [] }));
    const paths = new Set(each.map(({ path }) => path));
    for (const path of this.#valid.keys()) if (!paths.has(path)) this.#valid.delete(path);
    for (const { path, names, mistakes } of each) {
      const contradictions = names === undefined ? mistakes : all.add(names);
      if (names !== undefined && contradictions.length === 0) {
        this.#valid.set(path, names);
        continue;
      }
      found.push(...contradictions.slice(0, LIMITS.recordsProblems));
      const before = this.#valid.get(path);
      if (before !== undefined && all.add(before).length > 0) this.#valid.delete(path);
    }
    this.#noteProblems(found.slice(0, LIMITS.recordsProblems), all.names);
    return all.names;
  }

  #noteProblems(problems: readonly string[], names: readonly DeclaredName[]): void {
    const known = new Set(this.#report.problems);
    const added = problems.filter((each) => !known.has(each));
    if (added.length > 0)
      this.#onEvent({ problems: added }, "records have mistakes, keeping the previous names", "warn");
    else if (problems.length === 0 && known.size > 0) this.#onEvent({ names: names.length }, "records are valid again");
    this.#report = { names: names.length, problems };
  }
}

async function read({ folder }: RecordsSettings): Promise<Reading> {
  if (folder === undefined) return { fingerprint: "", files: [], problems: [] };
  const fingerprint = await fingerprintOfFolder(folder);
  try {
    const files = await readFolderInWorker<readonly RecordsFile[]>("records-dir", folder);
    return { fingerprint, files, problems: [] };
  } catch (error) {
    const problems = error instanceof BadSettings ? error.lines : [`${folder}: ${reasonOf(error)}`];
    return { fingerprint, files: undefined, problems };
  }
}
