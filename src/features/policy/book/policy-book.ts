/**
 * PolicyBook: all policies in force, and the namespaces that have one. A container that starts has its policy before its first query
 * is read, and a change is in force for the next query of every container: the kernel's answers for it end in the same step.
 */
import { isDeepStrictEqual } from "node:util";

import { Fault } from "../../../base/lib/fault.ts";
import { readPattern } from "../../../base/model/name-pattern.ts";
import { CompiledPolicy, type IsHosts } from "../judge/compiled-policy.ts";
import type { OpenAddresses } from "../judge/given-answer.ts";
import { type Grant, NamespacePolicy, type PolicyObserver } from "../judge/namespace-policy.ts";
import type { Refusal } from "../judge/refusal.ts";
import { POLICY_LABEL, type Policy, type PolicyMode } from "../model/policy.ts";
import { type Assignment, assignmentOf, isSameAssignment, undefinedPolicy, type PolicySubject } from "./assignment.ts";
import type { RefusedAddress } from "../table/policy-table.ts";
import { RefusalLog } from "./refusal-log.ts";
import { POLICY_LIMITS } from "../model/limits.ts";

interface FormerPolicy {
  readonly policy: NamespacePolicy;
  readonly untilMs: number;
}

/** What the book needs of a client. */
export interface PolicedClient {
  setPolicy(policy: NamespacePolicy | undefined): void;
  /** What it was answered is not given again without the process. */
  forgetAnswers(): void;
  onClose(act: () => void): void;
}

interface PolicyCounts {
  refused: number;
  /** What policies that are not enforced would have refused. */
  wouldRefuse: number;
}

/** How often a policy has done so. */
interface PolicyReading {
  readonly policy: string;
  readonly mode: PolicyMode;
  readonly verdict: "refused" | "would_refuse";
  readonly count: number;
}

/** Those of a container are of its namespace. */
interface Namespace {
  assignment: Assignment;
  policy: NamespacePolicy | undefined;
  readonly clients: Set<PolicedClient>;
}

/** How the kernel holds the connections of a namespace to its policies. */
export interface Held {
  readonly state: "pending" | "enforced" | "hindered" | "failed";
  readonly reason: string | undefined;
  /** It is on networks only that are closed before a container on them is known. */
  readonly isClosedAtBirth: boolean;
  /** What Docker's own resolver forwards for it leaves from the container, where its packets are judged. */
  readonly isDockerHeld: boolean;
  /** Why its networks are not closed before Docker starts, as a clause; undefined if they are. */
  readonly bootProblem: string | undefined;
  /** Addresses that are open now, each with a port or with all. */
  readonly open: number;
  /** Where packets of the last day were refused. */
  readonly refused: () => readonly { readonly address: Uint8Array; readonly protocol: number; readonly port: number }[];
}

interface BookParts {
  /** A refusal that followers of the log see. */
  readonly onLogged: (containerId: string, refusal: Refusal, name: string | null, type: number) => void;
  /** Otherwise names are nobody's business. */
  readonly showsNames: () => boolean;
  /** An operator allows a container a name for a while. */
  readonly onGrant: (containerId: string, text: string) => void;
  readonly now?: () => number;
}

/** Operators' grants, in all and for one container. */
const GRANTS_MAX = 1_000;
const GRANTS_EACH = 100;
/** Names of undefined policies that labels have chosen. */
const UNDEFINED_MAX = 100;
const UNDEFINED = "undefined";
const NO_ASSIGNMENT: Assignment = { policies: [], by: [], problems: [] };

