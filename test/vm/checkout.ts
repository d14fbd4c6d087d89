/** Checkouts: the program, its packages and its tests as a disk, with a Node, for each architecture. */
import { cpSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { run, stdoutOf } from "../support/program/command.ts";
import { makeDisk } from "./disk.ts";
import type { Architecture } from "./emulator.ts";
import { type ChosenTests, TESTS_FILE } from "./machines.ts";
import { partsFor } from "./program-of.ts";

const SIZE = "2G";
const PARTS = ["dist", "node_modules", "scripts", "test", "docs", "package.json", "package-lock.json"];

export class Checkouts {
  readonly #source: string;
  readonly #folder: string;
  readonly #tests: readonly ChosenTests[];
  readonly #made = new Map<Architecture, string>();

  constructor(source: string, folder: string, tests: readonly ChosenTests[]) {
    this.#source = source;
    this.#folder = folder;
    this.#tests = tests;
  }

  /** The image, made when it is first asked for. */
  async of(architecture: Architecture): Promise<string> {
    const image = this.#made.get(architecture) ?? (await this.#make(architecture));
    this.#made.set(architecture, image);
    return image;
  }

  async #make(architecture: Architecture): Promise<string> {
    const copy = join(this.#folder, "checkout");
    mkdirSync(join(copy, "bin"), { recursive: true });
    for (const part of PARTS) stdoutOf(await run("cp", ["-r", part, copy], { cwd: this.#source }), "cp");
    const { node, packages } = await partsFor(architecture);
    cpSync(node, join(copy, "bin", "node"), { dereference: true });
    for (const [from, place] of packages) {
      cpSync(from, join(copy, "node_modules", place), { recursive: true, dereference: true });
    }
    // That of Debian 11 cannot sleep for ever.
    if (architecture === "amd64") {
      stdoutOf(await run("sh", ["-c", 'cp "$(command -v busybox)" "$1"', "sh", join(copy, "bin")]), "cp");
    }
    writeFileSync(join(copy, TESTS_FILE), JSON.stringify(this.#tests));
    const image = join(this.#folder, `checkout-${architecture}.ext4`);
    await makeDisk(copy, image, SIZE);
    rmSync(copy, { recursive: true });
    return image;
  }
}
