/**
 * KernelAnswers: the program of answers.bpf.c and its tables, loaded once. Each namespace gets a space in them and a link
 * of its own. The link's program is seven instructions: it says which space, and calls the shared one. So the identity
 * of a namespace is in what is attached to its lo, and nothing that a packet has can change it.
 *
 * An entry is never changed, and its memory is used again only after the generation of its space has ended. So the
 * program notices if it has read two answers in one, and every answer belongs to one state of the names.
 */
import type { AnswerMemory, KnownAnswer, RepeatedAnswer } from "../../base/model/answer-memory.ts";
import type { ReplyStyle } from "../../base/model/behaviour.ts";
import { Pool, type PoolLimits, type Share } from "../../base/lib/share.ts";
import {
  MAP_FLAG,
  MAP_TYPE,
  attachToIngress,
  createMap,
  deleteElements,
  insertElement,
  loadProgram,
  putProgram,
  readElement,
} from "../bpf.ts";
import { closeQuietly, mapShared } from "../libc.ts";
import { AnswerKinds } from "./answer-kinds.ts";
import { AnswerRecords } from "./answer-records.ts";
import { sharedProgram, spaceProgram } from "./instructions.ts";
import {
  AUTHORITATIVE,
  BODY_BYTES_MAX,
  COUNT_BYTES,
  KEY,
  KEY_BYTES,
  KINDS,
  LABELS_MAX,
  NAME_BYTES_MAX,
  OWN_BYTES,
  SPACE,
  SPACE_BYTES,
  STYLE,
  VALUE,
  VALUE_BYTES,
} from "./layout.ts";
import { RepeatedMessage } from "./repeated-message.ts";

/** The index of lo in every namespace. */
const LOOPBACK_INDEX = 1;
const LICENSE = "Dual BSD/GPL";
/** Room for the keys of a space, which doubles when it is full. */
const KEYS_FIRST = 16;

export interface KernelAnswersLimits {
  /** Namespaces. */
  readonly spaces: number;
  /** Answers. */
  readonly answers: PoolLimits;
}

export class KernelAnswers {
  /** What was answered in all namespaces. */
  readonly kinds: AnswerKinds;
  readonly #spaces: number;
  readonly #answers: number;
  readonly #counts: number;
  /** The links' programs call through it. The kernel empties it when no process has it open any more. */
  readonly #calls: number;
  readonly #memory: ArrayBuffer;
  readonly #pool: Pool;
  readonly #free: number[];
  readonly #open = new Set<KernelSpace>();
  #style = 0;

