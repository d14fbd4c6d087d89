/**
 * WrittenResolvConf: the resolv.conf of a container that dns11 writes: its nameservers, what the entrypoint of a KIND node changed in it,
 * and our address, advertised in it for as long as the container is served.
 */
import { LIMITS } from "../../base/limits.ts";
import { isLoopback } from "../../base/model/address.ts";
import { DOCKER_RESOLVER } from "../capture/capture.ts";
import type { ResolvConfRecord } from "./journal.ts";
import {
  ResolvConfWriter,
  type AdvertiseResult,
  type Reaction,
  type RestoreResult,
  restoreFile,
} from "./resolv-conf-writer.ts";
import { type OpenFile, ResolvConfFile } from "./resolv-conf-file.ts";
import { NAMESERVERS_MAX, type SearchList, nameserversIn, rewriteResolvConf } from "./resolv-conf-text.ts";

export interface ResolvConfFiles {
  /** The path of the written file, for the journal. */
  readonly path: string;
  /** The file to write, which Docker mounts into the container. */
  readonly openWritten: OpenFile;
  /** The file that the container itself has at /etc/resolv.conf. */
  readonly openRead: OpenFile;
  /** The copy that KIND's entrypoint makes of the file before it edits it. Throws if there is none. */
  readonly openOriginal: OpenFile;
  /** Whether the container reads the file that we write; a user may have mounted another one there. */
  readonly isContainerFile: () => boolean;
}

interface AdvertiseOptions {
  readonly addresses: readonly string[];
  /** `Wanted` says what it is. */
  readonly ours?: readonly string[] | undefined;
  readonly search: string | undefined;
  readonly list?: SearchList | undefined;
  /** Whether to leave out the option ndots. */
  readonly dropsNdots?: boolean | undefined;
  readonly record: ResolvConfRecord | undefined;
  /** Called before the file is touched. */
  readonly save: (record: ResolvConfRecord) => void;
  readonly onRewritten: (reaction: Exclude<Reaction, "ours">) => void;
}

const NOT_MOUNTED = "another file is mounted at /etc/resolv.conf";

export class WrittenResolvConf {
  readonly #files: ResolvConfFiles;
  #writer: ResolvConfWriter | undefined;
  #known: ResolvConfRecord | undefined;
  #state = "unchanged";
  /** The container did not read the file that we write at the last check, and another check is due. */
  #isRechecked = false;
  #recheckTimer: NodeJS.Timeout | undefined;

  constructor(files: ResolvConfFiles) {
    this.#files = files;
  }

  /** A phrase for people. */
  get state(): string {
    return this.#state;
  }

