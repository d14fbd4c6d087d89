/**
 * NewFile: a file that is written at the end of long work, all of it or nothing. Whether it can be created is known at the
 * beginning. Nothing is overwritten, not even a link, so nobody can make root write elsewhere.
 */
import { randomBytes } from "node:crypto";
import { closeSync, constants, existsSync, lstatSync, openSync, renameSync, rmSync, writeSync } from "node:fs";

import { Fault } from "../../src/base/lib/fault.ts";

export class NewFile {
  readonly #path: string;
  readonly #mode: number;

  /** Throws a Fault if something is at the path, or nothing can be created there. */
  constructor(path: string, mode: number) {
    this.#path = path;
    this.#mode = mode;
    this.#beside((partial) => closeSync(this.#open(partial)));
  }

  write(content: string | Uint8Array): void {
    const bytes = Buffer.from(content);
    this.#beside((partial) => {
      const fd = this.#open(partial);
      try {
        for (let written = 0; written < bytes.length;) written += writeSync(fd, bytes, written);
      } finally {
        closeSync(fd);
      }
      // It follows no link.
      renameSync(partial, this.#path);
    });
  }

  /** Works with a file beside it, of which nothing stays. */
  #beside(work: (partial: string) => void): void {
    const partial = `${this.#path}.${randomBytes(SUFFIX_BYTES).toString("hex")}`;
    try {
      if (lstatSync(this.#path, { throwIfNoEntry: false }) !== undefined) throw exists(this.#path);
      work(partial);
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

  #open(path: string): number {
    const { O_WRONLY, O_CREAT, O_EXCL, O_NOFOLLOW } = constants;
    return openSync(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, this.#mode);
  }
}

const SUFFIX_BYTES = 6;

function exists(path: string): Fault {
  return new Fault("FILE_EXISTS", `"${path}" exists, and dns11 does not overwrite it`, {
    remedy: "Choose the path of a file that does not exist yet.",
  });
}
