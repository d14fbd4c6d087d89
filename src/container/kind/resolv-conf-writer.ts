/**
 * Publication: the life of the address that a node's resolv.conf tells its pods. It is published where the file names
 * nobody whom a pod could ask, and undone where the file still says what we wrote.
 *
 * The file has other authors, the node's own entrypoint first of all: it replaces Docker's resolver by an address of its
 * own while we come, and is slow about it. Whoever names servers that a pod can ask is right, and nobody is fought: what
 * others write is looked at when they have let go of the file, and only a file that leaves pods without a server is
 * written again.
 */
import { isIP } from "node:net";

import { LIMITS } from "../../base/limits.ts";
import { reasonOf } from "../../base/lib/fault.ts";
import { isSameAddress } from "../../base/model/address.ts";
import { DebounceTimer } from "../watch/debounce-timer.ts";
import type { ResolvConfRecord } from "./journal.ts";
import { type ResolvConfFile, intermediateTexts } from "./resolv-conf-file.ts";
import { NAMESERVERS_MAX, type TextChange, isLoopback, nameserversIn, rewriteResolvConf } from "./resolv-conf-text.ts";

/** Between two times that we write again what somebody else keeps undoing. */
const REPUBLISH_EVERY_MS = 10_000;

/** What restoring needs: the bytes before, and ours. */
export interface FileVersions {
  readonly original: Buffer;
  readonly written: Buffer;
}

/** The record is what the journal has of this life of the container. */
export interface AdvertiseRequest extends Pick<TextChange, "addresses" | "search"> {
  readonly record?: ResolvConfRecord | undefined;
  /** Addresses at which we answer, if pods are to be told of one family or of both by somebody's wish. */
  readonly ours?: readonly string[] | undefined;
}

export type Reaction = "ours" | "republish" | "foreign";

export type AdvertiseResult =
  /** The file names these addresses of ours now; whether or not it was written for that. */
  | ({ readonly outcome: "published"; readonly addresses: readonly string[] } & FileVersions)
  /** It names these servers, whom a pod can ask, and was left as it is. */
  | { readonly outcome: "already"; readonly addresses: readonly string[] }
  /** Somebody is writing it at this moment; `onRewritten` tells when that has come to an end. */
  | { readonly outcome: "unsettled" }
  | { readonly outcome: "read-only"; readonly reason: string };

export type RestoreResult =
  | "restored"
  /** It is no longer what we wrote, and was left as it is. */
  | "changed"
  | "gone";

export interface ResolvConfWriterParts {
  readonly file: ResolvConfFile;
  /** Keeps what restoring will need where it outlives us. Called before the file is touched; nothing happens if it throws. */
  readonly save: (undo: FileVersions) => void;
  /**
   * Somebody else has written to the file, and it is not as we left it: it names these servers now. Whoever is told publishes
   * again, and finds out what the file is good for: written, or already right.
   */
  readonly onRewritten: (reaction: Exclude<Reaction, "ours">, nameservers: readonly string[]) => void;
}

/** What a file's text asks of whoever published these addresses in it. */
export function reactionTo(text: string, published: readonly string[]): Reaction {
  const servers = nameserversIn(text).slice(0, NAMESERVERS_MAX);
  // Without any server a C library asks 127.0.0.1.
  if (servers.length === 0 || servers.some(isLoopback)) return "republish";
  const isPublished = published.length > 0 && published.every((address) => isNamed(address, servers));
  return isPublished ? "ours" : "foreign";
}

/** Also for a file that another process of ours has published. Throws a Fault where the file cannot be written any more. */
export function restoreFile(file: ResolvConfFile, undo: FileVersions, wanted = undo.original): RestoreResult {
  const text = file.read();
  if (text === undefined) return "gone";
  if (!isOurs(text, undo)) return "changed";
  const before = textOf(wanted);
  return text === before || file.write(before) ? "restored" : "changed";
}

export class ResolvConfWriter {
  readonly #parts: ResolvConfWriterParts;
  #undo: FileVersions | undefined;
  #published: readonly string[] = [];
  /** What has been reacted to. */
  #knownText: string | undefined;
  readonly #next = new DebounceTimer(() => this.check());
  #republishMs = -Infinity;

  constructor(parts: ResolvConfWriterParts) {
    this.#parts = parts;
  }

