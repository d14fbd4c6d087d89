/**
 * FailureTable: the names that fail in one container: how often, since when, and whether they have resolved since. It is
 * written on the query path: a query that succeeds costs one branch while the table is empty, and never allocates.
 *
 * Names like a container's and names of the outside world are in separate parts, so that a container that makes up
 * random domains does not lose the failures that matter.
 */
import { RCODE } from "../../base/dns/rcode.ts";
import type { FailureRecord, QueryNames } from "../../base/model/query-record.ts";
import { LIMITS } from "../../base/limits.ts";
import { type Outcome, STAGE } from "../record/outcome.ts";
import {
  type RecordingPolicy,
  recordingPolicy,
  TablesByContainer,
  changePolicy,
} from "../record/tables-by-container.ts";
import { presentation, sameBytes, FOLD, NAME_BYTES_MAX } from "../../base/dns/name.ts";
import { HEADER_BYTES } from "../../base/dns/header.ts";
import { HASH_BASIS, hashByte } from "../../base/model/label-table.ts";

/** The name of a query in lower case, with its hash. One object serves all queries, which are looked at one at a time. */
class FoldedName {
  /** Wire labels without the root label; only the first `length` bytes are valid. */
  readonly bytes = new Uint8Array(NAME_BYTES_MAX);
  length = 0;
  hash = 0;
  /** The length of the first label with its length byte; 0 for the root. */
  firstLength = 0;
  /** One bit for the first label. */
  firstBit = 0;

  read({ question, at, nameEnd }: Outcome): void {
    const from = at + HEADER_BYTES;
    const length = nameEnd - from - 1;
    const firstLength = length === 0 ? 0 : (question[from] as number) + 1;
    const { bytes } = this;
    let hash = HASH_BASIS;
    let i = 0;
    for (; i < firstLength; i++) hash = hashByte(hash, (bytes[i] = FOLD[question[from + i] as number] as number));
    this.firstBit = 1 << (hash & 31);
    for (; i < length; i++) hash = hashByte(hash, (bytes[i] = FOLD[question[from + i] as number] as number));
    this.length = length;
    this.firstLength = firstLength;
    this.hash = hash >>> 0;
  }

  /** Names are hidden: all names with one label are the same, and all others. */
  hide(): void {
    const isSingle = this.firstLength === this.length;
    this.length = this.firstLength = 0;
    this.hash = isSingle ? 1 : 2;
    this.firstBit = 0;
  }
}

/** Whether a name with several labels is one of this engine; `labels` are in lower case, without the root label. */
type IsContainerName = (labels: Uint8Array, length: number) => boolean;

interface FailureTableParts {
  readonly policy: RecordingPolicy;
  readonly isContainerName: IsContainerName;
  readonly now: () => number;
  /** Called before the table takes memory. */
  readonly onFirst: (table: FailureTable) => void;
}

const SECOND_MS = 1_000;
/** A failure is a step of a lookup that succeeds if a name with the same first label resolves within this time. */
const STEP_MS = 5_000;
/**
 * New external names recorded a second while their part is full. Of the rest one in so many is looked at, so that a flood of
 * random names costs almost nothing.
 */
const NAMES_A_SECOND = 32;
const SAMPLE = 16;
const NO_PARTS: FailureTableParts = {
  policy: recordingPolicy("off"),
  isContainerName: () => false,
  now: () => 0,
  onFirst: () => undefined,
};
const folded = new FoldedName();

export class FailureTable {
  readonly containerId: string;
  /** Its name, once it has ended and the registry no longer knows it. */
  containerName: string | undefined;
  /** Records what the kernel has answered since the last call. */
  bringUpToDate: (() => void) | undefined;
  readonly #parts: FailureTableParts;
  #local: FailurePart | undefined;
  #external: FailurePart | undefined;
  hasEntries = false;
  /** The time at which a name last failed. */
  lastMs = 0;
  /** New external names in the second that began at `#secondMs`, and how many more to skip. */
  #secondMs = 0;
  #admitted = 0;
  #skip = 0;

  constructor(containerId = "", parts: FailureTableParts = NO_PARTS) {
    this.containerId = containerId;
    this.#parts = parts;
  }

