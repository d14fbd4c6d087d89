/**
 * JsonScanner: reads JSON while it arrives, and keeps only the parts that are wanted. The author of the other parts decides how long they
 * are, so they are skipped without being held in memory; and the kept parts have a limit.
 */

/** What is wanted of a value: all of it, or some members of an object. For a list, it applies to each element. */
export type Shape = true | { readonly [member: string]: Shape } | Members | LastText;

/** The members whose names are wanted, at most so many. */
export class Members {
  readonly shape: Shape;
  readonly countMax: number;
  readonly isWanted: (name: string) => boolean;

  constructor(shape: Shape, countMax = Infinity, isWanted: (name: string) => boolean = (): boolean => true) {
    this.shape = shape;
    this.countMax = countMax;
    this.isWanted = isWanted;
  }
}

/** Wants the last text in a list that begins like this. */
export class LastText {
  readonly begin: Buffer;

  constructor(begin: string) {
    this.begin = Buffer.from(begin);
  }
}

interface JsonLimits {
  /** The most bytes that are kept of one value; a value with more cannot be read. */
  readonly bytesMax: number;
  /** The most bytes of a text; a longer one is cut. A member whose name is longer is skipped. */
  readonly textBytesMax: number;
}

interface Frame {
  readonly isObject: boolean;
  readonly shape: Shape;
  /** Where its first item begins in what is kept. */
  readonly begin: number;
  /** Where the current item begins, with the comma before it. */
  itemBegin: number;
  count: number;
}

const BYTE = {
  ...{ quote: 0x22, comma: 0x2c, colon: 0x3a, backslash: 0x5c, u: 0x75 },
  ...{ brace: 0x7b, braceEnd: 0x7d, bracket: 0x5b, bracketEnd: 0x5d },
} as const;

/** What the next byte belongs to. */
const STATE = {
  ...{ root: 0, value: 1, valueOrEnd: 2, name: 3, nameOrEnd: 4, inName: 5, colon: 6, afterItem: 7 },
  ...{ keptText: 8, keptWord: 9, passedText: 10, passedWord: 11, passed: 12, afterElement: 13, end: 14 },
} as const;
type State = (typeof STATE)[keyof typeof STATE];

const DEPTH_MAX = 32;
/** The longest number, or word such as null. */
const WORD_BYTES_MAX = 64;
/** Beyond so many bytes, searching for the end of a text takes less time than looking at each byte. */
const SHORT_TEXT_BYTES = 128;

export class JsonScanner {
  readonly #shape: Shape;
  readonly #isList: boolean;
  readonly #limits: JsonLimits;
  readonly #onValue: (value: unknown) => void;
  #state: State = STATE.root;
  readonly #frames: Frame[] = [];
  /** What is wanted of the next value; undefined if it is skipped. */
  #wanted: Shape | undefined;
  readonly #kept: Bytes;
  readonly #name: Bytes;
  #isNameCut = false;
  #isTextCut = false;
  /** Bytes of the current text or word. */
  #length = 0;
  /** Bytes of an escape sequence that are still to come. */
  #escapeLeft = 0;
  /** How many lists and objects are open in the value that is skipped. */
  #passedDepth = 0;

  /** Calls `onValue` for each of the objects that the text has one after the other, or for each that its list has. */
  constructor(shape: Shape, isList: boolean, limits: JsonLimits, onValue: (value: unknown) => void) {
    this.#shape = shape;
    this.#isList = isList;
    this.#limits = limits;
    this.#onValue = onValue;
    this.#kept = new Bytes(limits.bytesMax);
    this.#name = new Bytes(limits.textBytesMax);
  }

  /** Bytes of all that was kept so far. */
  keptBytes = 0;

  /** Whether the JSON has ended where it may end. */
  get isComplete(): boolean {
    return this.#isList ? this.#state === STATE.end : this.#state === STATE.root;
  }

