/**
 * Enforcement: holds containers to policies that enforce addresses. For each it has the kernel do what the policies say now, and
 * an answer waits here until the kernel lets its container reach the addresses in it.
 *
 *   pending --(the kernel has it)--> enforced --(its policies or links change)--> pending, and what is open stays
 *      |  the kernel refuses                         a container that is gone, or has no such policy any more, is removed
 *      +--> failed, and tried again after a while
 *   hindered: no link of it can be judged on the host's side. It resolves nothing.
 */
import { isDeepStrictEqual } from "node:util";
import { reasonOf } from "../../../base/lib/fault.ts";
import type { QuestionName } from "../../../base/model/visible-names.ts";
import type { NamespacePolicy } from "../judge/namespace-policy.ts";
import { hindranceOf } from "../judge/refusal.ts";
import { type Policy, decidingAmong } from "../model/policy.ts";
import { shortId } from "../table/layout.ts";
import type { Opening, PolicyTable, RefusedAddress } from "../table/policy-table.ts";
import type { AddressBlock } from "../../../base/model/address.ts";
import { type PolicedContainer, type PolicedLink, isLinkLocal } from "../table/container-rules.ts";
import { fixedRules } from "./fixed-rules.ts";
import { OneAtATime } from "../../../base/lib/async.ts";

export type EnforcementState =
  | { readonly kind: "pending" | "enforced" }
  | { readonly kind: "hindered" | "failed"; readonly reason: string };

/** An answer with addresses that a container is about to get. */
interface Answer {
  readonly policy: NamespacePolicy;
  readonly addresses: readonly Uint8Array[];
  readonly names: readonly QuestionName[];
  readonly ttlSeconds: number;
}

type Table = Pick<PolicyTable, "apply" | "remove" | "open" | "refused" | "openCount" | "containers" | "removeLinksBut">;

export interface EnforcementParts {
  /** Opens the tables in the kernel, when the first policy needs them. `onLost`: they are there again, and empty. */
  readonly openTable: (onLost: () => void) => Promise<Table>;
  /** A container as it is now; undefined if no policy of it enforces addresses. */
  readonly containerOf: (id: string) => EnforcedContainer | undefined;
  readonly policyOf: (id: string) => NamespacePolicy | undefined;
  readonly onState: (id: string, state: EnforcementState) => void;
  readonly retryMs?: number;
  readonly waitMs?: number;
}

interface Entry {
  wanted: EnforcedContainer;
  state: EnforcementState;
  /** Answers that wait until it is not pending any more. */
  readonly waiting: Set<() => void>;
}

const RETRY_MS = 1_000;
/** Of so many containers that are gone it is known where packets were refused. */
const ENDED_MAX = 64;
/** What a client waits for its answer, at most: a container that takes longer to be known gets SERVFAIL. */
const WAIT_MS = 4_000;
/** An address stays open as long as its answer is used, up to this. */
const KEEP_MS_MAX = 86_400_000;

export class Enforcement {
  readonly #parts: EnforcementParts;
  readonly #entries = new Map<string, Entry>();
  #table: Promise<Table> | undefined;
  #opened: Table | undefined;
  #isClosed = false;
  /** Where packets of containers that are gone were refused; the last one last. */
  readonly #ended = new Map<string, readonly RefusedAddress[]>();

  constructor(parts: EnforcementParts) {
    this.#parts = parts;
  }

  stateOf(id: string): EnforcementState | undefined {
    return this.#entries.get(id)?.state;
  }

  openCount(id: string): number {
    return this.#opened?.openCount(id) ?? 0;
  }

  refused(id: string): RefusedAddress[] {
    return this.#opened?.refused(id) ?? [];
  }

  /** The same of containers that are gone, or have no such policy any more, by their ids. */
  get ended(): ReadonlyMap<string, readonly RefusedAddress[]> {
    return this.#ended;
  }