  /**
   * Records a query that has failed, or one that has succeeded while there are entries. `repeated`: the kernel has given this
   * answer so many times.
   */
  note(outcome: Outcome, repeated = 0): void {
    const { stage, rcode, lacksAddress, nameEnd } = outcome;
    const { policy } = this.#parts;
    const isResolved =
      stage === STAGE.local || stage === STAGE.cache || stage === STAGE.completed || stage === STAGE.denied;
    // Other stages are faults of the query, not of its name.
    if (!policy.isEnabled || !isResolved || nameEnd === 0) return;
    folded.read(outcome);
    if (rcode === 0 && !lacksAddress) {
      // A truncated reply is no answer yet: it sends the client to TCP, where it may fail.
      if (policy.hasNames && !outcome.isTruncated) this.#succeed(outcome);
    } else this.#fail(outcome, policy.hasNames, repeated);
  }

  /** How often names like a container's did not exist in the last minute, without steps of lookups that succeeded. */
  get localPerMinute(): number {
    let sum = 0;
    for (const { rcode, isStepLast, perMinute } of this.#local?.records(this.#parts.now()) ?? [])
      if (rcode === RCODE.NXDOMAIN && !isStepLast) sum += perMinute;
    return sum;
  }

  *records(): Generator<FailureRecord> {
    const now = this.#parts.now();
    if (this.#local !== undefined) yield* this.#local.records(now);
    if (this.#external !== undefined) yield* this.#external.records(now);
  }

  /** Removes all entries and frees their memory. */
  clear(): void {
    this.#local = this.#external = undefined;
    this.hasEntries = false;
  }

  #succeed(outcome: Outcome): void {
    const local = this.#local?.mayHaveFirst(folded) === true;
    const external = this.#external?.mayHaveFirst(folded) === true;
    if (!local && !external) return;
    const [hasAnswers, now] = [outcome.answers > 0, this.#parts.now()];
    if (local) this.#local?.succeed(folded, outcome.type, hasAnswers, now, STEP_MS);
    if (external) this.#external?.succeed(folded, outcome.type, hasAnswers, now, STEP_MS);
  }

  #fail({ type, rcode }: Outcome, hasName: boolean, repeated: number): void {
    const times = Math.max(1, repeated);
    const isSingle = folded.firstLength === folded.length;
    if (!hasName) folded.hide();
    const localAt = this.#local?.find(folded, type, rcode) ?? -1;
    if (localAt >= 0) {
      this.#local?.repeat(localAt, this.#touch(), times, repeated > 0);
      return;
    }
    if (isSingle) return this.#addLocal(type, rcode, hasName, times);
    const externalAt = this.#external?.find(folded, type, rcode) ?? -1;
    if (externalAt >= 0) {
      this.#external?.repeat(externalAt, this.#touch(), times, repeated > 0);
      return;
    }
    if (this.#isFlood()) return;
    const { isContainerName } = this.#parts;
    if (hasName && isContainerName(folded.bytes, folded.length)) this.#addLocal(type, rcode, hasName, times);
    else this.#addExternal(type, rcode, hasName, times);
  }

  #addLocal(type: number, rcode: number, hasName: boolean, times: number): void {
    this.#admit();
    this.#local ??= new FailurePart(LIMITS.failureBytes.local, true);
    this.#local.add(folded, type, rcode, hasName, this.#touch(), times);
  }

  #addExternal(type: number, rcode: number, hasName: boolean, times: number): void {
    this.#admit();
    this.#external ??= new FailurePart(LIMITS.failureBytes.external, false);
    this.#external.add(folded, type, rcode, hasName, this.#touch(), times);
  }

  #admit(): void {
    if (!this.hasEntries) this.#parts.onFirst(this);
    this.hasEntries = true;
  }

