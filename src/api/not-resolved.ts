/** NotResolved: the error of the client for test suites when a name has not resolved in time. */
import type { Cause } from "./causes.ts";

export interface NotResolved extends Error {
  readonly code: string;
  /** The command that helps, if there is one. */
  readonly remedy: string | undefined;
  /** What dns11 knows, the most likely cause first; its sentence is also in the message. Empty if it knows nothing. */
  readonly causes: readonly Cause[];
}