  /** Throws if the text is not such JSON, or has too much that is wanted; nothing more can be read then. */
  push(chunk: Buffer): void {
    let at = 0;
    while (at < chunk.length) {
      switch (this.#state) {
        case STATE.keptText:
          at = this.#keepText(chunk, at);
          break;
        case STATE.keptWord:
        case STATE.passedWord:
          at = this.#readWord(chunk, at);
          break;
        case STATE.inName:
          at = this.#readName(chunk, at);
          break;
        case STATE.passedText:
          at = this.#passText(chunk, at);
          break;
        case STATE.passed:
          at = this.#pass(chunk, at);
          break;
        default:
          if (!isBlank(chunk[at])) this.#read(chunk[at] as number);
          at++;
      }
    }
  }

  /** A byte between texts and words. A word begins with it, and is read again from it. */
  #read(byte: number): void {
    switch (this.#state) {
      case STATE.root:
        if (this.#isList && byte === BYTE.bracket) this.#state = STATE.valueOrEnd;
        else if (!this.#isList && byte === BYTE.brace) this.#beginRoot();
        else throw unexpected(byte);
        return;
      case STATE.valueOrEnd:
        if (byte === BYTE.bracketEnd) this.#endList();
        else this.#beginValue(byte);
        return;
      case STATE.value:
        this.#beginValue(byte);
        return;
      case STATE.nameOrEnd:
        if (byte === BYTE.braceEnd) this.#close(BYTE.braceEnd);
        else this.#beginName(byte);
        return;
      case STATE.name:
        this.#beginName(byte);
        return;
      case STATE.colon:
        if (byte !== BYTE.colon) throw unexpected(byte);
        this.#state = STATE.value;
        return;
      case STATE.afterItem:
        this.#readAfterItem(byte);
        return;
      case STATE.afterElement:
        if (byte === BYTE.comma) this.#state = STATE.value;
        else if (byte === BYTE.bracketEnd) this.#state = STATE.end;
        else throw unexpected(byte);
        return;
      default:
        throw unexpected(byte);
    }
  }

  #beginRoot(): void {
    this.#kept.clear();
    this.#wanted = this.#shape;
    this.#open(BYTE.brace);
  }

  #endList(): void {
    if (this.#frames.length === 0) this.#state = STATE.end;
    else this.#close(BYTE.bracketEnd);
  }

