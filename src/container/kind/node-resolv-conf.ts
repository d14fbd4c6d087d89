/**
 * NodeResolver: the resolv.conf of a node, as its mode sees it: what it names, what KIND's own entrypoint made of it, and
 * our address published in it for as long as the node is served.
 */
import { LIMITS } from "../../base/limits.ts";
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
import { isLoopback, nameserversIn, rewriteResolvConf } from "./resolv-conf-text.ts";

export interface NodeFiles {
  /** What the file is called where it is written, for the journal. */
  readonly path: string;
  /** The file that is written, which Docker mounts into the container. */
  readonly openWritten: OpenFile;
  /** What the container itself finds at /etc/resolv.conf. */
  readonly openRead: OpenFile;
  /** What KIND's entrypoint keeps of the file as Docker wrote it; throws where there is none. */
  readonly openOriginal: OpenFile;
  /** Whether what is written is what the container reads; a user may have mounted a file of their own there. */
  readonly isContainerFile: () => boolean;
}

export interface AdvertiseOptions {
  readonly addresses: readonly string[];
  /** See Wanted. */
  readonly ours?: readonly string[] | undefined;
  readonly search: string | undefined;
  readonly record: ResolvConfRecord | undefined;
  /** Called before the file is touched. */
  readonly save: (record: ResolvConfRecord) => void;
  readonly onRewritten: (reaction: Exclude<Reaction, "ours">) => void;
}

const NOT_MOUNTED = "a file of somebody else's is mounted at its /etc/resolv.conf";

export class NodeResolvConf {
  readonly #files: NodeFiles;
  #publication: ResolvConfWriter | undefined;
  #afterwards: string | undefined;
  #state = "as it was";
  /** At the last look the file that is written was not what the container reads. */
  #isDoubted = false;
  #again: NodeJS.Timeout | undefined;

  constructor(files: NodeFiles) {
    this.#files = files;
  }

  /** In words, for people. */
  get state(): string {
    return this.#state;
  }

  /** What a pod would get that was born now; undefined where it cannot be read. */
  text(): string | undefined {
    return new ResolvConfFile(this.#files.openRead).read();
  }

  /** The servers that a pod could ask which was born now. */
  nameservers(): string[] {
    return this.#servers(this.#files.openRead).filter((address) => !isLoopback(address));
  }

  /** What KIND's entrypoint, or another one of its kind, put in the place of 127.0.0.11. */
  nameserversFromEntrypoint(): string[] {
    const original = this.#servers(this.#files.openOriginal);
    return original.some(isLoopback) ? this.nameservers().filter((address) => !original.includes(address)) : [];
  }

  /** Names the addresses in the file. Returns what is new of that, in words. */
  advertise({ addresses, ours, search, record: known, save: keep, onRewritten }: AdvertiseOptions): string | undefined {
    const before = this.#state;
    const record = known && this.#afterEntrypoint(known, search);
    if (record !== undefined && record !== known) keep(record);
    this.#afterwards = record?.afterwards;
    const isSame = this.#files.isContainerFile();
    if (!isSame && !this.#isDoubted) {
      // A container that is just starting does not show its files yet.
      this.#isDoubted = true;
      this.#again = setTimeout(() => onRewritten("republish"), LIMITS.hostFileMissingMs).unref();
    } else if (!isSame) {
      this.#state = `not written: ${NOT_MOUNTED}`;
    } else {
      this.#isDoubted = false;
      this.#publication ??= new ResolvConfWriter({
        file: new ResolvConfFile(this.#files.openWritten),
        save: ({ original, written }) =>
          keep({
            path: this.#files.path,
            ...inText({ original, written }),
            ...(this.#afterwards !== undefined && { afterwards: this.#afterwards }),
          }),
        onRewritten,
      });
      this.#state = stateAfter(this.#publication.advertise({ addresses, ours, search, record }));
    }
    return this.#state === before ? undefined : this.#state;
  }

  /** Puts back what was there before, where the file still says what we wrote; Docker's resolver answers at these. */
  restore(record: ResolvConfRecord, search: string | undefined, answering: readonly string[]): RestoreResult {
    this.close();
    this.#state = "as it was";
    return restoreRecord(this.#files.openWritten, this.#afterEntrypoint(record, search), answering);
  }

  close(): void {
    clearTimeout(this.#again);
    this.#isDoubted = false;
    this.#publication?.close();
    this.#publication = undefined;
  }

  /**
   * KIND's entrypoint gives the file a search list, which what Docker wrote has not. It keeps a copy of what it found:
   * Docker's text or ours.
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

/** Where Docker's resolver answers elsewhere than at 127.0.0.11, the file is to name that. */
export function restoreRecord(
  open: OpenFile,
  { original, written, afterwards }: ResolvConfRecord,
  answering: readonly string[],
): RestoreResult {
  const undo = { original: Buffer.from(original, "base64"), written: Buffer.from(written, "base64") };
  const text = withReachable(latin1Of(afterwards ?? original), answering);
  return restoreFile(new ResolvConfFile(open), undo, Buffer.from(text, "latin1"));
}

function withReachable(text: string, answering: readonly string[]): string {
  const [first] = answering;
  const isRight = answering.includes(DOCKER_RESOLVER) || !nameserversIn(text).includes(DOCKER_RESOLVER);
  return first === undefined || isRight ? text : rewriteResolvConf(text, { addresses: [first], search: undefined });
}

function latin1Of(base64: string): string {
  return Buffer.from(base64, "base64").toString("latin1");
}

function stateAfter(result: AdvertiseResult): string {
  switch (result.outcome) {
    case "published":
      return `names ${result.addresses.join(", ")}, written by dns11`;
    case "already":
      return `names ${result.addresses.join(", ")}, written by somebody else`;
    case "unsettled":
      return "being written by somebody else";
    case "read-only":
      return `not written: ${result.reason}`;
  }
}

function inText({ original, written }: { original: Buffer; written: Buffer }): Omit<ResolvConfRecord, "path"> {
  return { original: original.toString("base64"), written: written.toString("base64") };
}
