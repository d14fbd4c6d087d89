/**
 * ResolvConfWriter: advertises our address to pods in a node's resolv.conf. It writes only if the file has no nameserver that a
 * pod could query, and restores the file only if it still contains what we wrote.
 *
 * The file has other writers, above all the node's entrypoint, which slowly replaces Docker's resolver by its own address
 * while dns11 attaches. The writer does not fight them: any nameserver that a pod can query is accepted. It checks other
 * programs' changes when they are done writing, and rewrites only a file that leaves pods without a usable nameserver.
 */
import { isIP } from "node:net";

import { LIMITS } from "../../base/limits.ts";
import { reasonOf } from "../../base/lib/fault.ts";
import { isLoopback, isSameAddress } from "../../base/model/address.ts";
import { DebounceTimer } from "../watch/debounce-timer.ts";
import type { ResolvConfRecord } from "./journal.ts";
import { type ResolvConfFile, intermediateTexts } from "./resolv-conf-file.ts";
import { NAMESERVERS_MAX, type TextChange, nameserversIn, rewriteResolvConf } from "./resolv-conf-text.ts";

/** The shortest time between two rewrites of a file that another program keeps changing. */
const REWRITE_EVERY_MS = 10_000;

/** What restoring needs: the original bytes and the ones that we wrote. */
interface FileVersions {
  readonly original: Buffer;
  readonly written: Buffer;
}

/** `record`: from the journal, for this start of the container. */
interface AdvertiseRequest extends Pick<TextChange, "addresses" | "search" | "list" | "dropsNdots"> {
  readonly record?: ResolvConfRecord | undefined;
  /** The captured addresses, if settings choose the address families for pods. */
  readonly ours?: readonly string[] | undefined;
}

export type Reaction = "ours" | "rewrite" | "foreign";

export type AdvertiseResult =
  /** The file names these addresses of ours now, whether or not it had to be written. */
  | ({ readonly outcome: "advertised"; readonly addresses: readonly string[] } & FileVersions)
  /** The file already names these servers, which a pod can query; it was not changed. */
  | { readonly outcome: "accepted"; readonly addresses: readonly string[] }
  /** Another program is writing it right now; `onRewritten` is called when that is done. */
  | { readonly outcome: "busy" }
  | { readonly outcome: "read-only"; readonly reason: string };

export type RestoreResult =
  | "restored"
  /** It no longer contains what we wrote, and was not changed. */
  | "changed"
  | "gone";

interface ResolvConfWriterParts {
  readonly file: ResolvConfFile;
  /** Saves what restoring needs so that it survives a kill of dns11. Called before the write; if it throws, nothing is written. */
  readonly save: (versions: FileVersions) => void;
  /**
   * Another program has changed the file; it names these servers now. The callee calls advertise() again, which writes the file
   * or accepts it.
   */
  readonly onRewritten: (reaction: Exclude<Reaction, "ours">, nameservers: readonly string[]) => void;
}

/** How to react to a text of the file, after these addresses were advertised in it. */
export function reactionTo(text: string, advertised: readonly string[]): Reaction {
  const servers = nameserversIn(text).slice(0, NAMESERVERS_MAX);
  // Without a nameserver, C libraries query 127.0.0.1.
  if (servers.length === 0 || servers.some(isLoopback)) return "rewrite";
  const isAdvertised = advertised.length > 0 && advertised.every((address) => isNamed(address, servers));
  return isAdvertised ? "ours" : "foreign";
}

/** Restores a file that an earlier dns11 process wrote, too. Throws a Fault if the file can no longer be written. */
export function restoreFile(file: ResolvConfFile, versions: FileVersions, wanted = versions.original): RestoreResult {
  const text = file.read();
  if (text === undefined) return "gone";
  if (!isOurs(text, versions)) return "changed";
  const before = textOf(wanted);
  return text === before || file.write(before) ? "restored" : "changed";
}

export class ResolvConfWriter {
  readonly #parts: ResolvConfWriterParts;
  #versions: FileVersions | undefined;
  #advertised: readonly string[] = [];
  /** The last text that was handled. */
  #knownText: string | undefined;
  readonly #timer = new DebounceTimer(() => this.check());
  #rewrittenMs = -Infinity;

  constructor(parts: ResolvConfWriterParts) {
    this.#parts = parts;
  }

