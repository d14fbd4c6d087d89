/**
 * DoctorLines: the doctor's result as a stream, line by line: each finding as it is made, then the problems that they come to.
 */
import type { Finding } from "../base/model/finding.ts";

/** Something that is wrong, in one or several containers. */
export interface DoctorProblem {
  readonly state: "problem" | "warning" | "unknown";
  /** The cause in one sentence. */
  readonly title: string;
  readonly why: readonly string[];
  /** What it affects: names of containers, or `Docker host`. */
  readonly subjects: readonly string[];
  readonly symptoms: readonly { readonly text: string; readonly subjects: readonly string[] }[];
  readonly fixNow: readonly string[];
  readonly fixForGood: readonly string[];
  /** Commands that apply those changes; missing if none is known. */
  readonly commandsForGood?: readonly string[];
  /** A cause without such fixes has these instead. */
  readonly remedies: readonly string[];
}

/** The last line has `problems`, or `error` if the doctor could not finish. */
export type DoctorLine =
  | { readonly subject: string; readonly finding: Finding }
  | { readonly problems: readonly DoctorProblem[] }
  | { readonly error: string; readonly code: string; readonly remedy?: string };