  /** Whether new external names come too fast to record this one. */
  #isFlood(): boolean {
    if (this.#external?.hasRoomFor(folded) !== false) return false;
    if (this.#skip > 0) {
      this.#skip--;
      return true;
    }
    const now = this.#parts.now();
    if (now - this.#secondMs >= SECOND_MS) [this.#secondMs, this.#admitted] = [now, 0];
    if (this.#admitted++ < NAMES_A_SECOND) return false;
    this.#skip = SAMPLE;
    return true;
  }

  #touch(): number {
    this.lastMs = this.#parts.now();
    return this.lastMs;
  }
}

/** 256 bits. */
const BITMAP_BYTES = 32;
/** Three times, six words; then the name. */
const FIXED_BYTES = 48;
/** Offsets in doubles. */
const FIRST = 0;
const LAST = 1;
const SUCCESS = 2;
/** Offsets in words. */
const COUNT = 6;
const STEPS = 7;
const HASH = 8;
/** Type, response code and flags. */
const KIND = 9;
/** Failures of the minute of the last failure, and of the minute before. */
const MINUTES = 10;
const LENGTH = 11;

const STEP = 1;
const NAMELESS = 2;
const MINUTE_MS = 60_000;
const PER_MINUTE_MAX = 0xffff;
const COUNT_MAX = 0xffff_ffff;

/**
 * Failing names of one container in one buffer of fixed size, the oldest entry first. A new entry is added
 * at the end; to make room, the entry that failed least recently is removed and the rest moves up. An entry has the
 * length of its name. The buffer begins with a bitmap of the names' hashes, so that most names that have no entry are
 * recognized without a search.
 */
class FailurePart {
  readonly #isLocal: boolean;
  readonly #bytes: Uint8Array;
  readonly #words: Uint32Array;
  readonly #doubles: Float64Array;
  #end = BITMAP_BYTES;
  #count = 0;
  /** A bit for the first label of each name. */
  #firstBits = 0;

  constructor(bytes: number, isLocal: boolean) {
    this.#isLocal = isLocal;
    this.#bytes = new Uint8Array(bytes);
    this.#words = new Uint32Array(this.#bytes.buffer);
    this.#doubles = new Float64Array(this.#bytes.buffer);
  }

  get count(): number {
    return this.#count;
  }

