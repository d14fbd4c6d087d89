/**
 * Safekeeping: the keeper of a run, where it has one, and what a run before left to this one. It is an addition: whatever
 * becomes of it, names are answered, and without it the kernel takes the rules of a killed process away, one container after
 * the other.
 */
import { join } from "node:path";

import type { RunSettings } from "../config/settings.ts";
import { DeferredClose, removeTables } from "../keeper/held-descriptors.ts";
import { KeeperLink, type KeeperLinkParts } from "../keeper/keeper-link.ts";
import { Predecessor } from "../keeper/predecessor.ts";
import { longCalls } from "../base/lib/long-calls.ts";
import type { NetlinkMemory } from "../kernel/netlink-socket.ts";
import type { HeldNamespace, Keep } from "../base/model/held-namespace.ts";
import type { KeeperReport } from "../base/model/keeper-report.ts";
import type { RuleBackendChoice } from "../base/model/rule-backend.ts";

const SOCKET = "keeper.sock";
const NONE: KeeperReport = { state: "off", pid: null, namespaces: 0, restarts: 0 };

export class RunKeeper {
  readonly #link: KeeperLink | undefined;
  #left = new Map<string, HeldNamespace>();

  constructor(
    { keeper }: RunSettings,
    { backend: tier }: RuleBackendChoice,
    folder: string,
    told: Omit<KeeperLinkParts, "socketPath">,
  ) {
    // The older iptables has no socket by which rules could be removed: it takes programs, inside the namespace.
    if (keeper === "off" || tier === "iptables-legacy") return;
    this.#link = new KeeperLink({ socketPath: join(folder, SOCKET), ...told });
  }

  /** undefined where nobody keeps. */
  get hold(): Keep | undefined {
    const link = this.#link;
    return link && ((namespace) => link.hold(namespace));
  }

  /** What was left to us of one namespace; told once. */
  readonly inherited = (id: string): HeldNamespace | undefined => {
    const found = this.#left.get(id);
    this.#left.delete(id);
    return found;
  };

  get report(): KeeperReport {
    return this.#link?.report ?? NONE;
  }

  start(): void {
    const link = this.#link;
    if (link === undefined) return;
    link.start();
    longCalls.listen((ms) => link.announceBusy(ms));
  }

  /** Whoever serves until now; undefined where nobody does, or this run could not go on by the same means. */
  async findPredecessor(folder: string): Promise<Predecessor | undefined> {
    return this.#link && (await Predecessor.find(join(folder, SOCKET)));
  }

  inherit({ channel, keeper }: Predecessor, left: Map<string, HeldNamespace>): void {
    this.#left = left;
    const link = this.#link;
    if (link === undefined) return;
    link.adopt(channel, keeper);
    longCalls.listen((ms) => link.announceBusy(ms));
  }

  /** Everything that is to be served is served: what else was left is handed back. */
  finishTakeover(memory: NetlinkMemory): void {
    const lettingGo = new DeferredClose();
    for (const namespace of this.#left.values()) {
      removeTables(namespace, memory);
      lettingGo.add(namespace, performance.now());
    }
    lettingGo.closeLater();
    this.#left.clear();
    this.#link?.confirmTakeover();
  }

  yield(): void {
    this.#link?.yield();
  }

  /** Somebody else has it now. */
  detach(): void {
    this.#link?.detach();
  }

  /** Everything is handed back. */
  end(): void {
    this.#link?.end();
  }
}
