/**
 * RunKeeper: the keeper of a run, where it has one, and what a previous run left to this one. Answering queries never
 * depends on it. Without a keeper the kernel removes the rules of a killed process, one container after the other.
 */

import { keeperPath } from "../api/state-paths.ts";
import type { RunSettings } from "../config/settings.ts";
import { DeferredClose, closeDescriptors, copyOf, removeTables } from "../keeper/held-descriptors.ts";
import { KeeperLink, type KeeperLinkParts } from "../keeper/keeper-link.ts";
import { Predecessor } from "../keeper/predecessor.ts";
import { closeQuietly, namespaceOfSocket } from "../kernel/libc.ts";
import type { HeldNamespace, Hold, Keep, Refusing } from "../base/model/held-namespace.ts";
import type { KeeperReport } from "../base/model/keeper-report.ts";
import type { Platform } from "./platform.ts";

type KeeperPlatform = Pick<Platform, "runner" | "memory">;

interface Refused {
  readonly held: HeldNamespace;
  readonly hold: Hold;
  /** Called when nothing leads there any more. */
  readonly onEnd: (() => void) | undefined;
}

/** The kernel ends a PID namespace with its first process, the keeper in it, too. */
const FIRST_PROCESS = 1;
const NONE: KeeperReport = { state: "off", pid: null, namespaces: 0, restarts: 0 };

export class RunKeeper {
  readonly #link: KeeperLink | undefined;
  readonly #platform: KeeperPlatform;
  #inherited = new Map<string, HeldNamespace>();
  /** What the keeper refuses while this process runs, by namespace: until it is attached, or for good. */
  readonly #refused = new Map<string, Refused>();
  /** Served again, and still held by the keeper as they were, until it holds them as they are. */
  readonly #resumed = new Map<string, Refused>();
  /** Inherited, and not held by the keeper yet as they are served now. */
  readonly #opening = new Set<string>();
  /** What the previous process has left is known, and taken over; the programs of those took their places in one step. */
  #hasTakenOver = false;
  /** Namespaces whose containers are known, and are not to be served. */
  readonly #refusedOn = new Set<string>();
  /** Called when the keeper holds what is needed in namespaces that were inherited: what the previous process has left there may be replaced. */
  onInheritedHeld: () => Promise<void> = () => Promise.resolve();
  /** The keeper of the previous process, where this one has none. */
  #unused: Predecessor | undefined;

  constructor(
    { keeper }: RunSettings,
    platform: KeeperPlatform,
    folder: string,
    events: Omit<KeeperLinkParts, "socketPath">,
  ) {
    this.#platform = platform;
    if (keeper === "off") return;
    this.#link = new KeeperLink({ socketPath: keeperPath(folder), ...events });
  }

  /** undefined without a keeper. */
  get hold(): Keep | undefined {
    const link = this.#link;
    if (link === undefined) return undefined;
    return (namespace) => {
      const hold = link.hold(namespace);
      if (this.#opening.delete(namespace.id) && this.#hasTakenOver) void this.#takePlace(link, namespace.id);
      return hold;
    };
  }

  /** What the previous run left for one namespace; returned once. */
  readonly inherit = (id: string): HeldNamespace | undefined => {
    const found = this.#inherited.get(id) ?? this.#resume(id);
    this.#inherited.delete(id);
    if (found !== undefined) this.#opening.add(id);
    return found;
  };

  /** An inherited namespace could not be taken over, and its rules are gone. */
  readonly disinherit = (id: string): void => {
    this.#opening.delete(id);
    this.#endResumed(id);
  };

  readonly refusing: Refusing = {
    begin: async (served, onEnd) => {
      const { openGate: _, ...held } = served;
      this.#refusedOn.add(held.id);
      let own: HeldNamespace;
      try {
        own = copyOf(held);
      } catch {
        return false;
      }
      return await this.#refuse(own, onEnd);
    },
    goOn: (id) => {
      this.#refusedOn.add(id);
      return !this.#hasTakenOver || this.#inherited.has(id) || this.#refused.has(id);
    },
    end: (id) => {
      this.#refusedOn.delete(id);
      this.#handBack(id);
    },
  };

  /** Returns whether the keeper refuses all its queries from now on. The descriptors are ours. */
  async #refuse(held: HeldNamespace, onEnd?: () => void, waitMs?: number): Promise<boolean> {
    const link = this.#link;
    if (link === undefined || process.pid === FIRST_PROCESS) {
      closeDescriptors(held);
      return false;
    }
    const refused = { ...held, alone: "refuse-now" } as const;
    const hold = link.hold({ ...refused, openGate: () => undefined });
    this.#refused.set(held.id, { held: refused, hold, onEnd });
    const isTold = await link.isTold(waitMs);
    // Meanwhile it may have been resumed, or handed back.
    if (isTold || this.#refused.get(held.id)?.hold !== hold) return true;
    this.#refused.delete(held.id);
    hold.release();
    closeDescriptors(held);
    return false;
  }

  /** The keeper holds it as it is until it is attached, but lets this process read. */
  #resume(id: string): HeldNamespace | undefined {
    const found = this.#refused.get(id);
    if (found === undefined) return undefined;
    // A keeper that is started meanwhile needs the others.
    const own = copyOf(found.held);
    this.#refused.delete(id);
    this.#refusedOn.delete(id);
    found.hold.update({ ...found.held, alone: "refuse", openGate: () => undefined });
    this.#link?.flush();
    this.#resumed.set(id, found);
    return own;
  }

