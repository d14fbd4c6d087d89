/**
 * NewFile: a file that is written at the end of long work, all of it or nothing. Whether it can be created is known at the
 * beginning. Nothing is overwritten, not even a link, so nobody can make root write elsewhere.
 */
import { randomBytes } from "node:crypto";
import { existsSync, lstatSync, renameSync, rmSync, writeFileSync } from "node:fs";

import { Fault } from "../../src/base/lib/fault.ts";

export class NewFile {
  readonly #path: string;
  readonly #mode: number;

  /** Throws a Fault if something is at the path, or nothing can be created there. */
  constructor(path: string, mode: number) {
    this.#path = path;
    this.#mode = mode;
    this.#beside("");
  }

  write(content: string | Uint8Array): void {
    // It follows no link.
    this.#beside(content, (partial) => renameSync(partial, this.#path));
  }

  /** Writes a file beside it, of which nothing stays after `use`. */
  #beside(content: string | Uint8Array, use?: (partial: string) => void): void {
    const partial = `${this.#path}.${randomBytes(SUFFIX_BYTES).toString("hex")}`;
    try {
      if (lstatSync(this.#path, { throwIfNoEntry: false }) !== undefined) throw exists(this.#path);
      writeFileSync(partial, content, { flag: ONLY_NEW, mode: this.#mode });
      use?.(partial);
    } catch (cause) {
      if (cause instanceof Fault) throw cause;
      throw new Fault("NEW_FILE", `Cannot create "${this.#path}"`, {
        cause,
        remedy: "Choose a path in a directory that exists, that you may write to, and that has room.",
      });
    } finally {
      if (existsSync(partial)) rmSync(partial);
    }
  }
}

const SUFFIX_BYTES = 6;
/** O_EXCL: not even a link is followed. */
const ONLY_NEW = "wx";

function exists(path: string): Fault {
  return new Fault("FILE_EXISTS", `"${path}" exists, and dns11 does not overwrite it`, {
    remedy: "Choose the path of a file that does not exist yet.",
  });
}
