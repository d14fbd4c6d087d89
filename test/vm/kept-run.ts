/**
 * KeptRun: what a machine printed when all of its tests passed, so that a run of all machines can be done in pieces, or several beside each
 * other. It counts for the same program, tests and packages.
 */
import { createHash } from "node:crypto";
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { textOf } from "../support/rig/text-of.ts";
import { diskName } from "./disk.ts";
import type { Kernel } from "./machines.ts";
import type { Outcome } from "./outcome.ts";

export interface KeptRun {
  readonly outcomes: readonly Outcome[];
  readonly seconds: number;
  readonly day: string;
}

/** What runs inside, apart from the packages of the release. */
const FILES = ["package-lock.json", "scripts/demo.mjs", "scripts/shop.mjs"];
const PROGRAM = "dist";

export class KeptRuns {
  readonly #folder: string;
  readonly #program: string;

  constructor(checkout: string, folder: string) {
    this.#folder = folder;
    mkdirSync(folder, { recursive: true });
    const built = readdirSync(join(checkout, PROGRAM), { recursive: true, encoding: "utf8" })
      .filter((file) => file.endsWith(".js"))
      .map((file) => join(PROGRAM, file));
    const hash = createHash("sha256");
    for (const file of [...FILES, ...built.toSorted()]) hash.update(file).update(readFileSync(join(checkout, file)));
    this.#program = hash.digest("hex").slice(0, 16);
  }

  read(machine: Kernel): KeptRun | undefined {
    const text = textOf(this.#fileOf(machine));
    return text === "" ? undefined : (JSON.parse(text) as KeptRun);
  }

  write(machine: Kernel, run: KeptRun): void {
    writeFileSync(this.#fileOf(machine), JSON.stringify(run));
  }

  #fileOf(machine: Kernel): string {
    return join(this.#folder, `${diskName(machine)}-${this.#program}.json`);
  }
}
