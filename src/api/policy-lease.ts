/** The lines of `POST /v1/policies`, a request that stays open: each replaces the policies of the lease, and its end ends them. */
export interface PolicyLeaseRequest {
  /** By their names, with the keys that a policy has in the settings file. A later line without them only changes `after`. */
  readonly policies?: Readonly<Record<string, object>>;
  /** What holds when the request has ended, for as long as containers that they are for run. Default: closed. */
  readonly after?: PolicyLeaseEnd;
}

/** `closed`: nothing is forwarded any more; `open`: it is as if there had been no lease. */
export type PolicyLeaseEnd = "closed" | "open";

export type PolicyLeaseReply =
  /** They are in force, under these names. */
  | {
      readonly line: number;
      readonly policies: readonly string[];
      /** Containers whose connections the kernel does not hold to a policy with `addresses: enforce`, each with the reason. */
      readonly notHeld?: readonly string[];
    }
  | { readonly line: number; readonly error: string; readonly code: string };
