/**
 * CapabilitySets: what threads of a process may do, by the kernel's own names for the sets.
 */
export interface CapabilitySets {
  /** How many threads have exactly these. */
  readonly threads: number;
  readonly effective: readonly string[];
  readonly permitted: readonly string[];
  readonly inheritable: readonly string[];
  readonly bounding: readonly string[];
  readonly ambient: readonly string[];
}
