/**
 * BlackBox: what dns11 was doing when it died. A file of the instance's folder is mapped into memory, so that saying whose
 * work is being done costs a store, and no write; the next process reads what the last one was at. Whoever ends by itself
 * says so, and then there is nothing to read.
 */
import { closeSync, constants, ftruncateSync, openSync, readFileSync, writeSync } from "node:fs";
import { join } from "node:path";

import { mapShared } from "../../kernel/libc.ts";

/** What a process that did not end by itself was doing, and for which container. */
export interface CrashContext {
  readonly doing: "attaching" | "answering";
  readonly containerId: string;
}

const FILE = "black-box";
/** Of this layout; another version's file is not read. */
const MAGIC = 0x64310001;
/** Words: the magic, 1 as long as the process runs, the number of the client whose work is done, 1 while attaching. */
const AT = { magic: 0, isRunning: 1, client: 2, attaching: 3 } as const;
/** Which container is being attached, and then one place for each client: its number, and its container. */
const ATTACHING_AT = 16;
const ID_BYTES = 64;
const PLACES_AT = ATTACHING_AT + ID_BYTES;
const PLACES = 4096;
const PLACE_BYTES = 4 + ID_BYTES;
const FILE_BYTES = PLACES_AT + PLACES * PLACE_BYTES;

export class CrashRecorder {
  readonly #bytes: Buffer;
  readonly #words: Uint32Array;
  /** What the process before was doing when it died: undefined where it ended by itself, null where it did nothing. */
  readonly previous: CrashContext | null | undefined;
  /** One word: the number of the client whose packet or reply is in work. */
  readonly currentClient: Uint32Array;

  private constructor(memory: ArrayBuffer, before: CrashContext | null | undefined) {
    this.#bytes = Buffer.from(memory);
    this.#words = new Uint32Array(memory, 0, ATTACHING_AT / 4);
    this.currentClient = this.#words.subarray(AT.client, AT.client + 1);
    this.previous = before;
    this.#words[AT.magic] = MAGIC;
    this.#words[AT.isRunning] = 1;
  }

  /** Reads what is there and begins anew. Throws where there is no room: a file that has none would end the process later. */
  static open(folder: string): CrashRecorder {
    const path = join(folder, FILE);
    const fd = openSync(path, constants.O_RDWR | constants.O_CREAT | constants.O_NOFOLLOW, 0o600);
    try {
      const before = lastWordsIn(readFileSync(fd));
      ftruncateSync(fd, FILE_BYTES);
      const nothing = Buffer.alloc(FILE_BYTES);
      for (let at = 0; at < FILE_BYTES;) at += writeSync(fd, nothing, at, FILE_BYTES - at, at);
      return new CrashRecorder(mapShared(fd, FILE_BYTES), before);
    } finally {
      closeSync(fd);
    }
  }

  /** The same without a file, where there is no room for one: nothing of it outlives the process. */
  static unmapped(): CrashRecorder {
    return new CrashRecorder(new ArrayBuffer(FILE_BYTES), undefined);
  }

  /** From now on this client's work is the container's. */
  setContainer(client: number, containerId: string): void {
    const at = placeOf(client);
    this.#bytes.writeUInt32LE(client, at);
    writeId(this.#bytes, at + 4, containerId);
  }

  /** Does something to a container's namespace. */
  attaching<T>(containerId: string, work: () => T): T {
    writeId(this.#bytes, ATTACHING_AT, containerId);
    this.#words[AT.attaching] = 1;
    try {
      return work();
    } finally {
      this.#words[AT.attaching] = 0;
    }
  }

  /** The container of an client, unless another one has taken its place. */
  containerOf(client: number): string | undefined {
    return containerIn(this.#bytes, client);
  }

  /** The process ends by itself. */
  close(): void {
    this.#words[AT.isRunning] = 0;
  }
}

/** What is in a file that a process left; a damaged one tells nothing. */
function lastWordsIn(bytes: Buffer): CrashContext | null | undefined {
  if (bytes.length !== FILE_BYTES || wordIn(bytes, AT.magic) !== MAGIC) return undefined;
  if (wordIn(bytes, AT.isRunning) !== 1) return undefined;
  if (wordIn(bytes, AT.attaching) === 1) {
    const containerId = idIn(bytes, ATTACHING_AT);
    return containerId === "" ? null : { doing: "attaching", containerId };
  }
  const client = wordIn(bytes, AT.client);
  const containerId = client === 0 ? undefined : containerIn(bytes, client);
  return containerId === undefined ? null : { doing: "answering", containerId };
}

function containerIn(bytes: Buffer, client: number): string | undefined {
  const at = placeOf(client);
  return bytes.readUInt32LE(at) === client ? idIn(bytes, at + 4) : undefined;
}

function placeOf(client: number): number {
  return PLACES_AT + (client % PLACES) * PLACE_BYTES;
}

function wordIn(bytes: Buffer, word: number): number {
  return bytes.readUInt32LE(word * 4);
}

function idIn(bytes: Buffer, at: number): string {
  return bytes.toString("latin1", at, at + ID_BYTES).replace(/\0.*$/s, "");
}

function writeId(bytes: Buffer, at: number, id: string): void {
  bytes.fill(0, at, at + ID_BYTES);
  bytes.write(id, at, ID_BYTES, "latin1");
}