  /** Nobody has to know which of us wrote what a record tells of. */
  advertise(change: AdvertiseRequest): AdvertiseResult {
    const { file } = this.#parts;
    this.#follow();
    const text = file.read();
    if (text === undefined) return { outcome: "read-only", reason: this.#whyUnwritable() ?? "It is no resolv.conf" };
    const known = this.#undo ?? versionsIn(change.record);
    const isKnown = known !== undefined && isOurs(text, known);
    const original = isKnown ? textOf(known.original) : text;
    const useless = serversOfWrongFamily(original, change);
    const isRight = useless.length === 0 && reactionTo(text, change.addresses) !== "republish";
    if (!isKnown && isRight) return this.#accept(text);
    if (!isKnown && this.#isHalfWritten(text)) return this.#wait();
    const search = change.search === undefined ? undefined : textOf(Buffer.from(change.search));
    return this.#put(
      text,
      original,
      rewriteResolvConf(original, { ...change, search, replaced: useless }),
      change.addresses,
    );
  }

  /** To be called also from time to time, by whoever wants to be sure: not every kernel tells of every write. */
  check(): void {
    this.#follow();
    const text = this.#parts.file.read();
    if (text === undefined || text === this.#knownText) return;
    if (this.#isHalfWritten(text)) return this.#next.runAfter(LIMITS.hostFileMissingMs);
    const reaction = reactionTo(text, this.#published);
    if (reaction === "republish") {
      const leftMs = this.#republishMs + REPUBLISH_EVERY_MS - performance.now();
      if (leftMs > 0) return this.#next.runAfter(leftMs);
      this.#republishMs = performance.now();
    }
    this.#knownText = text;
    if (reaction !== "ours") this.#parts.onRewritten(reaction, nameserversIn(text));
  }

  /** Leaves the file as it is, and looks no more. */
  close(): void {
    this.#next.cancel();
    this.#parts.file.close();
  }

  #put(text: string, original: string, written: string, addresses: readonly string[]): AdvertiseResult {
    const undo = { original: bytesOf(original), written: bytesOf(written) };
    if (text !== written) {
      const reason = this.#whyUnwritable();
      if (reason !== undefined) return { outcome: "read-only", reason };
      this.#parts.save(undo);
      try {
        if (!this.#parts.file.write(written)) return this.#wait();
      } catch (error) {
        return { outcome: "read-only", reason: reasonOf(error) };
      }
    }
    this.#undo = undo;
    this.#knownText = written;
    const named = nameserversIn(written);
    this.#published = addresses.filter((address) => isNamed(address, named));
    return { outcome: "published", addresses: this.#published, ...undo };
  }

  /** Whoever wrote these servers has published them, for us too. */
  #accept(text: string): AdvertiseResult {
    this.#knownText = text;
    this.#published = nameserversIn(text).slice(0, NAMESERVERS_MAX);
    return { outcome: "already", addresses: this.#published };
  }

  #wait(): AdvertiseResult {
    this.#knownText = undefined;
    this.#next.runAfter(LIMITS.hostFileMissingMs);
    return { outcome: "unsettled" };
  }

  #whyUnwritable(): string | undefined {
    try {
      this.#parts.file.assertWritable();
      return undefined;
    } catch (error) {
      return reasonOf(error);
    }
  }

  /** Most programs empty a file before they write it, and then it names nobody for a moment. */
  #isHalfWritten(text: string): boolean {
    return nameserversIn(text).length === 0 && this.#parts.file.quietMs() < LIMITS.hostFileMissingMs;
  }

  /** Anew before each read, so that nothing falls in between, and the file is the one that is there now. */
  #follow(): void {
    this.#next.cancel();
    this.#parts.file.watch(() => this.#next.trigger());
  }
}

/** Whether a text is of our making: before, after, or on the way, where we were killed. */
function isOurs(text: string, undo: FileVersions): boolean {
  const [original, written] = [textOf(undo.original), textOf(undo.written)];
  const ours = [original, written, ...intermediateTexts(original, written), ...intermediateTexts(written, original)];
  // A shell that copies a text loses or adds empty lines at its end, and KIND's entrypoint copies what it finds.
  return ours.some((one) => withoutEnd(one) === withoutEnd(text));
}

/**
 * The servers of a text that names us alone, as KIND's entrypoint makes it, but not by the families that pods are to be told
 * of; none otherwise.
 */
function serversOfWrongFamily(text: string, { addresses, ours = [] }: AdvertiseRequest): readonly string[] {
  const servers = nameserversIn(text).slice(0, NAMESERVERS_MAX);
  const isRight = familiesOf(servers) === familiesOf(addresses);
  return isRight || !servers.every((server) => isNamed(server, ours)) ? [] : servers;
}

function familiesOf(servers: readonly string[]): string {
  return [...new Set(servers.map((server) => isIP(server)))].toSorted((a, b) => a - b).join();
}

function withoutEnd(text: string): string {
  return text.replace(/\n+$/, "");
}

function isNamed(address: string, servers: readonly string[]): boolean {
  return servers.some((server) => isSameAddress(server, address));
}

function versionsIn(record: ResolvConfRecord | undefined): FileVersions | undefined {
  if (record === undefined) return undefined;
  return { original: Buffer.from(record.original, "base64"), written: Buffer.from(record.written, "base64") };
}

/** One character for each byte. */
function textOf(bytes: Buffer): string {
  return bytes.toString("latin1");
}

function bytesOf(text: string): Buffer {
  return Buffer.from(text, "latin1");
}