  /** Throws a SystemFault if the kernel refuses. */
  constructor({ spaces, answers }: KernelAnswersLimits) {
    const opened: number[] = [];
    const keep = (fd: number): number => (opened.push(fd), fd);
    try {
      this.#spaces = keep(
        createMap({
          name: "dns11_spaces",
          type: MAP_TYPE.ARRAY,
          keyBytes: 4,
          valueBytes: SPACE_BYTES,
          entries: spaces,
          flags: MAP_FLAG.MMAPABLE,
        }),
      );
      this.#answers = keep(
        createMap({
          name: "dns11_answers",
          type: MAP_TYPE.HASH,
          keyBytes: KEY_BYTES,
          valueBytes: VALUE_BYTES,
          entries: answers.whole + answers.always * spaces,
          flags: MAP_FLAG.NO_PREALLOC,
        }),
      );
      this.#counts = keep(
        createMap({
          name: "dns11_counts",
          type: MAP_TYPE.ARRAY,
          keyBytes: 4,
          valueBytes: COUNT_BYTES,
          entries: KINDS,
          flags: MAP_FLAG.MMAPABLE,
        }),
      );
      this.#calls = keep(
        createMap({ name: "dns11_calls", type: MAP_TYPE.PROG_ARRAY, keyBytes: 4, valueBytes: 4, entries: 1 }),
      );
      this.#memory = mapShared(this.#spaces, spaces * SPACE_BYTES);
      this.kinds = new AnswerKinds(mapShared(this.#counts, KINDS * COUNT_BYTES));
      const maps = { spaces: this.#spaces, answers: this.#answers, counts: this.#counts };
      const program = keep(loadProgram("dns11_answers", sharedProgram(maps), LICENSE));
      putProgram(this.#calls, 0, program);
      closeQuietly(program);
    } catch (error) {
      for (const fd of opened) closeQuietly(fd);
      throw error;
    }
    this.#pool = new Pool(answers);
    this.#free = Array.from({ length: spaces }, (_, index) => spaces - 1 - index);
  }

  /** Sets how the process answers from now on; all answers end. */
  setStyle({ compresses, ignoresCase, speaksEdns }: ReplyStyle): void {
    const isLiteral = !compresses || !ignoresCase;
    this.#style = (isLiteral ? STYLE.literal : 0) | (speaksEdns ? 0 : STYLE.noEdns);
    this.forgetAll();
    for (const space of this.#open) space.setStyle(this.#style);
  }

  /** The answers of one namespace; undefined if all spaces are taken. It takes no queries yet. */
  open(): KernelSpace | undefined {
    const index = this.#free.pop();
    if (index === undefined) return undefined;
    const view = new DataView(this.#memory, index * SPACE_BYTES, SPACE_BYTES);
    const generation = new Int32Array(this.#memory, index * SPACE_BYTES + SPACE.generation, 1);
    try {
      const program = loadProgram("dns11_space", spaceProgram(index, this.#calls), LICENSE);
      const space: KernelSpace = new KernelSpace({
        index,
        view,
        generation,
        program,
        answers: this.#answers,
        calls: this.#calls,
        kinds: this.kinds,
        share: this.#pool.open(),
        onClose: () => {
          this.#open.delete(space);
          this.#free.push(index);
        },
      });
      space.setStyle(this.#style);
      this.#open.add(space);
      return space;
    } catch (error) {
      this.#free.push(index);
      throw error;
    }
  }

  /** Ends all answers of all namespaces at once: what the names are may have changed. */
  forgetAll(): void {
    for (const space of this.#open) space.forget();
  }

  close(): void {
    for (const space of this.#open) space.close();
    for (const fd of [this.#calls, this.#answers, this.#counts, this.#spaces]) closeQuietly(fd);
  }
}

interface SpaceParts {
  readonly index: number;
  readonly view: DataView;
  readonly generation: Int32Array;
  readonly program: number;
  /** The maps. */
  readonly answers: number;
  readonly calls: number;
  readonly kinds: AnswerKinds;
  readonly share: Share;
  readonly onClose: () => void;
}

export class KernelSpace implements AnswerMemory {
  readonly #parts: SpaceParts;
  readonly #key = Buffer.allocUnsafeSlow(KEY_BYTES);
  readonly #value = Buffer.allocUnsafeSlow(VALUE_BYTES);
  readonly #records: AnswerRecords;
  onEnding: (() => void) | undefined;
  /** The keys of its entries, one after the other. */
  #keys = Buffer.allocUnsafeSlow(KEYS_FIRST * KEY_BYTES);
  #count = 0;
  /** Our own queries among those that were answered. */
  #own = 0;
  /** The generation of its entries. */
  #generation: number;
  #link: number | undefined;
  #isClosed = false;

  constructor(parts: SpaceParts) {
    this.#parts = parts;
    this.#setPort(0);
    this.leave([]);
    this.forget();
    this.#generation = this.#current();
    for (const at of [SPACE.answered, SPACE.passed]) parts.view.setBigUint64(at, 0n, true);
    this.#records = new AnswerRecords(parts.view);
  }

  /** The program of its link. */
  get program(): number {
    return this.#parts.program;
  }

  /** The descriptors that keep it working: of the link, and of the map that the link's program calls through. */
  get held(): readonly number[] {
    return this.#link === undefined ? [] : [this.#link, this.#parts.calls];
  }

  /** Queries answered by the kernel, without our own; and those that it left to the process. */
  get answered(): number {
    return Number(this.#parts.view.getBigUint64(SPACE.answered, true)) - this.#own;
  }

  get passed(): number {
    return Number(this.#parts.view.getBigUint64(SPACE.passed, true));
  }

  /** The number of answers that the kernel has for it. */
  get size(): number {
    return this.#generation === this.#current() ? this.#count : 0;
  }

  get isRecording(): boolean {
    return this.#records.isOn;
  }

  set isRecording(isOn: boolean) {
    this.#records.isOn = isOn;
  }

  takeRepeated(visit: (answer: RepeatedAnswer) => void): number {
    const { answers, kinds } = this.#parts;
    const message = new RepeatedMessage();
    return this.#records.take(this.#generation, (entry, atMs) => {
      if (entry >= this.#count) return false;
      if (message.entry !== entry) {
        const key = this.#keys.subarray(entry * KEY_BYTES, (entry + 1) * KEY_BYTES);
        if (!readElement(answers, key, this.#value)) return false;
        message.write(entry, key, this.#value);
      }
      const kind = kinds.kindOf(this.#value[VALUE.kind] as number);
      // Our own probes are not queries of the container.
      if (kind !== undefined) visit(message.answer(kind.source, atMs));
      return true;
    });
  }

  leave(ports: Iterable<number>): void {
    const bits = new Uint8Array(OWN_BYTES);
    for (const port of ports) bits[(port & 0xff) >> 3] = (bits[(port & 0xff) >> 3] as number) | (1 << (port & 7));
    for (const [index, byte] of bits.entries()) this.#parts.view.setUint8(SPACE.own + index, byte);
  }

  /** While it has no answers. */
  setStyle(style: number): void {
    this.#parts.view.setUint32(SPACE.style, style, true);
  }

  /** Attaches to lo of the thread's namespace. */
  attach(): void {
    this.#link = attachToIngress(this.#parts.program, LOOPBACK_INDEX);
  }

  /** Takes queries; the port is that of the process's socket. */
  serve(port: number): void {
    this.forget();
    this.#setPort(port);
  }

  /** So many of the answers are for queries of our own. */
  discount(queries: number): void {
    this.#own += queries;
  }

  /** Ends all answers at once: what the names are may have changed. */
  forget(): void {
    Atomics.add(this.#parts.generation, 0, 1);
  }

  /** Has the kernel give this answer from now on. Returns whether it is plain enough, and there is room. */
  remember(answer: KnownAnswer): boolean {
    const bytes = answer.to - answer.from;
    if (this.#isClosed || bytes > BODY_BYTES_MAX) return false;
    if (answer.nameBytes > NAME_BYTES_MAX || answer.labels > LABELS_MAX || answer.nameBytes === 0) return false;
    if (answer.answers * answer.shuffledBytes > bytes) return false;
    if (this.#generation !== this.#current()) this.#reclaim();
    const { share, answers } = this.#parts;
    if (!share.take(1)) return false;
    this.#encode(answer, bytes);
    if (!insertElement(answers, this.#key, this.#value)) {
      share.give(1);
      return false;
    }
    this.#note();
    return true;
  }

  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.forget();
    this.#setPort(0);
    if (this.#link !== undefined) closeQuietly(this.#link);
    closeQuietly(this.#parts.program);
    this.#reclaim();
    this.#parts.onClose();
  }

  #current(): number {
    return Atomics.load(this.#parts.generation, 0);
  }

  #setPort(port: number): void {
    this.#parts.view.setUint16(SPACE.port, port, false);
  }

  /** Deletes what has been forgotten. */
  #reclaim(): void {
    const { answers, share } = this.#parts;
    // What was answered from these entries can only be read while they exist.
    this.onEnding?.();
    this.#generation = this.#current();
    if (this.#count === 0) return;
    deleteElements(answers, this.#keys, KEY_BYTES, this.#count);
    share.give(this.#count);
    this.#count = 0;
    this.#keys = Buffer.allocUnsafeSlow(KEYS_FIRST * KEY_BYTES);
  }

  #encode({ type, name, nameBytes, ...answer }: KnownAnswer, bytes: number): void {
    const key = this.#key;
    key.fill(0);
    key.writeUInt32LE(this.#parts.index, KEY.space);
    key.writeInt32LE(this.#generation, KEY.generation);
    for (let at = 0; at < nameBytes; at++) key[KEY.name + at] = name[at] as number;
    key.writeUInt16BE(type, KEY.type);
    const value = this.#value;
    value.fill(0);
    value[VALUE.answers] = answer.answers;
    value[VALUE.authorities] = answer.authorities;
    value[VALUE.bytes] = bytes;
    value[VALUE.recordBytes] = answer.shuffledBytes;
    value[VALUE.codes] = answer.rcode | (answer.isAuthoritative ? AUTHORITATIVE : 0);
    value[VALUE.kind] = this.#parts.kinds.numberOf({ type, rcode: answer.rcode, source: answer.source });
    value.writeUInt16LE(this.#count, VALUE.entry);
    for (let at = 0; at < bytes; at++) value[VALUE.body + at] = answer.message[answer.from + at] as number;
  }

  #note(): void {
    const at = this.#count * KEY_BYTES;
    if (at === this.#keys.length) {
      const longer = Buffer.allocUnsafeSlow(2 * at);
      this.#keys.copy(longer);
      this.#keys = longer;
    }
    this.#key.copy(this.#keys, at);
    this.#count++;
  }
}
