/**
 * AnsweredBy: who answers the plain queries for local names: the process, or a program in the kernel that repeats what
 * the process has answered. The process answers everything else, and everything where the kernel cannot.
 */
type AnsweredBy = "process" | "kernel";

/** What a container's label may say: as set for all, or the process. */
export const ANSWERS_CHOICES = ["auto", "process"] as const;

export interface AnsweredByReport {
  readonly by: AnsweredBy;
  /** Why it is the process, although the kernel may answer. */
  readonly reason?: string;
  /** What to do about it, where one thing helps. */
  readonly remedy?: string;
  /** It is so for every such container, or as its label says. */
  readonly isMeant?: true;
  /** The kernel has not been tried there yet, and will be. */
  readonly isPending?: true;
}