  /** The text that a new pod would get; undefined if it cannot be read. */
  text(): string | undefined {
    return new ResolvConfFile(this.#files.openRead).read();
  }

  /** The servers that a new pod could query: of any number in the file the first ones, and none that dns11 replaces. */
  nameservers(): string[] {
    const servers = this.#servers(this.#files.openRead).filter((address) => !isLoopback(address));
    return servers.slice(0, NAMESERVERS_MAX);
  }

  /** The addresses with which KIND's entrypoint, or one like it, replaced 127.0.0.11. */
  nameserversFromEntrypoint(): string[] {
    const original = this.#servers(this.#files.openOriginal);
    return original.some(isLoopback) ? this.nameservers().filter((address) => !original.includes(address)) : [];
  }

  /** Writes the addresses into the file. Returns the new state if it changed. */
  advertise({
    addresses,
    ours,
    search,
    list,
    dropsNdots = false,
    record: known,
    save,
    onRewritten,
  }: AdvertiseOptions): string | undefined {
    const before = this.#state;
    const record = known && this.#afterEntrypoint(known, search);
    if (record !== undefined && record !== known) save(record);
    this.#known = record;
    const isContainerFile = this.#files.isContainerFile();
    if (!isContainerFile && !this.#isRechecked) {
      // The files of a container that is just starting are not visible yet.
      this.#isRechecked = true;
      this.#recheckTimer = setTimeout(() => onRewritten("rewrite"), LIMITS.hostFileMissingMs).unref();
    } else if (!isContainerFile) {
      this.#state = `not written: ${NOT_MOUNTED}`;
    } else {
      this.#isRechecked = false;
      this.#writer ??= new ResolvConfWriter({
        file: new ResolvConfFile(this.#files.openWritten),
        save: (versions) => {
          const texts = toBase64(versions);
          // Another original has nothing of what the entrypoint made of the one before.
          const { afterwards } = this.#known?.original === texts.original ? this.#known : {};
          save({ path: this.#files.path, ...texts, ...(afterwards !== undefined && { afterwards }) });
        },
        onRewritten,
      });
      this.#state = stateAfter(this.#writer.advertise({ addresses, ours, search, list, dropsNdots, record }));
    }
    return this.#state === before ? undefined : this.#state;
  }

  /** Restores the file if it still contains what we wrote. `reachableAt`: the addresses of Docker's resolver. */
  restore(record: ResolvConfRecord, search: string | undefined, reachableAt: readonly string[]): RestoreResult {
    this.close();
    this.#state = "unchanged";
    return restoreRecord(this.#files.openWritten, this.#afterEntrypoint(record, search), reachableAt);
  }

  close(): void {
    clearTimeout(this.#recheckTimer);
    this.#isRechecked = false;
    this.#writer?.close();
    this.#writer = undefined;
  }

  /**
   * KIND's entrypoint adds a search list to the file, which Docker's text lacks. It keeps a copy of the text that it found,
   * Docker's or ours.
   */
  #afterEntrypoint(record: ResolvConfRecord, search: string | undefined): ResolvConfRecord {
    if (record.afterwards !== undefined || search === undefined) return record;
    const copied = new ResolvConfFile(this.#files.openOriginal).read()?.trimEnd();
    const original = latin1Of(record.original);
    if (copied !== original.trimEnd() && copied !== latin1Of(record.written).trimEnd()) return record;
    const text = rewriteResolvConf(original, { addresses: [], search: Buffer.from(search).toString("latin1") });
    return { ...record, afterwards: Buffer.from(text, "latin1").toString("base64") };
  }

  #servers(open: OpenFile): readonly string[] {
    return nameserversIn(new ResolvConfFile(open).read() ?? "");
  }
}

/** If Docker's resolver answers at another address than 127.0.0.11, the restored file names that one. */
export function restoreRecord(
  open: OpenFile,
  { original, written, afterwards }: ResolvConfRecord,
  reachableAt: readonly string[],
): RestoreResult {
  const versions = { original: Buffer.from(original, "base64"), written: Buffer.from(written, "base64") };
  const text = withReachable(latin1Of(afterwards ?? original), reachableAt);
  return restoreFile(new ResolvConfFile(open), versions, Buffer.from(text, "latin1"));
}

function withReachable(text: string, reachableAt: readonly string[]): string {
  const [first] = reachableAt;
  const isUnchanged = reachableAt.includes(DOCKER_RESOLVER) || !nameserversIn(text).includes(DOCKER_RESOLVER);
  return first === undefined || isUnchanged ? text : rewriteResolvConf(text, { addresses: [first], search: undefined });
}

function latin1Of(base64: string): string {
  return Buffer.from(base64, "base64").toString("latin1");
}

function stateAfter(result: AdvertiseResult): string {
  switch (result.outcome) {
    case "advertised":
      return `${result.addresses.join(", ")}, written by dns11`;
    case "accepted":
      return `${result.addresses.join(", ")}, written by another program`;
    case "busy":
      return "being written by another program";
    case "read-only":
      return `not written: ${result.reason}`;
  }
}

function toBase64({ original, written }: { original: Buffer; written: Buffer }): Omit<ResolvConfRecord, "path"> {
  return { original: original.toString("base64"), written: written.toString("base64") };
}
