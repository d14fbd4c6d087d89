/**
 * Policies: which containers have one, what it has refused, what would become of a name, and what an operator allows for a while, as
 * returned by the routes below `/v1/policies`.
 */

type PolicyMode = "audit" | "learn" | "enforce";

/** Whether a container without dns11 is still confined at this moment, and why. */
export interface ClosedMoment {
  readonly isClosed: boolean;
  readonly because: string;
}

export interface PolicyContainer {
  readonly container: string;
  readonly containerId: string;
  readonly project: string | null;
  readonly service: string | null;
  /** The stricter one decides; usually there is one. */
  readonly policies: readonly {
    readonly name: string;
    readonly mode: PolicyMode;
    /** The scope or the label by which it is chosen. */
    readonly by: string;
    /** File and line of its declaration. */
    readonly where: string;
  }[];
  /** The stricter one. */
  readonly mode: PolicyMode;
  /** Why dns11 does not serve it, so that its policy filters no names; null if it does. */
  readonly notServed: string | null;
  /** Queries since dns11 began. */
  readonly refused: number;
  /** Those that `audit` or `learn` let pass, and `enforce` would have refused. */
  readonly wouldRefuse: number;
  /** How the kernel holds its connections; null where only names are filtered. */
  readonly addresses: {
    /** `hindered`: it cannot be held, so it resolves nothing. `failed`: the kernel did not take its rules; dns11 tries again. */
    readonly state: "pending" | "enforced" | "hindered" | "failed";
    readonly reason: string | null;
    /** Addresses that are open now. */
    readonly open: number;
    /** Where packets were refused in the last day: at most a hundred, as in 192.0.2.1:443/tcp. */
    readonly refused: readonly string[];
  } | null;
  /** The last names of these; none where names are hidden. */
  readonly names: readonly string[];
  /** From the start of the machine until dns11 runs. */
  readonly boot: ClosedMoment;
  /** From its start until dns11 has attached to it. */
  readonly birth: ClosedMoment;
  /** While dns11 serves it. */
  readonly life: ClosedMoment;
  /** When dns11 has ended. */
  readonly death: ClosedMoment;
  /** What an operator allows for now. */
  readonly grants: readonly string[];
  /** For the operator to see to. */
  readonly problems: readonly string[];
}

export interface PoliciesReport {
  readonly policies: readonly {
    readonly name: string;
    readonly mode: PolicyMode;
    readonly where: string;
    /** What it is for, as in the settings. */
    readonly for: readonly string[];
    /** Numbers of rules. */
    readonly allow: number;
    readonly deny: number;
  }[];
  /** Those with a policy. */
  readonly containers: readonly PolicyContainer[];
  /** Where packets of containers that have ended were refused, as in `refused` above; of the last 64 with any. */
  readonly ended: readonly { readonly containerId: string; readonly refused: readonly string[] }[];
  /** The ids of networks whose containers are held from their first instruction. */
  readonly closedNetworks: readonly string[];
}

export interface PolicyCheckRequest {
  /** A name or an address, with a port if it matters. */
  readonly name: string;
  readonly container: string;
  /** A record type; A without one. */
  readonly type?: string;
}

type PolicyVerdict = "allowed" | "refused" | "would-refuse" | "no-policy";

export interface PolicyCheck {
  readonly container: string;
  readonly name: string;
  readonly port: number | null;
  readonly type: string;
  readonly verdict: PolicyVerdict;
  /** The rule, or what takes its place, with file and line. */
  readonly because: string;
  /** What is to be known beside the verdict. */
  readonly notes: readonly string[];
  /** The command that would allow it; null if it is allowed, or no command does. */
  readonly fix: string | null;
}

export interface PolicyAllowRequest {
  readonly container: string;
  /** A name, or a pattern. */
  readonly name: string;
  /** At most a day. */
  readonly forMs: number;
}

export interface PolicyAllowed {
  readonly container: string;
  readonly name: string;
  readonly until: string;
  /** It is the container whose namespace this one uses. */
  readonly sharedWith?: string;
}

export interface PolicyRefusal {
  /** Grows with each entry of the log. */
  readonly number: number;
  /** The first and the last time, and how often. */
  readonly time: string;
  readonly last: string;
  readonly count: number;
  readonly container: string;
  readonly containerId: string;
  readonly project: string | null;
  readonly service: string | null;
  /** null where names are hidden. */
  readonly name: string | null;
  readonly type: string;
  readonly verdict: "refused" | "would-refuse";
  readonly policy: string;
  readonly mode: PolicyMode;
  /** A word such as `denied`, `not-allowed` or `private`: see RefusalReason in `src/features/policy/judge/refusal.ts`. */
  readonly reason: string;
  /** The rule, or what takes its place, with file and line. */
  readonly because: string;
}

export interface PolicyLogReport {
  readonly refusals: readonly PolicyRefusal[];
}

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
