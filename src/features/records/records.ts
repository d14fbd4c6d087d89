import type { Status } from "../../api/status.ts";
import type { Settings } from "../../config/settings.ts";
import type { PlacedNames } from "../../container/names/name-sources.ts";
import type { Prepared, RunCore, Running } from "../contract.ts";
import { recordsOf } from "./feature.ts";
import { DeclaredNames } from "./names.ts";
import { type ApplyRecords, RecordsReader } from "./reader.ts";

export function open(run: RunCore): Running {
  return new Records(run);
}

/** The names that the operator declares, in a run, from its first settings through all reloads and changes of files. */
class Records implements Running {
  readonly names: PlacedNames;
  readonly #run: RunCore;
  readonly #source: DeclaredNames;
  readonly #reader: RecordsReader;
  /** What other settings declare, until they are in force. */
  #next: ApplyRecords | undefined;

  constructor(run: RunCore) {
    this.#run = run;
    this.#source = new DeclaredNames(run.settings);
    this.names = { place: "declared", source: this.#source };
    this.#reader = new RecordsReader(run.onEvent, (declared) => {
      this.#source.set(declared);
      this.#changed();
    });
  }

  status(): Pick<Status, "records"> {
    return { records: this.#reader.report };
  }

  async start(): Promise<void> {
    const apply = await this.#reader.prepare(recordsOf(this.#run.settings));
    const declared = apply();
    this.#source.set(declared);
    if (declared.length > 0) this.#changed();
  }

  async prepare(settings: Settings): Promise<Prepared> {
    this.#next = await this.#reader.prepare(recordsOf(settings));
    return {
      names: this.names,
      commit: () => undefined,
      discard: async () => {
        this.#next = undefined;
        await Promise.resolve();
      },
    };
  }

  /** All views are made again behind this, with what is declared now. */
  configure(settings: Settings): void {
    this.#source.configure(settings);
    const declared = this.#next?.();
    this.#next = undefined;
    if (declared !== undefined) this.#source.set(declared);
  }

  closing(): void {
    this.#reader.close();
  }

  #changed(): void {
    this.#run.onNames();
    this.#run.updateViews();
  }
}