  #readAfterItem(byte: number): void {
    const { isObject } = this.#frame;
    if (byte === BYTE.comma) {
      this.#state = isObject ? STATE.name : STATE.value;
      if (!isObject) this.#wanted = this.#frame.shape;
    } else if (byte === (isObject ? BYTE.braceEnd : BYTE.bracketEnd)) this.#close(byte);
    else throw unexpected(byte);
  }

  #beginValue(byte: number): void {
    if (this.#frames.length === 0) {
      if (byte !== BYTE.brace) throw unexpected(byte);
      this.#beginRoot();
      return;
    }
    const isNested = byte === BYTE.brace || byte === BYTE.bracket;
    this.#length = 0;
    if (this.#wanted === undefined) {
      if (isNested) this.#passedDepth = 1;
      this.#state = isNested ? STATE.passed : byte === BYTE.quote ? STATE.passedText : STATE.passedWord;
      return;
    }
    this.#beginItem();
    if (isNested) {
      this.#open(byte);
      return;
    }
    this.#kept.add(byte);
    this.#isTextCut = false;
    this.#state = byte === BYTE.quote ? STATE.keptText : STATE.keptWord;
  }

  /** Writes what stands before a value in its list or object. */
  #beginItem(): void {
    const frame = this.#frame;
    frame.itemBegin = this.#kept.length;
    if (frame.count > 0) this.#kept.add(BYTE.comma);
    if (!frame.isObject) return;
    this.#kept.add(BYTE.quote);
    this.#kept.addAll(this.#name);
    this.#kept.add(BYTE.quote);
    this.#kept.add(BYTE.colon);
  }

  #open(byte: number): void {
    if (this.#frames.length === DEPTH_MAX) throw new Error(`the JSON has over ${DEPTH_MAX} levels`);
    const shape = this.#wanted as Shape;
    this.#kept.add(byte);
    const begin = this.#kept.length;
    const isObject = byte === BYTE.brace;
    this.#frames.push({ isObject, shape, begin, itemBegin: begin, count: 0 });
    this.#state = isObject ? STATE.nameOrEnd : STATE.valueOrEnd;
  }

  #close(byte: number): void {
    this.#kept.add(byte);
    this.#frames.pop();
    if (this.#frames.length > 0) {
      this.#endItem();
      return;
    }
    this.#state = this.#isList ? STATE.afterElement : STATE.root;
    this.keptBytes += this.#kept.length;
    this.#onValue(JSON.parse(this.#kept.text));
  }

  #endItem(): void {
    const frame = this.#frame;
    frame.count++;
    this.#state = STATE.afterItem;
    if (frame.shape instanceof LastText && !frame.isObject) this.#keepLast(frame, frame.shape);
  }

  #keepLast(frame: Frame, { begin }: LastText): void {
    const textBegin = frame.itemBegin + (frame.count > 1 ? 1 : 0);
    if (this.#kept.hasAt(textBegin + 1, begin)) this.#kept.move(textBegin, frame.begin);
    else this.#kept.cut(frame.itemBegin);
    frame.count = this.#kept.length > frame.begin ? 1 : 0;
  }

  #beginName(byte: number): void {
    if (byte !== BYTE.quote) throw unexpected(byte);
    this.#name.clear();
    this.#isNameCut = false;
    this.#state = STATE.inName;
  }

  #readName(chunk: Buffer, from: number): number {
    const end = this.#endOfText(chunk, from);
    const length = end - from;
    if (this.#name.length + length > this.#limits.textBytesMax) this.#isNameCut = true;
    else this.#name.addFrom(chunk, from, this.#isTextEnd ? end - 1 : end);
    if (this.#isTextEnd) {
      this.#wanted = this.#isNameCut ? undefined : memberShape(this.#frame, this.#name.text);
      this.#state = STATE.colon;
    }
    return end;
  }

  /** A text is cut between two characters, never inside of one or of its escape sequence. */
  #keepText(chunk: Buffer, from: number): number {
    if (this.#isTextCut) return this.#endKeptText(this.#endOfText(chunk, from));
    for (let at = from; at < chunk.length; at++) {
      const byte = chunk[at] as number;
      if (this.#escapeLeft > 0) {
        this.#escapeLeft += byte === BYTE.u && this.#escapeLeft === 1 && this.#isEscapeBegin ? 3 : -1;
        this.#isEscapeBegin = false;
      } else if (byte === BYTE.quote) {
        this.#isTextEnd = true;
        return this.#endKeptText(at + 1);
      } else {
        if (this.#length >= this.#limits.textBytesMax && (byte & 0xc0) !== 0x80) {
          this.#isTextCut = true;
          return at;
        }
        this.#isEscapeBegin = byte === BYTE.backslash;
        if (this.#isEscapeBegin) this.#escapeLeft = 1;
      }
      this.#kept.add(byte);
      this.#length++;
    }
    return chunk.length;
  }

  /** The byte before was the backslash of an escape sequence. */
  #isEscapeBegin = false;

  #endKeptText(at: number): number {
    if (!this.#isTextEnd) return at;
    this.#kept.add(BYTE.quote);
    this.#endItem();
    return at;
  }

  #passText(chunk: Buffer, from: number): number {
    const end = this.#endOfText(chunk, from);
    if (this.#isTextEnd) this.#state = this.#passedDepth > 0 ? STATE.passed : STATE.afterItem;
    return end;
  }

  /** Skips lists and objects that are not wanted. */
  #pass(chunk: Buffer, from: number): number {
    for (let at = from; at < chunk.length; at++) {
      const byte = chunk[at];
      if (byte === BYTE.quote) {
        this.#state = STATE.passedText;
        return at + 1;
      }
      if (byte === BYTE.brace || byte === BYTE.bracket) this.#passedDepth++;
      else if (byte === BYTE.braceEnd || byte === BYTE.bracketEnd) {
        this.#passedDepth--;
        if (this.#passedDepth > 0) continue;
        this.#state = STATE.afterItem;
        return at + 1;
      }
    }
    return chunk.length;
  }

  #readWord(chunk: Buffer, from: number): number {
    const isKept = this.#state === STATE.keptWord;
    for (let at = from; at < chunk.length; at++) {
      const byte = chunk[at] as number;
      if (isBlank(byte) || byte === BYTE.comma || byte === BYTE.braceEnd || byte === BYTE.bracketEnd) {
        if (isKept) this.#endItem();
        else this.#state = STATE.afterItem;
        return at;
      }
      if (++this.#length > WORD_BYTES_MAX) throw new Error(`the JSON has a word of over ${WORD_BYTES_MAX} bytes`);
      if (isKept) this.#kept.add(byte);
    }
    return chunk.length;
  }

  /** Whether the text that was read last has ended. */
  #isTextEnd = false;

  /** Where a text ends, behind its quote; the end of the chunk if it goes on in the next one. */
  #endOfText(chunk: Buffer, from: number): number {
    const end = chunk.length;
    let at = from + this.#escapeLeft;
    this.#escapeLeft = 0;
    this.#isTextEnd = false;
    while (at < end) {
      const shortEnd = Math.min(end, at + SHORT_TEXT_BYTES);
      while (at < shortEnd) {
        const byte = chunk[at++];
        if (byte === BYTE.quote) {
          this.#isTextEnd = true;
          return at;
        }
        if (byte === BYTE.backslash) at++;
      }
      if (at >= end) break;
      const quote = chunk.indexOf(BYTE.quote, at);
      const stop = quote < 0 ? end : quote;
      // A quote behind an odd number of backslashes is escaped, and so is what follows at the end of the chunk.
      let escape = stop;
      while (escape > at && chunk[escape - 1] === BYTE.backslash) escape--;
      const isEscaped = (stop - escape) % 2 === 1;
      at = stop + 1;
      if (quote >= 0 && !isEscaped) {
        this.#isTextEnd = true;
        return at;
      }
      if (quote < 0 && !isEscaped) at = end;
    }
    this.#escapeLeft = at - end;
    return end;
  }

  get #frame(): Frame {
    return this.#frames.at(-1) as Frame;
  }
}