  /**
   * The link runs the program of who left the namespace, which works while somebody holds what it needs. Ours takes its place when
   * the keeper holds what that needs, and the old one may end after that.
   */
  async #takePlace(link: KeeperLink, id: string): Promise<void> {
    await link.isTold();
    await this.onInheritedHeld();
    this.#endResumed(id);
  }

  #endResumed(id: string): void {
    const before = this.#resumed.get(id);
    if (before === undefined) return;
    this.#resumed.delete(id);
    before.hold.release();
    closeDescriptors(before.held);
    before.onEnd?.();
  }

  get report(): KeeperReport {
    return this.#link?.report ?? NONE;
  }

  /** Whether the keeper would go on without this process. */
  get canRefuse(): boolean {
    return this.report.state === "watching" && process.pid !== FIRST_PROCESS;
  }

  start(): void {
    this.#hasTakenOver = true;
    this.#link?.start();
  }

  /**
   * The process to take over from: one that serves now, if `isReplacing`, or a keeper that refuses queries alone. Undefined where
   * there is none, or where this run cannot go on with its rule backend.
   */
  async findPredecessor(folder: string, isReplacing: boolean): Promise<Predecessor | undefined> {
    if (isReplacing && this.#link === undefined) return undefined;
    const path = keeperPath(folder);
    const found = await (isReplacing ? Predecessor.find(path) : Predecessor.findAlone(path));
    if (found === undefined || isReplacing || found.refusing > 0) return found;
    found.channel.close();
    return undefined;
  }

  adopt(predecessor: Predecessor, inherited: Map<string, HeldNamespace>): void {
    this.#inherited = inherited;
    if (this.#link === undefined) this.#unused = predecessor;
    else this.#link.adopt(predecessor.channel, predecessor.keeper);
  }

  /** Gives the keeper copies of what has been opened so far. */
  flush(): void {
    this.#link?.flush();
  }

  /** What is to be served at once is served now; hands the remaining namespaces back, but not to refuse them is for `settled`. */
  async finishTakeover(): Promise<void> {
    // What is attached from now on takes its place on its own.
    this.#hasTakenOver = true;
    this.flush();
    await this.onInheritedHeld();
    for (const namespace of this.#inherited.values()) {
      if (namespace.alone === "hand-back" || this.#link === undefined) void handBack(namespace, this.#platform);
      // Nothing else can close it: until the keeper has it, nobody answers.
      else void this.#refuse(namespace, undefined, Infinity);
    }
    this.#inherited.clear();
    this.#link?.confirmTakeover();
    void this.#unused?.endKeeper({ hasTaken: true });
    this.#unused = undefined;
  }

  /** Every container is known, and attached where it is to be: hands back what nobody has claimed. */
  settled(): void {
    for (const id of this.#refused.keys()) if (!this.#refusedOn.has(id)) this.#handBack(id);
  }

  #handBack(id: string): void {
    const found = this.#refused.get(id);
    if (found === undefined) return;
    this.#refused.delete(id);
    // The keeper must not refuse what is about to go.
    found.hold.release();
    this.#link?.flush();
    void handBack(found.held, this.#platform).then(() => found.onEnd?.());
  }

  yield(): void {
    this.#link?.yield();
  }

  /** Another process has the keeper now. */
  detach(): void {
    this.#link?.detach();
  }

  /** Everything is handed back that Docker's resolver may answer. */
  end(): void {
    this.#link?.end();
  }
}

// Nobody waits for that: it goes when its lock is free.
async function handBack(namespace: HeldNamespace, { runner, memory }: KeeperPlatform): Promise<void> {
  let fd = -1;
  try {
    fd = namespaceOfSocket(namespace.netlink);
    // A transaction that waits for a lock would make all others wait.
    await runner.namespaceOf(fd, memory).untilFree();
    await removeTables(namespace, memory);
  } catch {
    // The run ends: the tables go with the last descriptor of their socket.
  } finally {
    closeQuietly(fd);
  }
  const deferredClose = new DeferredClose();
  deferredClose.add(namespace, performance.now());
  deferredClose.closeLater();
}
