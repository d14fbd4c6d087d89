/**
 * Report: the result of the doctor: the findings about the host and each container, and the problems that they come to.
 */
import type { Finding, DoctorProblem } from "../base/model/finding.ts";
import type { Repair } from "./fix.ts";

/** The subject of findings about the host and its engine. */
export const HOST = "Docker host";

export interface Report extends Repair {
  /** A container's name, or HOST. */
  readonly subject: string;
  readonly findings: readonly Finding[];
}

export interface Diagnosis {
  readonly machine: Report;
  readonly containers: readonly Report[];
  /** The findings by their cause. */
  readonly problems: readonly DoctorProblem[];
}
