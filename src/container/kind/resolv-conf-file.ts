/**
 * ResolverFile: the resolv.conf of one node, a file of the engine's host that is mounted into the container. Only writing
 * into that very file reaches the container: a file that is renamed to its place leaves the mount with the old one.
 *
 * Whoever reads it meanwhile must find a server in it. Between two texts the file is therefore first made longer, by blank
 * lines and by its servers once more at the far end; then the new text is written over the old one, at a length that
 * stays; then everything behind it is cut off. The kernel does not keep a read and a write apart: it may give a reader the
 * length before a write and the bytes after it. So whoever began to read the shorter file is given the time to end.
 * (Written at once and then cut, 1 of 200 reads found no server.) Whoever copies the longer file has nothing in it that
 * was not there before.
 */
import { type FSWatcher, closeSync, constants, fstatSync, ftruncateSync, readSync, watch, writeSync } from "node:fs";

import { O_PATH, openInRoot } from "../../kernel/libc.ts";
import { type FindFile, openRegular, withRegularFile } from "../../kernel/regular-file.ts";
import { Fault } from "../../base/lib/fault.ts";
import { sleepSync } from "../../base/lib/sleep-sync.ts";
import { nameserversIn } from "./resolv-conf-text.ts";

/** A node may write its own resolv.conf, and as long as it likes. */
const FILE_BYTES_MAX = 64 * 1024;
const MOUNTED_AT = "/etc/resolv.conf";
/** A read of a few hundred bytes takes a few millionths of a second. */
const READ_MS = 0.2;

/** Opens the file anew, as it is found now. */
export type OpenFile = FindFile;

export class ResolvConfFile {
  readonly #open: FindFile;
  #watcher: FSWatcher | undefined;

  constructor(open: FindFile) {
    this.#open = open;
  }

  /** One character for each byte; undefined where there is no such file, or none that could be a resolv.conf. */
  read(): string | undefined {
    try {
      return this.#withFile(constants.O_RDONLY, textOf);
    } catch {
      return undefined;
    }
  }

  /** For how long nobody has written to it; a time that is yet to come says that the clock was put back since. */
  quietMs(): number {
    try {
      return this.#withFile(constants.O_RDONLY, (fd) => Math.abs(Date.now() - fstatSync(fd).mtimeMs));
    } catch {
      return 0;
    }
  }

  /** Throws a Fault that says why, where the file cannot be written. */
  assertWritable(): void {
    this.#forWriting(() => {});
  }

  /** Returns whether it could, undisturbed: where somebody else is writing at this moment the file is theirs. */
  write(text: string): boolean {
    return this.#forWriting((fd) => {
      const before = textOf(fd);
      if (before === undefined) throw new Error("It is too long for a resolv.conf");
      const { extension, body } = writeSteps(before, text);
      writeAll(fd, extension, before.length);
      waitForReaders();
      if (textOf(fd) !== before + extension) return false;
      writeAll(fd, body, 0);
      // Somebody else may have emptied the file meanwhile; then this would fill it up with zeroes.
      if (fstatSync(fd).size > text.length) ftruncateSync(fd, text.length);
      return true;
    });
  }

  /**
   * Has it told that somebody wrote to the file that is there now, be it we ourselves; what happens after it has returned is
   * not missed. Whoever is told watches anew, and reads then. Where the kernel gives no watch nothing is told.
   */
  watch(onChange: () => void): void {
    this.close();
    try {
      this.#watcher = withRegularFile(this.#open, (path) => watch(path, { persistent: false }, onChange));
      this.#watcher.on("error", () => {});
    } catch {
      // Who wants to be sure looks from time to time.
    }
  }

  close(): void {
    this.#watcher?.close();
    this.#watcher = undefined;
  }

  #forWriting<T>(use: (fd: number) => T): T {
    try {
      return this.#withFile(constants.O_RDWR, use);
    } catch (error) {
      throw new Fault("RESOLV_CONF_READ_ONLY", "The node's resolv.conf cannot be written", {
        cause: error,
        remedy: "The node is served all the same. Name our address to its pods yourself, or make the file writable.",
      });
    }
  }

  #withFile<T>(flags: number, use: (fd: number) => T): T {
    const fd = openRegular(this.#open, flags);
    try {
      return use(fd);
    } finally {
      closeSync(fd);
    }
  }
}

/** Whether the engine's file is what the container has: an image's user may have mounted something of their own there. */
export function isMountedIn(engineFile: number, containerRoot: number): boolean {
  let fd;
  try {
    fd = openInRoot(containerRoot, MOUNTED_AT, O_PATH);
  } catch {
    return false;
  }
  try {
    const [ours, theirs] = [fstatSync(engineFile, { bigint: true }), fstatSync(fd, { bigint: true })];
    return ours.dev === theirs.dev && ours.ino === theirs.ino;
  } finally {
    closeSync(fd);
  }
}

/** What a file may hold after a death on the way from one text to another. */
export function intermediateTexts(from: string, to: string): readonly string[] {
  const { extension, body } = writeSteps(from, to);
  const extended = from + extension;
  return [extended, body + extended.slice(body.length)];
}

/** What to append, and what then to write over the beginning, before the rest is cut off. */
function writeSteps(from: string, to: string): { readonly extension: string; readonly body: string } {
  const length = Math.max(from.length, to.length);
  const servers = nameserversIn(from).map((server) => `nameserver ${server}\n`);
  return { extension: `${"\n".repeat(length - from.length)}\n${servers.join("")}`, body: to.padEnd(length, "\n") };
}

function textOf(fd: number): string | undefined {
  const bytes = Buffer.alloc(FILE_BYTES_MAX + 1);
  const length = readSync(fd, bytes, 0, bytes.length, 0);
  return length > FILE_BYTES_MAX ? undefined : bytes.toString("latin1", 0, length);
}

/** Too short for a turn of the event loop, in which anything might happen to the file. */
function waitForReaders(): void {
  sleepSync(READ_MS);
}

/** A write may end early, and then goes on where it ended. */
function writeAll(fd: number, text: string, position: number): void {
  const bytes = Buffer.from(text, "latin1");
  let written = 0;
  while (written < bytes.length) {
    written += writeSync(fd, bytes, written, bytes.length - written, position + written);
  }
}