  /** The record may be from an earlier dns11 process. */
  advertise(change: AdvertiseRequest): AdvertiseResult {
    const { file } = this.#parts;
    this.#watch();
    const text = file.read();
    if (text === undefined)
      return { outcome: "read-only", reason: this.#whyUnwritable() ?? "not a readable resolv.conf" };
    const known = this.#versions ?? versionsIn(change.record);
    const isKnown = known !== undefined && isOurs(text, known);
    const original = isKnown ? textOf(known.original) : text;
    const wrongServers = serversOfWrongFamily(original, change);
    const isAcceptable = wrongServers.length === 0 && reactionTo(text, change.addresses) !== "rewrite";
    if (!isKnown && isAcceptable) return this.#accept(text);
    if (!isKnown && this.#isHalfWritten(text)) return this.#wait();
    const search = change.search === undefined ? undefined : textOf(Buffer.from(change.search));
    return this.#write(
      text,
      original,
      rewriteResolvConf(original, { ...change, search, replaced: wrongServers }),
      change.addresses,
    );
  }

  /** Also call it periodically to be sure: not every kernel reports every write. */
  check(): void {
    this.#watch();
    const text = this.#parts.file.read();
    if (text === undefined || text === this.#knownText) return;
    if (this.#isHalfWritten(text)) return this.#timer.runAfter(LIMITS.hostFileMissingMs);
    const reaction = reactionTo(text, this.#advertised);
    if (reaction === "rewrite") {
      const leftMs = this.#rewrittenMs + REWRITE_EVERY_MS - performance.now();
      if (leftMs > 0) return this.#timer.runAfter(leftMs);
      this.#rewrittenMs = performance.now();
    }
    this.#knownText = text;
    if (reaction !== "ours") this.#parts.onRewritten(reaction, nameserversIn(text));
  }

  /** Stops watching; the file stays as it is. */
  close(): void {
    this.#timer.cancel();
    this.#parts.file.close();
  }

  #write(text: string, original: string, written: string, addresses: readonly string[]): AdvertiseResult {
    const versions = { original: bytesOf(original), written: bytesOf(written) };
    if (text !== written) {
      const reason = this.#whyUnwritable();
      if (reason !== undefined) return { outcome: "read-only", reason };
      this.#parts.save(versions);
      try {
        if (!this.#parts.file.write(written)) return this.#wait();
      } catch (error) {
        return { outcome: "read-only", reason: reasonOf(error) };
      }
    }
    this.#versions = versions;
    this.#knownText = written;
    const named = nameserversIn(written);
    this.#advertised = addresses.filter((address) => isNamed(address, named));
    return { outcome: "advertised", addresses: this.#advertised, ...versions };
  }

  /** Accepts nameservers that another program wrote. */
  #accept(text: string): AdvertiseResult {
    // The addresses that are captured are those of an earlier text, and nothing reports this one any more.
    const isNews = this.#knownText !== undefined && this.#knownText !== text;
    this.#knownText = text;
    this.#advertised = nameserversIn(text).slice(0, NAMESERVERS_MAX);
    if (isNews) this.#parts.onRewritten("foreign", this.#advertised);
    return { outcome: "accepted", addresses: this.#advertised };
  }

  #wait(): AdvertiseResult {
    this.#knownText = undefined;
    this.#timer.runAfter(LIMITS.hostFileMissingMs);
    return { outcome: "busy" };
  }

  #whyUnwritable(): string | undefined {
    try {
      this.#parts.file.assertWritable();
      return undefined;
    } catch (error) {
      return reasonOf(error);
    }
  }

  /** Most programs truncate a file before they write it, so it has no nameserver for a moment. */
  #isHalfWritten(text: string): boolean {
    return nameserversIn(text).length === 0 && this.#parts.file.quietMs() < LIMITS.hostFileMissingMs;
  }

  /** Renews the watch before each read, so that no change is missed and the watched file is the current one. */
  #watch(): void {
    this.#timer.cancel();
    this.#parts.file.watch(() => this.#timer.trigger());
  }
}

/** Whether we wrote this text: it is the original, ours, or an intermediate one if dns11 was killed while writing. */
export function isOurs(text: string, versions: FileVersions): boolean {
  const [original, written] = [textOf(versions.original), textOf(versions.written)];
  const ours = [original, written, ...intermediateTexts(original, written), ...intermediateTexts(written, original)];
  // KIND's entrypoint copies the file with a shell, which loses or adds empty lines at the end.
  const found = withoutEnd(text);
  return ours.some((one) => withoutEnd(one) === found);
}

/**
 * The nameservers to replace in a text that names only our addresses, as KIND's entrypoint writes it, but not those of the
 * configured families; empty otherwise.
 */
function serversOfWrongFamily(text: string, { addresses, ours = [] }: AdvertiseRequest): readonly string[] {
  const servers = nameserversIn(text).slice(0, NAMESERVERS_MAX);
  const isAcceptable = familiesOf(servers) === familiesOf(addresses);
  return isAcceptable || !servers.every((server) => isNamed(server, ours)) ? [] : servers;
}

function familiesOf(servers: readonly string[]): string {
  return [...new Set(servers.map((server) => isIP(server)))].toSorted((a, b) => a - b).join();
}

/** Without the newlines at its end. An expression for them would be tried at each newline of a text that a container wrote. */
function withoutEnd(text: string): string {
  let end = text.length;
  while (end > 0 && text[end - 1] === "\n") end--;
  return text.slice(0, end);
}

function isNamed(address: string, servers: readonly string[]): boolean {
  return servers.some((server) => isSameAddress(server, address));
}

export function versionsIn(record: ResolvConfRecord | undefined): FileVersions | undefined {
  if (record === undefined) return undefined;
  return { original: Buffer.from(record.original, "base64"), written: Buffer.from(record.written, "base64") };
}

/** One character per byte. */
function textOf(bytes: Buffer): string {
  return bytes.toString("latin1");
}

function bytesOf(text: string): Buffer {
  return Buffer.from(text, "latin1");
}