  /** A container may have changed: its policies, its links, or that it exists. */
  update(id: string): void {
    if (this.#isClosed) return;
    const wanted = this.#parts.containerOf(id);
    const entry = this.#entries.get(id);
    if (wanted === undefined) {
      if (entry !== undefined) this.#remove(id);
      return;
    }
    if (entry !== undefined && entry.state.kind !== "failed" && isDeepStrictEqual(entry.wanted, wanted)) return;
    const next: Entry = entry ?? { wanted, state: { kind: "pending" }, waiting: new Set() };
    // What was open for the run before closes.
    if (next.wanted.startedAt !== wanted.startedAt) this.#become(id, next, { kind: "pending" });
    next.wanted = wanted;
    this.#entries.set(id, next);
    void this.#install(id, next, wanted);
  }

  /** All that may be policed: others are removed. */
  updateAll(ids: Iterable<string>): void {
    const all = new Set(ids);
    for (const id of this.#entries.keys()) if (!all.has(id)) this.update(id);
    for (const id of all) this.update(id);
  }

  /**
   * Removes what an earlier process left for containers that are gone. All that are there are known by now. Returns false while rules of
   * links stay, because some links are not known yet.
   */
  async removeOthers(): Promise<boolean> {
    const table = await this.#openedTable();
    const known = new Set([...this.#entries.keys()].map(shortId));
    for (const id of [...table.containers]) if (!known.has(id)) await table.remove(id);
    const wanted = [...this.#entries.values()].map((entry) => entry.wanted);
    // Rules of a link that is not known yet stay until it is.
    if (!wanted.every(({ isComplete }) => isComplete)) return false;
    await table.removeLinksBut(new Set(wanted.flatMap((each) => policedBy(each).links.map(({ index }) => index))));
    return true;
  }

  /** The namespace has these policies from now on: they say at once that nothing resolves there. */
  assigned(policy: NamespacePolicy): void {
    if (!enforcesAddresses(policy)) return;
    this.update(policy.containerId);
    this.#hinder(policy.containerId, policy);
  }

  /**
   * Whether the addresses of an answer are open; calls back later if that is not known yet. Nobody gets an answer with others,
   * unless addresses are only audited: then nothing is closed.
   */
  open(answer: Answer, onOpen: (isOpen: boolean) => void): boolean {
    if (!enforcesAddresses(answer.policy)) return true;
    const id = answer.policy.containerId;
    if (!this.#entries.has(id)) this.update(id);
    const entry = this.#entries.get(id);
    if (entry?.state.kind === "enforced" && this.#opened !== undefined) {
      const opened = this.#open(this.#opened, answer);
      if (opened === undefined) return true;
      opened.then(
        () => onOpen(true),
        () => onOpen(!isHeld(answer.policy)),
      );
      return false;
    }
    if (entry?.state.kind === "pending") this.#wait(entry, () => this.#openLater(id, answer, onOpen));
    else setImmediate(onOpen, !isHeld(answer.policy));
    return false;
  }

  close(): void {
    this.#isClosed = true;
    const entries = [...this.#entries.values()];
    this.#entries.clear();
    for (const { waiting } of entries) for (const end of [...waiting]) end();
  }

  #wait(entry: Entry, act: () => void): void {
    const end = (): void => {
      clearTimeout(timer);
      if (entry.waiting.delete(end)) act();
    };
    const timer = setTimeout(end, this.#parts.waitMs ?? WAIT_MS);
    entry.waiting.add(end);
  }

  /** What was judged by policies that are not in force any more opens nothing. */
  #openLater(id: string, answer: Answer, onOpen: (isOpen: boolean) => void): void {
    const policy = this.#parts.policyOf(id);
    if (policy !== answer.policy) return onOpen(!isHeld(answer.policy) && policy?.isEnforcing !== true);
    const isEnforced = this.#entries.get(id)?.state.kind === "enforced";
    if (isEnforced && this.open(answer, onOpen)) onOpen(true);
    else if (!isEnforced) onOpen(!isHeld(answer.policy));
  }

  /** What an operator allows for a while is open for no longer, unless rules allow it, too. */
  #open(table: Table, { policy, addresses, names, ttlSeconds }: Answer): Promise<unknown> | undefined {
    const ports = policy.portsOf(names);
    const ruled: Opening[] = addresses.flatMap((address) =>
      ports === "all" ? [{ address }] : ports.map((port) => ({ address, ...port })),
    );
    const lifeMs = Math.min(KEEP_MS_MAX, Math.max(policy.keepMs, ttlSeconds * 1_000));
    const grantedMs = ports === "all" ? undefined : policy.grantedMs(names);
    const opened = [
      ruled.length > 0 && table.open(policy.containerId, ruled, lifeMs),
      grantedMs !== undefined &&
        table.open(
          policy.containerId,
          addresses.map((address) => ({ address })),
          // The kernel takes whole milliseconds.
          Math.max(1, Math.ceil(grantedMs)),
        ),
    ].filter((each) => each instanceof Promise);
    return opened.length === 0 ? undefined : Promise.all(opened);
  }

  async #install(id: string, entry: Entry, wanted: EnforcedContainer): Promise<void> {
    const { hindrance } = wanted;
    if (hindrance !== undefined) {
      this.#become(id, entry, { kind: "hindered", reason: hindrance });
      return;
    }
    if (entry.state.kind !== "enforced") this.#become(id, entry, { kind: "pending" });
    try {
      const table = await this.#openedTable();
      if (this.#entries.get(id) !== entry || entry.wanted !== wanted) return;
      const { container, links } = policedBy(wanted);
      await table.apply(container, links);
      // A container that has come back meanwhile has an entry of its own, which follows.
      if (!this.#entries.has(id)) return await table.remove(id);
      if (this.#entries.get(id) !== entry) return;
      if (entry.wanted === wanted) this.#become(id, entry, { kind: wanted.isComplete ? "enforced" : "pending" });
    } catch (error) {
      if (this.#entries.get(id) !== entry || entry.wanted !== wanted) return;
      this.#become(id, entry, { kind: "failed", reason: reasonOf(error) });
      setTimeout(() => this.update(id), this.#parts.retryMs ?? RETRY_MS).unref();
    }
  }

  /** Answers wait until the kernel has all of it again. */
  #applyAgain(): void {
    for (const [id, entry] of this.#isClosed ? [] : this.#entries) {
      if (entry.state.kind !== "hindered") this.#become(id, entry, { kind: "pending" });
      void this.#install(id, entry, entry.wanted);
    }
  }

  async #openedTable(): Promise<Table> {
    this.#table ??= this.#parts.openTable(() => this.#applyAgain());
    try {
      return (this.#opened = await this.#table);
    } catch (error) {
      this.#table = undefined;
      throw error;
    }
  }

  #remove(id: string): void {
    const entry = this.#entries.get(id);
    this.#entries.delete(id);
    for (const end of [...(entry?.waiting ?? [])]) end();
    this.#keepRefused(id);
    // Where that fails, the next run removes it.
    this.#opened?.remove(id).catch(() => undefined);
  }

  #keepRefused(id: string): void {
    let refused;
    try {
      refused = this.refused(id);
    } catch {
      // Another program may have removed the tables.
      return;
    }
    if (refused.length > 0) this.#ended.set(id, refused);
    for (const [oldest] of this.#ended) if (this.#ended.size > ENDED_MAX) this.#ended.delete(oldest);
  }

  #become(id: string, entry: Entry, state: EnforcementState): void {
    const isSame = isDeepStrictEqual(entry.state, state);
    entry.state = state;
    if (state.kind !== "pending") for (const end of [...entry.waiting]) end();
    const policy = this.#parts.policyOf(id);
    if (policy !== undefined) this.#hinder(id, policy);
    if (!isSame || state.kind === "hindered") this.#parts.onState(id, state);
  }

  #hinder(id: string, policy: NamespacePolicy): void {
    const state = this.stateOf(id);
    const first = policy.policies.find(isHolding);
    policy.hindrance = state?.kind === "hindered" && first !== undefined ? hindranceOf(first, state.reason) : undefined;
  }
}

function enforcesAddresses({ policies }: NamespacePolicy): boolean {
  return policies.some(({ addresses }) => addresses === "enforce");
}

/** Whether connections are refused, not only recorded. */
function isHeld({ policies }: NamespacePolicy): boolean {
  return policies.some(isHolding);
}

/** Whether a policy has the kernel refuse connections. */
export function isHolding({ addresses, mode }: Pick<Policy, "addresses" | "mode">): boolean {
  return addresses === "enforce" && mode === "enforce";
}

export interface EnforcedLink {
  readonly index: number;
  readonly name: string;
  readonly mac: Uint8Array;
  readonly addresses: readonly Uint8Array[];
  readonly bridgeMac: Uint8Array | undefined;
}

/** A container whose policies enforce addresses, as the kernel needs to know it. */
export interface EnforcedContainer {
  readonly id: string;
  readonly startedAt: string;
  /** Those that enforce addresses: at least one. */
  readonly policies: readonly Policy[];
  readonly links: readonly EnforcedLink[];
  readonly subnets: readonly AddressBlock[];
  /** Otherwise some of its links are not known yet. */
  readonly isComplete: boolean;
  /** Why the kernel cannot hold it to them, in words; undefined if it can. */
  readonly hindrance: string | undefined;
}

/** The strictest of its policies applies. */
export function policedBy({ id, startedAt, policies, links, subnets, isComplete }: EnforcedContainer): {
  readonly container: PolicedContainer;
  readonly links: readonly PolicedLink[];
} {
  const deciding = decidingAmong(policies, (policy) => policy);
  const isEnforced = deciding.some(({ mode }) => mode === "enforce");
  const reachesPeers = !isEnforced || deciding.every(({ peers }) => peers === "allow");
  const own = new Map(
    links
      .flatMap(({ addresses }) => addresses)
      .filter((address) => !isLinkLocal(address))
      .map((address) => [Buffer.from(address).toString("latin1"), address]),
  );
  return {
    container: {
      ...{ id, startedAt },
      addresses: [...own.values()],
      isComplete,
      rules: fixedRules(deciding),
      subnets,
      reachesPeers,
      reachesHost: deciding.every(({ host }) => host === "allow"),
      isEnforced,
    },
    links: links.map(({ bridgeMac, ...link }) => ({ ...link, reachesPeers, ...(bridgeMac && { bridgeMac }) })),
  };
}

interface HeldUntilKnownParts {
  /** Whether a policy holds connections: otherwise nobody is held. */
  readonly isHolding: () => boolean;
  /** Has the kernel drop what these addresses send, and no others but those that an earlier process left, where they are kept. */
  readonly hold: (addresses: readonly Uint8Array[], keepsOthers: boolean) => Promise<void>;
  /** What has become of the policy of a container; undefined if it has none. */
  readonly stateOf: (id: string) => EnforcementState | undefined;
  readonly onHeld: (id: string) => void;
  readonly onError: (error: unknown) => void;
}

interface Late {
  readonly addresses: readonly Uint8Array[];
  isKnown: boolean;
  /** And it has the policies that it is to have. */
  isAssigned: boolean;
  isReported: boolean;
}

/**
 * Containers that might have an enforced policy, of which nothing is known but their addresses. Nothing that they
 * send passes until they are known, and until the kernel has the policy that they turn out to have.
 */
export class HeldUntilKnown {
  readonly #parts: HeldUntilKnownParts;
  readonly #late = new Map<string, Late>();
  readonly #changes: OneAtATime;
  /** What the kernel has by this process, as text. */
  #held = "[]";
  #keepsOthers = true;

  constructor(parts: HeldUntilKnownParts) {
    this.#parts = parts;
    this.#changes = new OneAtATime(async () => await this.#change(), parts.onError);
  }

  late(id: string, addresses: readonly Uint8Array[]): void {
    const isReported = this.#late.get(id)?.isReported === true;
    this.#late.set(id, { addresses, isKnown: false, isAssigned: false, isReported });
    this.refresh();
  }

  /** Its policies are assigned a moment later, and in force after that. */
  known(id: string): void {
    const found = this.#late.get(id);
    if (found !== undefined) found.isKnown = true;
  }

  /** All that are known have their policies. */
  assigned(): void {
    for (const late of this.#late.values()) late.isAssigned = late.isKnown;
    this.refresh();
  }

  /** All containers are known, or late by now: so are those that an earlier process held. */
  releaseOthers(): void {
    this.#keepsOthers = false;
    this.#held = "";
    this.refresh();
  }

  /** What has become of policies, or whether any holds, has changed. */
  refresh(): void {
    this.#changes.request();
  }

  async #change(): Promise<void> {
    const { hold, stateOf, onHeld } = this.#parts;
    for (const [id, { isAssigned }] of this.#late) if (isAssigned && isReleased(stateOf(id))) this.#late.delete(id);
    const all = this.#parts.isHolding() ? [...this.#late] : [];
    const addresses = all.flatMap(([, late]) => late.addresses);
    const text = JSON.stringify(addresses.map((each) => Buffer.from(each).toString("hex")).toSorted());
    if (text === this.#held) return;
    await hold(addresses, this.#keepsOthers);
    this.#held = text;
    for (const [id, late] of all) {
      if (!late.isReported) onHeld(id);
      late.isReported = true;
    }
  }
}

/** Its own rules hold it, or it has no policy that does. */
function isReleased(state: EnforcementState | undefined): boolean {
  return state === undefined || state.kind === "enforced" || state.kind === "hindered";
}
