/**
 * AnsweredBy: who answers the plain queries for local names: the process, or a program in the kernel that repeats what
 * the process has answered. The process answers everything else, and everything where the kernel cannot.
 */
type AnsweredBy = "process" | "kernel";

/** The values of a container's label: as set for all containers, or the process. */
export const ANSWERS_CHOICES = ["auto", "process"] as const;

export interface AnsweredByReport {
  readonly by: AnsweredBy;
  /** Why it is the process, although the kernel may answer. */
  readonly reason?: string;
  /** What to do about it, if there is one thing that helps. */
  readonly remedy?: string;
  /** The process answers by intention: for every container of this kind, or because of the label. */
  readonly isMeant?: true;
  /** The kernel's answers have not been tried there yet, and will be. */
  readonly isPending?: true;
}