  /** Whether a name may have the same first label as an entry. */
  mayHaveFirst({ firstBit }: FoldedName): boolean {
    return (this.#firstBits & firstBit) !== 0;
  }

  /** Offset of the entry of a name with this type and code; -1 without one. */
  find(name: FoldedName, type: number, rcode: number): number {
    const { hash, length, bytes } = name;
    if (((this.#words[(hash & 0xff) >>> 5] as number) & (1 << (hash & 31))) === 0) return -1;
    const kind = kindOf(type, rcode);
    for (let at = BITMAP_BYTES; at < this.#end; at += this.#sizeAt(at)) {
      const word = at >> 2;
      if (this.#words[word + HASH] !== hash || ((this.#words[word + KIND] as number) & ~0xff) >>> 0 !== kind) continue;
      if (this.#words[word + LENGTH] !== length) continue;
      if (sameBytes(this.#bytes, at + FIXED_BYTES, bytes, 0, length)) return at;
    }
    return -1;
  }

  /**
   * Counts `times` more failures of an entry. `isRepeated`: the kernel has given the same answer again, and it is a step of a
   * lookup if the last one was, because nobody has seen what the lookup led to.
   */
  repeat(at: number, nowMs: number, times: number, isRepeated: boolean): void {
    const words = this.#words;
    const word = at >> 2;
    const last = this.#doubles[(at >> 3) + LAST] as number;
    words[word + COUNT] = Math.min(COUNT_MAX, (words[word + COUNT] as number) + times);
    if (!isRepeated) words[word + KIND] = (words[word + KIND] as number) & ~STEP;
    else if (((words[word + KIND] as number) & STEP) !== 0)
      words[word + STEPS] = Math.min(COUNT_MAX, (words[word + STEPS] as number) + times);
    const [current, before] = shifted(words[word + MINUTES] as number, last, nowMs);
    words[word + MINUTES] = (before << 16) | Math.min(PER_MINUTE_MAX, current + times);
    this.#doubles[(at >> 3) + LAST] = nowMs;
  }

  /** Whether an entry for this name fits without an eviction. */
  hasRoomFor({ length }: FoldedName): boolean {
    return this.#end + sizeOf(length) <= this.#bytes.length;
  }

  /** Adds an entry with `times` failures. */
  add(name: FoldedName, type: number, rcode: number, hasName: boolean, nowMs: number, times: number): void {
    while (!this.hasRoomFor(name)) this.#evict();
    const at = this.#end;
    const word = at >> 2;
    const { length, hash } = name;
    this.#words.fill(0, word, word + FIXED_BYTES / 4);
    this.#doubles[(at >> 3) + FIRST] = this.#doubles[(at >> 3) + LAST] = nowMs;
    this.#words[word + COUNT] = times;
    this.#words[word + MINUTES] = Math.min(PER_MINUTE_MAX, times);
    this.#words[word + HASH] = hash;
    this.#words[word + KIND] = kindOf(type, rcode) | (hasName ? 0 : NAMELESS);
    this.#words[word + LENGTH] = length;
    for (let i = 0; i < length; i++) this.#bytes[at + FIXED_BYTES + i] = name.bytes[i] as number;
    this.#end += sizeOf(length);
    this.#count++;
    this.#mark(hash);
    this.#firstBits |= name.firstBit;
  }

  /**
   * A name resolves: that ends the failures of its entries, and the latest failure of a name with the same first label
   * may have been a step of the same lookup, through a search list.
   */
  succeed(name: FoldedName, type: number, hasAnswers: boolean, nowMs: number, stepMs: number): void {
    const { bytes, length, firstLength } = name;
    for (let at = BITMAP_BYTES; at < this.#end; at += this.#sizeAt(at)) {
      const word = at >> 2;
      const kind = this.#words[word + KIND] as number;
      const nameAt = at + FIXED_BYTES;
      if (kind >>> 16 !== type || this.#bytes[nameAt] !== bytes[0]) continue;
      if ((kind & NAMELESS) !== 0 || !sameBytes(this.#bytes, nameAt, bytes, 0, firstLength)) continue;
      // This entry fails with empty answers, so another empty answer does not end it.
      if (((kind >>> 8) & 0xff) === 0 && !hasAnswers) continue;
      const isSame = this.#words[word + LENGTH] === length && sameBytes(this.#bytes, nameAt, bytes, 0, length);
      if (isSame) this.#doubles[(at >> 3) + SUCCESS] = nowMs;
      else if ((kind & STEP) === 0 && nowMs - (this.#doubles[(at >> 3) + LAST] as number) <= stepMs) {
        this.#words[word + KIND] = kind | STEP;
        this.#words[word + STEPS] = (this.#words[word + STEPS] as number) + 1;
      }
    }
  }

  *records(nowMs: number): Generator<FailureRecord> {
    for (let at = BITMAP_BYTES; at < this.#end; at += this.#sizeAt(at)) yield this.#read(at, nowMs);
  }

  #read(at: number, nowMs: number): FailureRecord {
    const words = this.#words.subarray(at >> 2, (at + FIXED_BYTES) >> 2);
    const [first = 0, last = 0, success = 0] = this.#doubles.subarray(at >> 3, (at >> 3) + 3);
    const [kind = 0, minutes = 0, length = 0] = words.subarray(KIND);
    const [current, before] = shifted(minutes, last, nowMs);
    return {
      name: (kind & NAMELESS) === 0 ? presentation(this.#bytes, at + FIXED_BYTES, at + FIXED_BYTES + length) : null,
      type: kind >>> 16,
      rcode: (kind >>> 8) & 0xff,
      count: words[COUNT] ?? 0,
      steps: words[STEPS] ?? 0,
      isStepLast: (kind & STEP) !== 0,
      // The rest of the minute before, as if its failures were spread evenly.
      perMinute: Math.round(current + before * (1 - (nowMs % MINUTE_MS) / MINUTE_MS)),
      firstMs: first,
      lastMs: last,
      successMs: success === 0 ? undefined : success,
      isLocal: this.#isLocal,
    };
  }

  /** Removes the entry that failed least recently. */
  #evict(): void {
    let oldest = BITMAP_BYTES;
    let oldestMs = Infinity;
    for (let at = BITMAP_BYTES; at < this.#end; at += this.#sizeAt(at)) {
      const last = this.#doubles[(at >> 3) + LAST] as number;
      if (last < oldestMs) [oldest, oldestMs] = [at, last];
    }
    const size = this.#sizeAt(oldest);
    this.#bytes.copyWithin(oldest, oldest + size, this.#end);
    this.#end -= size;
    this.#count--;
    this.#words.fill(0, 0, BITMAP_BYTES / 4);
    // Bits of first labels are never cleared: one too many costs a search.
    for (let at = BITMAP_BYTES; at < this.#end; at += this.#sizeAt(at))
      this.#mark(this.#words[(at >> 2) + HASH] as number);
  }

  #mark(hash: number): void {
    const word = (hash & 0xff) >>> 5;
    this.#words[word] = (this.#words[word] as number) | (1 << (hash & 31));
  }

  #sizeAt(at: number): number {
    return sizeOf(this.#words[(at >> 2) + LENGTH] as number);
  }
}

function sizeOf(length: number): number {
  return FIXED_BYTES + ((length + 7) & ~7);
}

/** A code of more than eight bits counts as the largest. */
function kindOf(type: number, rcode: number): number {
  return ((type << 16) | (Math.min(rcode, 0xff) << 8)) >>> 0;
}

/** The failures of the current minute and of the one before, after time has passed since the last failure. */
function shifted(minutes: number, lastMs: number, nowMs: number): [current: number, before: number] {
  const passed = Math.floor(nowMs / MINUTE_MS) - Math.floor(lastMs / MINUTE_MS);
  const current = minutes & PER_MINUTE_MAX;
  if (passed === 0) return [current, minutes >>> 16];
  return [0, passed === 1 ? current : 0];
}

/**
 * The failure tables of all containers, by container ID. A container that fails, exits and is started again
 * finds its table, because its client is another one but its failures are the same.
 */
export class FailureTables {
  readonly #policy: RecordingPolicy;
  readonly #parts: FailureTableParts;
  readonly #tables: TablesByContainer<FailureTable>;
  #isContainerName: IsContainerName = () => false;

  constructor(names: QueryNames, now: () => number = () => performance.now()) {
    this.#policy = recordingPolicy(names);
    this.#parts = {
      policy: this.#policy,
      isContainerName: (labels, length) => this.#isContainerName(labels, length),
      now,
      onFirst: (table) => this.#makeRoom(table),
    };
    this.#tables = new TablesByContainer(LIMITS.failureLingerMs, now);
  }

  get isEnabled(): boolean {
    return this.#policy.isEnabled;
  }

  /** Sets the test for names with several labels that exist on this engine. */
  setContainerNames(isContainerName: IsContainerName): void {
    this.#isContainerName = isContainerName;
  }

  /** Changes what is recorded, and drops recorded data that would no longer be recorded now. */
  setNames(names: QueryNames): void {
    if (!changePolicy(this.#policy, names)) return;
    for (const table of this.#tables.all()) table.clear();
  }

  open(containerId: string): FailureTable {
    const table = this.#tables.open(containerId, () => new FailureTable(containerId, this.#parts));
    table.containerName = undefined;
    return table;
  }

  close({ containerId }: FailureTable): void {
    this.#tables.close(containerId, ({ hasEntries }) => hasEntries);
  }

  /** Sets the name of a container that is about to end, for its table. */
  name(containerId: string, name: string): void {
    const table = this.#tables.get(containerId);
    if (table !== undefined) table.containerName = name;
  }

  /** Lists those of one container or of all that have entries. */
  *tables(containerId?: string): Generator<FailureTable> {
    for (const table of this.#tables.all()) {
      if (containerId !== undefined && table.containerId !== containerId) continue;
      table.bringUpToDate?.();
      if (table.hasEntries) yield table;
    }
  }

  /** Another container fails: if there are too many, the one whose last failure is oldest loses its entries. */
  #makeRoom(next: FailureTable): void {
    let count = 0;
    let oldest: FailureTable | undefined;
    for (const table of this.#tables.all()) {
      if (!table.hasEntries || table === next) continue;
      count++;
      if (oldest === undefined || table.lastMs < oldest.lastMs) oldest = table;
    }
    if (count < LIMITS.failureTables || oldest === undefined) return;
    oldest.clear();
    this.#tables.drop(oldest.containerId);
  }
}
