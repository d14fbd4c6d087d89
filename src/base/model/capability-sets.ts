/**
 * CapabilitySets: the capability sets of threads, by the kernel's names.
 */
export interface CapabilitySets {
  /** How many threads have exactly these sets. */
  readonly threads: number;
  readonly effective: readonly string[];
  readonly permitted: readonly string[];
  readonly inheritable: readonly string[];
  readonly bounding: readonly string[];
  readonly ambient: readonly string[];
}
