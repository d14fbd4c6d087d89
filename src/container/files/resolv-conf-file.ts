/**
 * ResolvConfFile: the resolv.conf of one node, a file on the engine's host that is bind-mounted into the container. Only an
 * in-place write reaches the container; after a rename the mount still shows the old file.
 *
 * A concurrent reader must always find a nameserver. So a write first extends the file with blank lines and a copy of its
 * nameservers, then overwrites the old text at constant length, then truncates the rest. Reads and writes are not atomic to
 * each other: a reader may get the length before a write and the bytes after it. So the writer waits for readers of the shorter
 * file to finish. (With a plain write and truncate, 1 of 200 reads found no nameserver.) A copy of the extended file contains
 * nothing that was not in the file before.
 */
import { closeSync, constants, fstatSync, ftruncateSync, readSync, writeSync } from "node:fs";

import { O_PATH, closeQuietly, openInRoot } from "../../kernel/libc.ts";
import { type FindFile, onNextWrite, openRegular } from "../../kernel/regular-file.ts";
import { Fault } from "../../base/lib/fault.ts";
import { sleepSync } from "../../base/lib/async.ts";
import { withContainerRoot } from "../namespace/container-root.ts";
import type { EngineHost } from "../namespace/engine-host.ts";
import { nameserversIn } from "./resolv-conf-text.ts";

/** A node controls its resolv.conf and could make it any length. */
const FILE_BYTES_MAX = 64 * 1024;
const MOUNTED_AT = "/etc/resolv.conf";
/** Ample: a read of a few hundred bytes takes a few microseconds. */
const READ_MS = 0.2;

/** Opens the current file. */
export type OpenFile = FindFile;

export class ResolvConfFile {
  readonly #open: FindFile;
  #endWatch: () => void = () => undefined;

  constructor(open: FindFile) {
    this.#open = open;
  }

  /** One character per byte; undefined if the file is missing, unreadable or too long for a resolv.conf. */
  read(): string | undefined {
    try {
      return this.#withFile(constants.O_RDONLY, textOf);
    } catch {
      return undefined;
    }
  }

  /** The time since the last write. A write time in the future means that the clock was set back. */
  quietMs(): number {
    try {
      return this.#withFile(constants.O_RDONLY, (fd) => Math.abs(Date.now() - fstatSync(fd).mtimeMs));
    } catch {
      return 0;
    }
  }

  /** Throws a Fault if the file cannot be written. */
  assertWritable(): void {
    this.#forWriting(() => {});
  }

  /** Returns false, without finishing, if another program writes the file at the same time. */
  write(text: string): boolean {
    return this.#forWriting((fd) => {
      const before = textOf(fd);
      if (before === undefined) {
        throw new Fault("TOO_LONG", "The node's resolv.conf is too long to be changed", {
          remedy: "Shorten the file in the node.",
        });
      }
      const { extension, body } = writeSteps(before, text);
      writeAll(fd, extension, before.length);
      waitForReaders();
      if (textOf(fd) !== before + extension) return false;
      writeAll(fd, body, 0);
      // If another program truncated the file meanwhile, ftruncate would fill it with zeroes.
      if (fstatSync(fd).size > text.length) ftruncateSync(fd, text.length);
      return true;
    });
  }

  /**
   * Calls `onChange` for the next write to the current file, also for one of our own; writes after it returns are not missed. The
   * callee calls watch() again and then reads. If the kernel provides no watch, it is never called: the caller
   * polls to be sure.
   */
  watch(onChange: () => void): void {
    this.close();
    this.#endWatch = onNextWrite(this.#open, onChange);
  }

  close(): void {
    this.#endWatch();
  }

  #forWriting<T>(use: (fd: number) => T): T {
    try {
      return this.#withFile(constants.O_RDWR, use);
    } catch (error) {
      throw new Fault("RESOLV_CONF_READ_ONLY", "The node's resolv.conf cannot be written", {
        cause: error,
        remedy:
          "dns11 serves the node nevertheless. Make the file writable, or set the address in its pods' resolv.conf yourself.",
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

/** Whether the container has the engine's file; a user may have mounted another one there. */
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

/** If a user mounted a file over resolv.conf, the engine reports that file, which may be shared with other programs. */
export function isContainerResolvConf(host: EngineHost, path: string, pid: number, containerId: string): boolean {
  if (!path.endsWith(`/${containerId}/resolv.conf`)) return false;
  let file = -1;
  try {
    file = openInRoot(host.root, path, O_PATH);
    const engineFile = file;
    return withContainerRoot(pid, containerId, host, (root) => isMountedIn(engineFile, root));
  } catch {
    return false;
  } finally {
    closeQuietly(file);
  }
}

/** The texts that a kill during write() may leave in the file. */
export function intermediateTexts(from: string, to: string): readonly string[] {
  const { extension, body } = writeSteps(from, to);
  const extended = from + extension;
  return [extended, body + extended.slice(body.length)];
}

/** What to append, and what to write over the beginning before the truncation. */
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

/** Blocks instead of yielding to the event loop, in which anything might happen to the file. */
function waitForReaders(): void {
  sleepSync(READ_MS);
}

/** Continues after a short write. */
function writeAll(fd: number, text: string, position: number): void {
  const bytes = Buffer.from(text, "latin1");
  let written = 0;
  while (written < bytes.length) {
    written += writeSync(fd, bytes, written, bytes.length - written, position + written);
  }
}
