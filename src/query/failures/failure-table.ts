/**
 * FailureTable: the names that fail in one container: how often, since when, and whether they have resolved since. It is
 * written on the query path: a query that succeeds costs one branch while the table is empty, and never allocates.
 *
 * Names like a container's and names of the outside world are in separate parts, so that a container that makes up
 * random domains does not lose the failures that matter.
 */
import { RCODE } from "../../base/dns/rcode.ts";
import type { FailureRecord } from "../../base/model/failure-record.ts";
import { LIMITS } from "../../base/limits.ts";
import { type Outcome, STAGE } from "../record/outcome.ts";
import { type RecordingPolicy, recordingPolicy } from "../record/recording-policy.ts";
import { FailurePart } from "./failure-part.ts";
import { FoldedName } from "./folded-name.ts";

/** Whether a name with several labels is one of this engine; `labels` are in lower case, without the root label. */
export type IsContainerName = (labels: Uint8Array, length: number) => boolean;

export interface FailureTableParts {
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
 * New outside names recorded a second while their part is full. Of the rest one in so many is looked at, so that a flood of
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
const name = new FoldedName();

export class FailureTable {
  readonly containerId: string;
  /** Its name, once it has ended and the registry no longer knows it. */
  containerName: string | undefined;
  /** Notes what the kernel has answered meanwhile. */
  bringUpToDate: (() => void) | undefined;
  readonly #parts: FailureTableParts;
  #near: FailurePart | undefined;
  #outside: FailurePart | undefined;
  hasEntries = false;
  /** The time at which a name last failed. */
  lastMs = 0;
  /** New outside names in the second that began at `#secondMs`, and how many more to skip. */
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
    name.read(outcome);
    if (rcode === 0 && !lacksAddress) {
      // A truncated reply is no answer yet: it sends the client to TCP, where it may fail.
      if (policy.hasNames && !outcome.isTruncated) this.#succeed(outcome);
    } else this.#fail(outcome, policy.hasNames, repeated);
  }

  /** How often names like a container's did not exist in the last minute, without steps of lookups that succeeded. */
  get nearPerMinute(): number {
    let sum = 0;
    for (const { rcode, isStepLast, perMinute } of this.#near?.records(this.#parts.now()) ?? [])
      if (rcode === RCODE.NXDOMAIN && !isStepLast) sum += perMinute;
    return sum;
  }

  *records(): Generator<FailureRecord> {
    const now = this.#parts.now();
    if (this.#near !== undefined) yield* this.#near.records(now);
    if (this.#outside !== undefined) yield* this.#outside.records(now);
  }

  /** Removes all entries and frees their memory. */
  clear(): void {
    this.#near = this.#outside = undefined;
    this.hasEntries = false;
  }

  #succeed(outcome: Outcome): void {
    const near = this.#near?.mayHaveFirst(name) === true;
    const outside = this.#outside?.mayHaveFirst(name) === true;
    if (!near && !outside) return;
    const [hasAnswers, now] = [outcome.answers > 0, this.#parts.now()];
    if (near) this.#near?.succeed(name, outcome.type, hasAnswers, now, STEP_MS);
    if (outside) this.#outside?.succeed(name, outcome.type, hasAnswers, now, STEP_MS);
  }

  #fail({ type, rcode }: Outcome, hasName: boolean, repeated: number): void {
    const times = Math.max(1, repeated);
    const isSingle = name.firstLength === name.length;
    if (!hasName) name.hide();
    const nearAt = this.#near?.find(name, type, rcode) ?? -1;
    if (nearAt >= 0) {
      this.#near?.repeat(nearAt, this.#touch(), times, repeated > 0);
      return;
    }
    if (isSingle) return this.#addNear(type, rcode, hasName, times);
    const outsideAt = this.#outside?.find(name, type, rcode) ?? -1;
    if (outsideAt >= 0) {
      this.#outside?.repeat(outsideAt, this.#touch(), times, repeated > 0);
      return;
    }
    if (this.#isFlood()) return;
    const { isContainerName } = this.#parts;
    if (hasName && isContainerName(name.bytes, name.length)) this.#addNear(type, rcode, hasName, times);
    else this.#addOutside(type, rcode, hasName, times);
  }

  #addNear(type: number, rcode: number, hasName: boolean, times: number): void {
    this.#admit();
    this.#near ??= new FailurePart(LIMITS.failureBytes.near, true);
    this.#near.add(name, type, rcode, hasName, this.#touch(), times);
  }

  #addOutside(type: number, rcode: number, hasName: boolean, times: number): void {
    this.#admit();
    this.#outside ??= new FailurePart(LIMITS.failureBytes.outside, false);
    this.#outside.add(name, type, rcode, hasName, this.#touch(), times);
  }

  #admit(): void {
    if (!this.hasEntries) this.#parts.onFirst(this);
    this.hasEntries = true;
  }

  /** Whether too many new names of the outside world come to record this one. */
  #isFlood(): boolean {
    if (this.#outside?.hasRoomFor(name) !== false) return false;
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