export class PolicyBook {
  readonly #parts: BookParts;
  readonly #now: () => number;
  readonly #observer: PolicyObserver;
  #compiled: readonly CompiledPolicy[] = [];
  #declared: readonly Policy[] = [];
  #leased: readonly Policy[] = [];
  readonly #undefined = new Map<string, CompiledPolicy>();
  readonly #namespaces = new Map<string, Namespace>();
  readonly #former = new FormerPolicies();
  readonly #containerCounts = new Map<string, PolicyCounts>();
  readonly #grants = new Map<string, Grant[]>();
  #isRefreshing = false;
  /** All containers; of one namespace only, where its owner is given. */
  subjects: (ownerId?: string) => Iterable<PolicySubject> = () => [];
  /** A namespace that is served has another policy: called before its next query is judged. */
  onAssigned: ((policy: NamespacePolicy) => void) | undefined;
  /** What opens the addresses of an answer; undefined while only names are filtered. */
  openAddresses: OpenAddresses | undefined;
  /** How the kernel holds the connections of a namespace; undefined if it does not. */
  heldOf: (ownerId: string) => Held | undefined = () => undefined;
  /** Where packets of containers that are gone were refused, by their ids. */
  endedRefusals: () => ReadonlyMap<string, readonly RefusedAddress[]> = () => new Map();
  /** The ids of networks on which the kernel holds containers that are not known yet. */
  closedNetworks: () => readonly string[] = () => [];
  /** Whether an address is one of the machine itself. */
  isHosts: IsHosts = () => false;
  /** Whether the keeper refuses queries when dns11 has ended. */
  isKept: () => boolean = () => false;
  /** Policies or containers have changed. */
  onRefreshed: (() => void) | undefined;
  readonly log = new RefusalLog();
  /** By the name of the policy; of those that are not defined together. */
  readonly counts = new Map<string, PolicyCounts>();

