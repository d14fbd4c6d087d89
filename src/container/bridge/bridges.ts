/**
 * Bridges: the containers on the default bridge alone, each with its BridgeMode and a watch of its resolv.conf, also
 * while the file names no server. A container may write it at any time: it is read when it has been quiet for a moment.
 */
import { openInRoot } from "../../kernel/libc.ts";
import { onNextWrite } from "../../kernel/regular-file.ts";
import { type EngineHost, isContainerPath } from "../namespace/engine-host.ts";
import type { ContainerFact } from "../facts/fact.ts";
import { DebounceTimer } from "../watch/debounce-timer.ts";
import { BridgeMode } from "./bridge-mode.ts";

export interface BridgesParts {
  readonly host: () => EngineHost;
  /** The captured addresses of a container may have changed. */
  readonly onChange: (containerId: string) => void;
  /** The resolv.conf of a container may have changed: determine its facts again. */
  readonly onFileChange: (containerId: string) => void;
}

interface KnownBridge {
  readonly startedAt: string;
  readonly mode: BridgeMode;
  readonly unwatch: () => void;
}

export class Bridges {
  readonly #parts: BridgesParts;
  readonly #known = new Map<string, KnownBridge>();

  constructor(parts: BridgesParts) {
    this.#parts = parts;
  }

  /** Creates or updates the mode of this start of the container, and follows its file. */
  ensureMode(fact: ContainerFact): BridgeMode {
    const servers = fact.nameservers.kind === "captured" ? fact.nameservers.servers : [];
    const known = this.#known.get(fact.id);
    if (known?.startedAt === fact.startedAt) {
      // Without a server the container is about to be left alone.
      if (known.mode.update(servers) && servers.length > 0) this.#parts.onChange(fact.id);
      return known.mode;
    }
    this.forget(fact.id);
    const mode = new BridgeMode(servers);
    this.#known.set(fact.id, { startedAt: fact.startedAt, mode, unwatch: this.#watch(fact) });
    return mode;
  }

  forget(containerId: string): void {
    this.#known.get(containerId)?.unwatch();
    this.#known.delete(containerId);
  }

  close(): void {
    for (const id of [...this.#known.keys()]) this.forget(id);
  }

  /**
   * Watches the file itself, not its folder, where the container's log is written: the file is mounted in the container,
   * so nobody can replace it. Where the kernel refuses a watch, the file is read at events of the container only. The watch ends
   * with the first write, and begins again before the file is read.
   */
  #watch({ id, resolvConfPath: path = "" }: ContainerFact): () => void {
    if (!isContainerPath(path, id)) return () => undefined;
    const timer = new DebounceTimer(() => {
      timer.cancel();
      endWatch = begin();
      this.#parts.onFileChange(id);
    });
    const begin = (): (() => void) =>
      onNextWrite(
        (flags) => openInRoot(this.#parts.host().root, path, flags),
        () => timer.trigger(),
      );
    let endWatch = begin();
    return () => {
      endWatch();
      timer.cancel();
    };
  }
}
