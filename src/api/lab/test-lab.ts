/**
 * TestLab: what a test suite can do with a lab, as types alone: a suite needs no types of Node to compile.
 */
/// <reference lib="esnext.disposable" preserve="true" />
import type { RecordedQuery, RuleUseReport } from "../lease.ts";
import type { QueryReport } from "../queries.ts";
import type { FaultOptions, LabAnswer, RuleLimits } from "./rule-options.ts";
import type { Missing, TapeContent } from "./tape.ts";

/** A rule that is in force. */
export interface LabRule {
  readonly id: number;
  /** How many containers that are served it is for at present; later ones are not counted. */
  readonly containers: number;
  remove(): Promise<void>;
}

export interface AskedOptions {
  /** The container, or Compose service, that asks; by default, any of the lab's. */
  readonly by?: string;
  /** Default: any. */
  readonly type?: string;
  /** How long to wait, in milliseconds. Default: 2,000. */
  readonly within?: number;
}

/** A recording. */
export interface LabTape {
  /** What has been asked so far. */
  readonly queries: readonly RecordedQuery[];
  /** How many queries came too fast to be recorded. */
  readonly missed: number;
  /** Writes what has been recorded as a file that `replay` reads. */
  save(path: string): Promise<void>;
  /** Ends the recording. */
  stop(): Promise<void>;
}

export interface LabReport {
  readonly rules: readonly RuleUseReport[];
  /** What rules did nothing, as sentences. */
  readonly unused: readonly string[];
}

/** The faults, answers and recordings of one test. They are in force when a call returns, and gone when the lab is closed. */
export interface Lab extends AsyncDisposable {
  /** Resolves when the lab has ended, also because dns11 was stopped or replaced. */
  readonly ended: Promise<void>;
  /** Has queries for a name, or a pattern of names, fail. */
  fault(name: string, fault: FaultOptions): Promise<LabRule>;
  /** Has queries for a name answered so. */
  answer(name: string, answer: LabAnswer, limits?: RuleLimits): Promise<LabRule>;
  /** Two containers, or more, get different answers: a service or container, and its answer. */
  split(name: string, answers: Readonly<Record<string, LabAnswer>>): Promise<readonly LabRule[]>;
  /** Nothing but these names resolves. Other names fail at once, and `report` lists them. */
  only(names: readonly string[], options?: Pick<RuleLimits, "in">): Promise<LabRule>;
  /**
   * Waits until a name is queried, and returns the query. Queries since the lab was opened count. Otherwise it fails with the
   * code NOT_ASKED, and says what was asked instead.
   */
  asked(name: string, options?: AskedOptions): Promise<QueryReport>;
  /** Records what the containers ask and are answered from now on. */
  record(options?: Pick<RuleLimits, "in">): Promise<LabTape>;
  /** Answers from a tape alone. Names that were live when it was recorded are answered as always. */
  replay(tape: string | TapeContent, options?: { readonly missing?: Missing }): Promise<readonly LabRule[]>;
  /** What the rules have done so far. */
  report(): Promise<LabReport>;
  /** Takes back all rules. */
  close(): Promise<void>;
}
