/**
 * RunKeeper: the keeper of a run, where it has one, and what a previous run left to this one. Answering names never
 * depends on it. Without a keeper the kernel removes the rules of a killed process, one container after the other.
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
    // iptables-legacy has no socket that can remove rules: that takes programs inside the namespace.
    if (keeper === "off" || tier === "iptables-legacy") return;
    this.#link = new KeeperLink({ socketPath: join(folder, SOCKET), ...told });
  }

  /** undefined without a keeper. */
  get hold(): Keep | undefined {
    const link = this.#link;
    return link && ((namespace) => link.hold(namespace));
  }

  /** What the previous run left for one namespace; returned once. */
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

  /**
   * The process that serves now; undefined where there is none, or where this run cannot go on with its rule backend.
   */
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

  /** Everything that is to be served is served now; hands the remaining namespaces back. */
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

  /** Another process has the keeper now. */
  detach(): void {
    this.#link?.detach();
  }

  /** Everything is handed back. */
  end(): void {
    this.#link?.end();
  }
}
