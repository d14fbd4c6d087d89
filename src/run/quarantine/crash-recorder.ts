/**
 * CrashRecorder: what dns11 was doing when it crashed. It maps a file of the state directory into memory, so that
 * recording the current client costs one store and no write. The next process reads the record. A process that exits by
 * itself marks it as closed.
 */
import { closeSync, constants, ftruncateSync, openSync, readFileSync, writeSync } from "node:fs";
import { join } from "node:path";

import { mapShared } from "../../kernel/libc.ts";

/** What a process was doing when it crashed, and for which container. */
export interface CrashContext {
  readonly doing: "attaching" | "inspecting" | "answering";
  readonly containerId: string;
}

const FILE = "black-box";
/** Identifies this layout; a file of another version is ignored. */
const MAGIC = 0x64310001;
/** Words: the magic, 1 while the process runs, the number of the current client, what is being done for a container. */
const AT = { magic: 0, isRunning: 1, client: 2, doing: 3 } as const;
const DOING = { nothing: 0, attaching: 1, inspecting: 2 } as const;
/** The container for which it is done, followed by one slot for each client: its number and its container. */
const DOING_AT = 16;
const ID_BYTES = 64;
const SLOTS_AT = DOING_AT + ID_BYTES;
const SLOTS = 4096;
const SLOT_BYTES = 4 + ID_BYTES;
const FILE_BYTES = SLOTS_AT + SLOTS * SLOT_BYTES;

export class CrashRecorder {
  readonly #bytes: Buffer;
  readonly #words: Uint32Array;
  /** What the previous process was doing: undefined if it exited normally, null if it was idle. */
  readonly previous: CrashContext | null | undefined;
  /** One word: the number of the client whose packet or reply is being processed. */
  readonly currentClient: Uint32Array;

  private constructor(memory: ArrayBuffer, previous: CrashContext | null | undefined) {
    this.#bytes = Buffer.from(memory);
    this.#words = new Uint32Array(memory, 0, DOING_AT / 4);
    this.currentClient = this.#words.subarray(AT.client, AT.client + 1);
    this.previous = previous;
    this.#words[AT.magic] = MAGIC;
    this.#words[AT.isRunning] = 1;
  }

  /**
   * Reads the record and starts a new one, with the clients that an earlier one of this process had. Throws if the disk is full: writing
   * to a mapped hole would crash the process later.
   */
  static open(folder: string, clients?: Buffer): CrashRecorder {
    const path = join(folder, FILE);
    const fd = openSync(path, constants.O_RDWR | constants.O_CREAT | constants.O_NOFOLLOW, 0o600);
    try {
      const previous = contextIn(readFileSync(fd));
      ftruncateSync(fd, FILE_BYTES);
      const bytes = Buffer.alloc(FILE_BYTES);
      clients?.copy(bytes, SLOTS_AT);
      for (let at = 0; at < FILE_BYTES;) at += writeSync(fd, bytes, at, FILE_BYTES - at, at);
      return new CrashRecorder(mapShared(fd, FILE_BYTES), previous);
    } finally {
      closeSync(fd);
    }
  }

  /** Makes one without a file, for a folder that cannot be used: nothing outlives the process. */
  static unmapped(): CrashRecorder {
    return new CrashRecorder(new ArrayBuffer(FILE_BYTES), undefined);
  }

  /** Assigns a client number to a container. */
  setContainer(client: number, containerId: string): void {
    const at = slotOf(client);
    this.#bytes.writeUInt32LE(client, at);
    writeId(this.#bytes, at + 4, containerId);
  }

  /** Marks the container as being attached while `work` runs. Inside, another one may be marked for a moment. */
  async attaching<T>(containerId: string, work: () => Promise<T>): Promise<T> {
    this.#mark(DOING.attaching, containerId);
    try {
      return await work();
    } finally {
      this.#words[AT.doing] = DOING.nothing;
    }
  }

  /** The same for a step that does not wait. */
  deciding<T>(containerId: string, work: () => T): T {
    return this.#during(DOING.attaching, containerId, work);
  }

  /** A step of reading what the engine says of the container. */
  readonly inspecting = (containerId: string, step: () => void): void =>
    this.#during(DOING.inspecting, containerId, step);

  /** The container of a client, unless another client has taken its slot. */
  containerOf(client: number): string | undefined {
    return containerIn(this.#bytes, client);
  }

  /** The process exits normally, or another one uses the file. Returns the clients, with their containers. */
  close(): Buffer {
    this.#words[AT.isRunning] = 0;
    return Buffer.from(this.#bytes.subarray(SLOTS_AT));
  }

  #during<T>(doing: number, containerId: string, work: () => T): T {
    const [before, did] = [idIn(this.#bytes, DOING_AT), this.#words[AT.doing] ?? DOING.nothing];
    this.#mark(doing, containerId);
    try {
      return work();
    } finally {
      this.#mark(did, before);
    }
  }

  #mark(doing: number, containerId: string): void {
    writeId(this.#bytes, DOING_AT, containerId);
    this.#words[AT.doing] = doing;
  }
}

/** Reads the record of a previous process; undefined for a damaged one. */
function contextIn(bytes: Buffer): CrashContext | null | undefined {
  if (bytes.length !== FILE_BYTES || wordIn(bytes, AT.magic) !== MAGIC) return undefined;
  if (wordIn(bytes, AT.isRunning) !== 1) return undefined;
  // Queries are answered while an attachment waits.
  const client = wordIn(bytes, AT.client);
  const asking = client === 0 ? undefined : containerIn(bytes, client);
  if (asking !== undefined) return { doing: "answering", containerId: asking };
  const doing = wordIn(bytes, AT.doing);
  const containerId = idIn(bytes, DOING_AT);
  if (doing === DOING.nothing || containerId === "") return null;
  return { doing: doing === DOING.inspecting ? "inspecting" : "attaching", containerId };
}

function containerIn(bytes: Buffer, client: number): string | undefined {
  const at = slotOf(client);
  return bytes.readUInt32LE(at) === client ? idIn(bytes, at + 4) : undefined;
}

function slotOf(client: number): number {
  return SLOTS_AT + (client % SLOTS) * SLOT_BYTES;
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
