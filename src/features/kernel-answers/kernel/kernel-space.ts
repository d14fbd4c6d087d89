/** KernelSpace: the answers of one namespace in the kernel's tables, and the program at its lo that selects them. */
import { LOCAL_SOURCE } from "../../../base/model/local-source.ts";
import type { Share } from "../../../base/lib/share.ts";
import { HEADER_BYTES, writeCounts } from "../../../base/dns/header.ts";
import { CLASS, QUESTION_FIXED_BYTES } from "../../../base/dns/record.ts";
import { type ElementWriter, attachToLoopback, exchangeProgram } from "../../../kernel/bpf.ts";
import { closeInPool } from "../../../kernel/in-pool.ts";
import { closeQuietly, duplicate } from "../../../kernel/libc.ts";
import { type AnswerTable, type AnswerKinds, OWN_KIND } from "./answer-table.ts";
import type { BriefEntries } from "./brief-entries.ts";
import type { BriefTable } from "./brief-table.ts";
import {
  AUTHORITATIVE,
  BODY_BYTES_MAX,
  BRIEF_ENTRY,
  BRIEF_VALUE,
  BRIEF_VALUE_BYTES,
  KEY_BYTES,
  LABELS_MAX,
  LOCAL,
  NAME_BYTES_MAX,
  OWN_BYTES,
  SPACE,
  VALUE,
  VALUE_BYTES,
  RECORDS,
  BRIEF_BODY_BYTES_MAX,
  KEY,
  RCODE_BITS,
} from "./layout.ts";
import type {
  KernelQuestion,
  BriefKernelAnswer,
  KernelAnswerMemory,
  KernelAnswer,
  RepeatedAnswer,
} from "./kernel-answer.ts";
import { KeyList, writeQuestion } from "./key-list.ts";
import type { LinkThread } from "./link-thread.ts";

const ROOT_LABEL_BYTES = 1;
const MESSAGE_BYTES_MAX =
  HEADER_BYTES + NAME_BYTES_MAX + ROOT_LABEL_BYTES + QUESTION_FIXED_BYTES + BRIEF_BODY_BYTES_MAX;

/** The program's clock counts 2^20 ns. */
const TICK_BITS = 20n;
const TICK_MS = 1.048_576;

/** A record that seems older than this is rather in the future: it was made after the clock had been read. */
const AGE_MAX = 0x8000_0000;

/** The bits of the generation that a record has. */
const GENERATION_BITS = 0xff;

interface SpaceParts {
  readonly index: number;
  readonly view: DataView;
  readonly generation: Int32Array;
  readonly program: number;
  readonly answers: AnswerTable;
  readonly brief: BriefTable;
  /** The map that the program calls through. */
  readonly calls: number;
  readonly kinds: AnswerKinds;
  readonly links: LinkThread;
  readonly onClose: () => void;
}

export class KernelSpace implements KernelAnswerMemory {
  readonly #parts: SpaceParts;
  readonly #share: Share;
  readonly #records: AnswerRecords;
  readonly #brief: BriefEntries;
  onEnding: (() => void) | undefined;
  onFailuresEnding: (() => void) | undefined;
  #keys = new KeyList(KEY_BYTES);
  /** How many of the answered queries were dns11's own. */
  #own = 0;
  /** The generation of its entries. */
  #generation: number;
  #link: number | undefined;
  #style = 0;
  /** The number of all answers when failures were last taken. */
  #failuresTaken = 0n;
  #isInPlace = true;
  #isClosed = false;