  constructor(parts: BookParts) {
    this.#parts = parts;
    this.#now = parts.now ?? ((): number => performance.now());
    this.#observer = {
      now: this.#now,
      onRefusal: (...refused) => this.#note(...refused),
      isHosts: (address) => this.isHosts(address),
    };
  }

  get policies(): readonly Policy[] {
    return this.#compiled.map(({ policy }) => policy);
  }

  /** The counts of all policies that are defined, and of the others together. */
  get readings(): readonly PolicyReading[] {
    const of = (policy: string, mode: PolicyMode): PolicyReading[] => {
      const { refused, wouldRefuse } = this.counts.get(policy) ?? { refused: 0, wouldRefuse: 0 };
      return [
        { policy, mode, verdict: "refused", count: refused },
        { policy, mode, verdict: "would_refuse", count: wouldRefuse },
      ];
    };
    return [
      ...this.policies.flatMap(({ name, mode }) => of(name, mode)),
      ...(this.counts.has(UNDEFINED) ? of(UNDEFINED, "enforce") : []),
    ];
  }

  /** Replaces all policies of the settings. One that is the same as before keeps what it knows of its containers. */
  set(policies: readonly Policy[]): void {
    this.#declared = policies;
    this.#compile();
  }

  /** The same of those that clients of the control socket have made. */
  setLeased(policies: readonly Policy[]): void {
    this.#leased = policies;
    this.#compile();
  }

  #compile(): void {
    const policies = [...this.#declared, ...this.#leased];
    const before = this.#compiled;
    this.#compiled = policies.map(
      (policy) => before.find((each) => isDeepStrictEqual(each.policy, policy)) ?? new CompiledPolicy(policy),
    );
    for (const name of this.counts.keys())
      if (name !== UNDEFINED && !policies.some((each) => each.name === name)) this.counts.delete(name);
    this.refresh();
  }

  /** A container is served from now on: before its first query is read. */
  open(client: PolicedClient, containerId: string): void {
    const known = this.#namespaces.get(containerId);
    const namespace = known ?? { assignment: NO_ASSIGNMENT, policy: undefined, clients: new Set() };
    this.#namespaces.set(containerId, namespace);
    namespace.clients.add(client);
    client.onClose(() => {
      namespace.clients.delete(client);
      if (namespace.clients.size > 0 || this.#namespaces.get(containerId) !== namespace) return;
      this.#namespaces.delete(containerId);
      if (namespace.policy !== undefined) this.#former.add(containerId, namespace.policy, this.#now());
    });
    // The container may be newer than the last look.
    this.#assign(containerId, namespace, this.assignmentOf(containerId));
    client.setPolicy(namespace.policy);
  }

  /** The policies of a namespace, whether it is served or not. */
  assignmentOf(ownerId: string): Assignment {
    return this.#assignmentOf(this.subjects(ownerId));
  }

  /** Whether one of them is enforced. */
  isEnforcedFor(ownerId: string): boolean {
    return this.assignmentOf(ownerId).policies.some(({ policy }) => policy.mode === "enforce");
  }

  /** The same for a namespace that is served, which costs nothing. */
  isEnforcedIn(ownerId: string): boolean {
    return this.policyOf(ownerId)?.policies.some(({ mode }) => mode === "enforce") === true;
  }

  /** The policies of a namespace that is served. */
  policyOf(ownerId: string): NamespacePolicy | undefined {
    return this.#namespaces.get(ownerId)?.policy;
  }

  countsOf(ownerId: string): PolicyCounts {
    return this.#containerCounts.get(ownerId) ?? { refused: 0, wouldRefuse: 0 };
  }

  /** A judge for a namespace that is not served, to ask what would become of a name. */
  judgeOf(ownerId: string): NamespacePolicy | undefined {
    const known = this.policyOf(ownerId);
    if (known !== undefined) return known;
    const { policies } = this.assignmentOf(ownerId);
    return policies.length === 0 ? undefined : new NamespacePolicy(ownerId, policies, this.#observer);
  }

  /** Containers, their networks or their labels have changed: looks at them at the end of this turn. */
  containersChanged(): void {
    if (this.#isRefreshing) return;
    this.#isRefreshing = true;
    setImmediate(() => {
      this.#isRefreshing = false;
      this.refresh();
    });
  }

  refresh(): void {
    if (this.#hasSome()) this.#assignAll();
    this.onRefreshed?.();
  }

  #assignAll(): void {
    const groups = this.#groups();
    for (const [ownerId, namespace] of this.#namespaces) {
      const group = groups.get(ownerId);
      // One that is not listed any more has what it had until it is closed.
      if (group !== undefined) this.#assign(ownerId, namespace, this.#assignmentOf(group));
    }
    for (const id of this.#containerCounts.keys()) if (!groups.has(id)) this.#containerCounts.delete(id);
    // A container may be about to start again, and what it was allowed lasts for its time.
    for (const id of this.#grants.keys())
      if (!groups.has(id) && this.grantsOf(id).length === 0) this.#grants.delete(id);
  }

  /** The policies of every namespace that has any, by the id of its owner. */
  assignments(): Map<string, Assignment> {
    const found = new Map<string, Assignment>();
    for (const [ownerId, group] of this.#groups()) {
      const assignment = this.#assignmentOf(group);
      if (assignment.policies.length > 0) found.set(ownerId, assignment);
    }
    return found;
  }

  /** Containers by the namespace that they share. */
  #groups(): Map<string, PolicySubject[]> {
    const groups = new Map<string, PolicySubject[]>();
    for (const subject of this.subjects()) {
      const group = groups.get(subject.ownerId);
      if (group === undefined) groups.set(subject.ownerId, [subject]);
      else group.push(subject);
    }
    return groups;
  }

  /** Without any policy, a change of containers costs next to nothing. */
  #hasSome(): boolean {
    if (this.#compiled.length > 0) return true;
    for (const { policy } of this.#namespaces.values()) if (policy !== undefined) return true;
    for (const subject of this.subjects()) if (subject.label(POLICY_LABEL) !== undefined) return true;
    return false;
  }

  /** What operators allow a container for now. */
  grantsOf(ownerId: string): readonly Grant[] {
    const nowMs = this.#now();
    return (this.#grants.get(ownerId) ?? []).filter(({ untilMs }) => nowMs < untilMs);
  }

  /** Allows a name in a namespace for a while. Another grant for the same name replaces the earlier one. */
  grant(ownerId: string, name: string, forMs: number, by: string): Grant {
    const pattern = readPattern(name);
    const others = this.grantsOf(ownerId).filter((each) => each.pattern.text !== pattern.text);
    const all = [...this.#grants.keys()].reduce((sum, id) => sum + this.grantsOf(id).length, 0);
    if (others.length >= GRANTS_EACH || all >= GRANTS_MAX) {
      throw new Fault("TOO_MANY_RULES", `There are ${others.length >= GRANTS_EACH ? others.length : all} such grants`, {
        remedy: "Add the names to the policy.",
      });
    }
    const until = new Date(Date.now() + forMs).toISOString();
    const grant = { pattern, untilMs: this.#now() + forMs, text: `${pattern.text} is allowed until ${until} by ${by}` };
    this.#grants.set(ownerId, [...others, grant]);
    this.#namespaces.get(ownerId)?.policy?.setGrants(this.grantsOf(ownerId));
    this.#parts.onGrant(ownerId, grant.text);
    return grant;
  }

  #assignmentOf(subjects: Iterable<PolicySubject>): Assignment {
    return assignmentOf(subjects, this.#compiled, (name) => this.#undefinedOf(name));
  }

  #assign(ownerId: string, namespace: Namespace, next: Assignment): void {
    if (isSameAssignment(next, namespace.assignment)) return;
    const before = namespace.policy ?? this.#former.take(ownerId, this.#now());
    const { policies } = next;
    const isSame = hasSame(policies, namespace.assignment.policies);
    namespace.assignment = next;
    if (isSame) return;
    namespace.policy =
      policies.length === 0
        ? undefined
        : new NamespacePolicy(ownerId, policies, this.#observer, before, this.#compiled);
    namespace.policy?.setGrants(this.grantsOf(ownerId));
    if (namespace.policy !== undefined) this.onAssigned?.(namespace.policy);
    for (const client of namespace.clients) {
      client.setPolicy(namespace.policy);
      // The very next query is judged, also one that the kernel has answered so far.
      client.forgetAnswers();
    }
  }

  #undefinedOf(name: string): CompiledPolicy {
    const known = this.#undefined.get(name);
    if (known !== undefined) return known;
    if (this.#undefined.size >= UNDEFINED_MAX) this.#undefined.clear();
    const policy = undefinedPolicy(name);
    this.#undefined.set(name, policy);
    return policy;
  }

  #note(containerId: string, refusal: Refusal, name: string, type: number): void {
    const isDefined = refusal.reason !== "undefined-policy";
    const key = isDefined ? refusal.policy.name : UNDEFINED;
    for (const counts of [countsIn(this.counts, key), countsIn(this.#containerCounts, containerId)])
      counts[refusal.isEnforced ? "refused" : "wouldRefuse"]++;
    const shown = this.#parts.showsNames() ? name : null;
    const isNew = this.log.note(containerId, refusal, shown, type, Date.now());
    if (isNew) this.#parts.onLogged(containerId, refusal, shown, type);
  }
}

function hasSame(some: readonly CompiledPolicy[], others: readonly CompiledPolicy[]): boolean {
  return some.length === others.length && some.every((each, index) => each === others[index]);
}

function countsIn(all: Map<string, PolicyCounts>, key: string): PolicyCounts {
  const known = all.get(key);
  if (known !== undefined) return known;
  const counts = { refused: 0, wouldRefuse: 0 };
  all.set(key, counts);
  return counts;
}

/**
 * The policies of containers that have ended, with what they have asked lately. A program that ends so that its
 * container starts again would otherwise have its questions of a minute again each time.
 */
class FormerPolicies {
  /** The one that ended first comes first. */
  readonly #former = new Map<string, FormerPolicy>();

  add(containerId: string, policy: NamespacePolicy, nowMs: number): void {
    this.#former.delete(containerId);
    this.#former.set(containerId, { policy, untilMs: nowMs + POLICY_LIMITS.formerMs });
    for (const [id, { untilMs }] of this.#former) {
      if (this.#former.size <= POLICY_LIMITS.former && nowMs < untilMs) return;
      this.#former.delete(id);
    }
  }

  /** The policy of a container that starts again. */
  take(containerId: string, nowMs: number): NamespacePolicy | undefined {
    const found = this.#former.get(containerId);
    this.#former.delete(containerId);
    return found !== undefined && nowMs < found.untilMs ? found.policy : undefined;
  }
}
