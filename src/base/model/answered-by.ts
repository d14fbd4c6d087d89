/**
 * AnsweredBy: who answers the plain queries for local names: the process, or a program in the kernel that repeats what
 * the process has answered. The process answers everything else, and everything where the kernel cannot.
 */
export const ANSWERED_BY = ["process", "kernel"] as const;

export type AnsweredBy = (typeof ANSWERED_BY)[number];

export interface AnsweredByReport {
  readonly by: AnsweredBy;
  /** Why it is the process, although the kernel is set. */
  readonly reason?: string;
}