  constructor(parts: SpaceParts) {
    this.#parts = parts;
    this.#share = parts.answers.open();
    this.#brief = parts.brief.open({
      space: parts.index,
      kinds: parts.kinds,
      generation: () => this.#current(),
      onEnding: () => {
        this.onEnding?.();
        this.onFailuresEnding?.();
      },
    });
    this.#setPort(0);
    this.leave([]);
    this.forget();
    this.#generation = this.#current();
    for (const at of [SPACE.answered, SPACE.passed, SPACE.cached]) parts.view.setBigUint64(at, 0n, true);
    this.#records = new AnswerRecords(parts.view);
  }

  get program(): number {
    return this.#parts.program;
  }

  /** The descriptors that keep it working: the link, and the map through which the link's program calls. */
  get held(): readonly number[] {
    return this.#link === undefined ? [] : [this.#link, this.#parts.calls];
  }

  /** Queries that the kernel has answered, without dns11's own. */
  get answered(): number {
    return Number(this.#parts.view.getBigUint64(SPACE.answered, true)) - this.#own;
  }

  get answeredFromCache(): number {
    return Number(this.#parts.view.getBigUint64(SPACE.cached, true));
  }

  get passed(): number {
    return Number(this.#parts.view.getBigUint64(SPACE.passed, true));
  }

  get size(): number {
    return this.#generation === this.#current() ? this.#keys.count : 0;
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
    const [value, reply] = [Buffer.allocUnsafe(VALUE_BYTES), Buffer.allocUnsafe(BRIEF_VALUE_BYTES)];
    const generation = this.#generation & GENERATION_BITS;
    let kind: number = OWN_KIND;
    return this.#records.take((entry, recordGeneration, atMs) => {
      if (entry >= BRIEF_ENTRY) {
        const key = this.#brief.read(entry, reply);
        if (key === undefined) return false;
        message.writeBrief(entry, key, reply);
        visit(message.answer(this.#sourceOf(reply), atMs));
        return true;
      }
      if (entry >= this.#keys.count || recordGeneration !== generation) return false;
      if (message.entry !== entry) {
        const key = this.#keys.at(entry);
        if (!answers.read(key, value)) return false;
        message.write(entry, key, value);
        kind = value[VALUE.kind] as number;
      }
      const known = kinds.kindOf(kind);
      // dns11's own probes are not queries of the container.
      if (known !== undefined) visit(message.answer(known.source, atMs));
      return true;
    });
  }

  takeFailed(visit: (answer: RepeatedAnswer, times: number) => void): void {
    const answered = this.#parts.view.getBigUint64(SPACE.answered, true);
    if (this.#brief.size === 0 || answered === this.#failuresTaken) return;
    // The program counts an answer in its entry first, so an answer that comes meanwhile is taken now or the next time.
    this.#failuresTaken = answered;
    const message = new RepeatedMessage();
    const reply = Buffer.allocUnsafe(BRIEF_VALUE_BYTES);
    this.#brief.takeFailed(reply, (key, times) => {
      message.writeBrief(BRIEF_ENTRY, key, reply);
      visit(message.answer(this.#sourceOf(reply), performance.now()), times);
    });
  }

  leave(ports: Iterable<number>): void {
    const bits = new Uint8Array(OWN_BYTES);
    for (const port of ports) bits[(port & 0xff) >> 3] = (bits[(port & 0xff) >> 3] as number) | (1 << (port & 7));
    for (const [index, byte] of bits.entries()) this.#parts.view.setUint8(SPACE.own + index, byte);
  }

  /** May be called only while the space has no answers. */
  setStyle(style: number): void {
    this.#style = style;
    this.#parts.view.setUint32(SPACE.style, style, true);
  }

  /** Attaches the program to lo of the thread's namespace; the thread waits for the kernel. */
  attach(): void {
    this.#link = attachToLoopback(this.#parts.program);
  }

  /** Attaches the program to lo of the namespace of this descriptor. */
  async attachIn(namespace: number): Promise<void> {
    const link = await this.#parts.links.attach({ namespace, program: this.#parts.program });
    if (this.#isClosed) void closeInPool(link);
    else this.#link = link;
  }

  /** Takes over the link of the previous process, which runs that process's program until `takePlace`. The caller keeps the descriptor. */
  adopt(link: number): void {
    this.#link = duplicate(link);
    this.#isInPlace = false;
  }

  /** Whether the link runs this program, as far as is known. */
  get isInPlace(): boolean {
    return this.#isInPlace;
  }

  /** Has the link run this program instead of that of the previous process, or of one that was to be the next. */
  takePlace(): void {
    this.#isInPlace = true;
    try {
      if (this.#link !== undefined) exchangeProgram(this.#link, this.#parts.program);
    } catch {
      // The link is gone with its namespace; otherwise the next verification shows what is wrong.
    }
  }

  /** Lets the kernel answer queries; `port` is that of the process's socket. */
  serve(port: number): void {
    this.forget();
    this.#setPort(port);
  }

  /** Leaves this many answers out of the statistics, because they were given to dns11's own queries. */
  discount(queries: number): void {
    this.#own += queries;
  }

  /** Ends all answers at once, because names may have changed. */
  forget(): void {
    Atomics.add(this.#parts.generation, 0, 1);
  }

  /** Has the kernel give this answer from now on. Returns whether the answer is plain enough and there is room. */
  remember(answer: KernelAnswer): boolean {
    const bytes = answer.to - answer.from;
    if (this.#isClosed || bytes > BODY_BYTES_MAX) return false;
    if (answer.nameBytes > NAME_BYTES_MAX || answer.labels > LABELS_MAX || answer.nameBytes === 0) return false;
    if (answer.answers * answer.shuffledBytes > bytes) return false;
    if (this.#generation !== this.#current()) this.#reclaim();
    if (!this.#share.take(1)) return false;
    const { writer } = this.#parts.answers;
    this.#encode(answer, bytes, writer);
    if (!writer.insert()) {
      this.#share.give(1);
      return false;
    }
    this.#keys.add(writer.key);
    return true;
  }

  isAskedAgain(question: KernelQuestion): boolean {
    // The process answers where replies keep the letter case of the query, or have no EDNS.
    return !this.#isClosed && this.#style === 0 && this.#brief.isAskedAgain(question);
  }

  rememberBriefly(answer: BriefKernelAnswer): boolean {
    return !this.#isClosed && this.#brief.remember(answer);
  }

  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.forget();
    this.#setPort(0);
    if (this.#link !== undefined) void closeInPool(this.#link);
    closeQuietly(this.#parts.program);
    this.#reclaim();
    this.#brief.close();
    this.#parts.onClose();
  }

  /** The numbers of kinds may run out, so the codes of an entry say whether it is a cached reply. */
  #sourceOf(reply: Buffer): RepeatedAnswer["source"] {
    if (((reply[BRIEF_VALUE.codes] as number) & LOCAL) === 0) return "cache";
    return this.#parts.kinds.kindOf(reply[BRIEF_VALUE.kind] as number)?.source ?? LOCAL_SOURCE.rule;
  }

  #current(): number {
    return Atomics.load(this.#parts.generation, 0);
  }

  #setPort(port: number): void {
    this.#parts.view.setUint16(SPACE.port, port, false);
  }

  /** Deletes the entries of ended generations. */
  #reclaim(): void {
    // Queries that were answered from these entries can only be read while the entries exist.
    this.onEnding?.();
    this.#generation = this.#current();
    if (this.#keys.count === 0) return;
    this.#parts.answers.delete(this.#keys, this.#share);
    this.#keys = new KeyList(KEY_BYTES);
  }

  #encode(answer: KernelAnswer, bytes: number, { key, value }: ElementWriter): void {
    writeQuestion(key, this.#parts.index, this.#generation, answer);
    value.fill(0);
    value[VALUE.answers] = answer.answers;
    value[VALUE.authorities] = answer.authorities;
    value[VALUE.bytes] = bytes;
    value[VALUE.recordBytes] = answer.shuffledBytes;
    value[VALUE.codes] = answer.rcode | (answer.isAuthoritative ? AUTHORITATIVE : 0);
    const { type, rcode, source } = answer;
    value[VALUE.kind] = source === undefined ? OWN_KIND : this.#parts.kinds.numberOf({ type, rcode, source });
    value.writeUInt16LE(this.#keys.count, VALUE.entry);
    for (let at = 0; at < bytes; at++) value[VALUE.body + at] = answer.message[answer.from + at] as number;
  }
}

/**
 * The last queries of one namespace that the kernel has answered, in memory that the program writes: which entry, and when. The program
 * replaces the oldest record without a notice, so reading is optional and costs a query nothing; records that were replaced before they
 * were read are counted.
 */
class AnswerRecords {
  readonly #view: DataView;
  #isOn = false;
  /** The number of the next query to be read. */
  #next = 0;

  /** The space must not be in use yet. */
  constructor(view: DataView) {
    this.#view = view;
    this.isOn = false;
    for (let index = 0; index < RECORDS; index++) view.setBigUint64(SPACE.records + index * 8, 0n, true);
  }

  get isOn(): boolean {
    return this.#isOn;
  }

  set isOn(isOn: boolean) {
    if (isOn && !this.#isOn) this.#next = this.#answered;
    this.#isOn = isOn;
    this.#view.setUint16(SPACE.isRecording, Number(isOn), true);
  }

  /**
   * Passes the entry, the last bits of its generation, and the time of each query since the last call, oldest first. Returns
   * how many others there were, with those of which `visit` says that they are gone.
   */
  take(visit: (entry: number, generation: number, atMs: number) => boolean): number {
    const answered = this.#answered;
    const from = Math.max(this.#next, answered - RECORDS);
    let lost = from - this.#next;
    this.#next = answered;
    if (!this.#isOn || from === answered) return 0;
    const [nowMs, now] = [performance.now(), Number(BigInt.asUintN(32, process.hrtime.bigint() >> TICK_BITS))];
    for (let number = from; number < answered; number++) {
      const at = SPACE.records + (number % RECORDS) * 8;
      const [low, time] = [this.#view.getUint32(at, true), this.#view.getUint32(at + 4, true)];
      const lap = (Math.floor(number / RECORDS) + 1) & 0xff;
      const age = (now - time) >>> 0;
      // The record has been replaced meanwhile, or has not been written yet.
      const atMs = nowMs - (age < AGE_MAX ? age * TICK_MS : 0);
      if (low >>> 24 !== lap || !visit(low & 0xffff, (low >>> 16) & GENERATION_BITS, atMs)) lost++;
    }
    return lost;
  }

  get #answered(): number {
    return Number(this.#view.getBigUint64(SPACE.answered, true));
  }
}

/**
 * An answer of the kernel as a message, for observers that record it. It has no id and no flags, and the name in lower case: the kernel
 * keeps nothing else of the queries that it answers.
 */
class RepeatedMessage {
  readonly #message = Buffer.alloc(MESSAGE_BYTES_MAX);
  #type = 0;
  #rcode = 0;
  #nameEnd = 0;
  #length = 0;
  /** The entry that the message was written from. */
  entry = -1;

  /** Writes the message from the key and the value of an entry. */
  write(entry: number, key: Buffer, value: Buffer): void {
    const [answers, authorities] = [value[VALUE.answers] as number, value[VALUE.authorities] as number];
    writeCounts(this.#message, 0, answers, authorities, 0);
    this.#rcode = (value[VALUE.codes] as number) & RCODE_BITS;
    this.#write(entry, key, value, VALUE.body, value[VALUE.bytes] as number);
  }

  /** Writes the message of an entry of the table of brief answers, with the TTLs that it had when it was written. */
  writeBrief(entry: number, key: Buffer, value: Buffer): void {
    const { answers, authorities, additionals, codes, body, bytes } = BRIEF_VALUE;
    const [inAnswer, inAuthority, beside] = [value[answers], value[authorities], value[additionals]] as [
      number,
      number,
      number,
    ];
    writeCounts(this.#message, 0, inAnswer, inAuthority, beside);
    this.#rcode = (value[codes] as number) & RCODE_BITS;
    this.#write(entry, key, value, body, value[bytes] as number);
  }

  #write(entry: number, key: Buffer, value: Buffer, body: number, bytes: number): void {
    const message = this.#message;
    this.entry = entry;
    this.#type = key.readUInt16BE(KEY.type);
    this.#nameEnd = HEADER_BYTES + key.copy(message, HEADER_BYTES, KEY.name, nameEnd(key));
    let at = message.writeUInt16BE(this.#type, this.#nameEnd);
    at = message.writeUInt16BE(CLASS.IN, at);
    this.#length = at + value.copy(message, at, body, body + bytes);
  }

  answer(source: RepeatedAnswer["source"], atMs: number): RepeatedAnswer {
    const message = this.#message;
    return {
      type: this.#type,
      rcode: this.#rcode,
      source,
      message,
      length: this.#length,
      nameEnd: this.#nameEnd,
      atMs,
    };
  }
}

/** Where the name of a key ends, with its root label. */
function nameEnd(key: Uint8Array): number {
  let at = KEY.name;
  while (at < KEY.name + NAME_BYTES_MAX && key[at] !== 0) at += (key[at] as number) + 1;
  return at + ROOT_LABEL_BYTES;
}
