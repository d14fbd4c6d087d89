/**
 * RunKeeper: the keeper of a run, where it has one, and what a previous run left to this one. Answering queries never
 * depends on it. Without a keeper the kernel removes the rules of a killed process, one container after the other.
 */
import { join } from "node:path";

import type { RunSettings } from "../config/settings.ts";
import { DeferredClose, removeTables } from "../keeper/held-descriptors.ts";
import { KeeperLink, type KeeperLinkParts } from "../keeper/keeper-link.ts";
import { Predecessor } from "../keeper/predecessor.ts";
import { closeQuietly, namespaceOfSocket } from "../kernel/libc.ts";
import type { HeldNamespace, Keep } from "../base/model/held-namespace.ts";
import type { KeeperReport } from "../base/model/keeper-report.ts";
import type { RuleBackendChoice } from "../base/model/rule-backend.ts";
import type { Platform } from "./platform.ts";

/** It is in the folder of the instance. */
const SOCKET = join("keeper", "keeper.sock");
const NONE: KeeperReport = { state: "off", pid: null, namespaces: 0, restarts: 0 };

export class RunKeeper {
  readonly #link: KeeperLink | undefined;
  #inherited = new Map<string, HeldNamespace>();

  constructor(
    { keeper }: RunSettings,
    { backend }: RuleBackendChoice,
    folder: string,
    events: Omit<KeeperLinkParts, "socketPath">,
  ) {
    // iptables-legacy has no socket that can remove rules: that takes programs inside the namespace.
    if (keeper === "off" || backend === "iptables-legacy") return;
    this.#link = new KeeperLink({ socketPath: join(folder, SOCKET), ...events });
  }

  /** undefined without a keeper. */
  get hold(): Keep | undefined {
    const link = this.#link;
    return link && ((namespace) => link.hold(namespace));
  }

  /** What the previous run left for one namespace; returned once. */
  readonly inherit = (id: string): HeldNamespace | undefined => {
    const found = this.#inherited.get(id);
    this.#inherited.delete(id);
    return found;
  };

  get report(): KeeperReport {
    return this.#link?.report ?? NONE;
  }

  start(): void {
    this.#link?.start();
  }

  /**
   * The process that serves now; undefined where there is none, or where this run cannot go on with its rule backend.
   */
  async findPredecessor(folder: string): Promise<Predecessor | undefined> {
    return this.#link && (await Predecessor.find(join(folder, SOCKET)));
  }

  adopt({ channel, keeper }: Predecessor, inherited: Map<string, HeldNamespace>): void {
    this.#inherited = inherited;
    this.#link?.adopt(channel, keeper);
  }

  /** Gives it copies of what has been opened so far. */
  flush(): void {
    this.#link?.flush();
  }

  /** Everything that is to be served is served now; hands the remaining namespaces back. */
  finishTakeover(platform: Pick<Platform, "runner" | "memory">): void {
    // Nobody waits for that: each goes when its lock is free.
    for (const namespace of this.#inherited.values()) void handBack(namespace, platform);
    this.#inherited.clear();
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

async function handBack(
  namespace: HeldNamespace,
  { runner, memory }: Pick<Platform, "runner" | "memory">,
): Promise<void> {
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