/** What is wanted of a member of an object. */
function memberShape({ shape, count }: Frame, rawName: string): Shape | undefined {
  if (shape === true) return true;
  if (shape instanceof LastText) return undefined;
  const name = rawName.includes("\\") ? (JSON.parse(`"${rawName}"`) as string) : rawName;
  if (shape instanceof Members) return count < shape.countMax && shape.isWanted(name) ? shape.shape : undefined;
  return Object.hasOwn(shape, name) ? shape[name] : undefined;
}

function isBlank(byte: number | undefined): boolean {
  return byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09;
}

function unexpected(byte: number): Error {
  return new Error(`the reply is no such JSON: unexpected ${JSON.stringify(String.fromCharCode(byte))}`);
}

/** Bytes that are collected, up to a limit. */
class Bytes {
  readonly #bytesMax: number;
  #block = Buffer.allocUnsafe(256);
  length = 0;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  get text(): string {
    return this.#block.toString("utf8", 0, this.length);
  }

  add(byte: number): void {
    if (this.length === this.#block.length) this.#grow(1);
    this.#block[this.length++] = byte;
  }

  addAll(other: Bytes): void {
    this.addFrom(other.#block, 0, other.length);
  }

  addFrom(block: Buffer, from: number, to: number): void {
    if (this.length + to - from > this.#block.length) this.#grow(to - from);
    this.length += block.copy(this.#block, this.length, from, to);
  }

  hasAt(at: number, bytes: Buffer): boolean {
    return at + bytes.length <= this.length && bytes.compare(this.#block, at, at + bytes.length) === 0;
  }

  /** Moves what begins there to an earlier place, over what was there. */
  move(from: number, to: number): void {
    this.#block.copyWithin(to, from, this.length);
    this.length -= from - to;
  }

  cut(length: number): void {
    this.length = length;
  }

  clear(): void {
    this.length = 0;
  }

  #grow(count: number): void {
    const length = this.length + count;
    if (length > this.#bytesMax) throw new Error(`the reply has over ${this.#bytesMax} bytes of what is read of it`);
    const block = Buffer.allocUnsafe(Math.min(this.#bytesMax, Math.max(length, 2 * this.#block.length)));
    this.#block.copy(block, 0, 0, this.length);
    this.#block = block;
  }
}
