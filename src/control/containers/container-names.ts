/**
 * ContainerNames: whether a name with several labels is one of this engine: a container's name or alias, or NAME.NETWORK. The
 * failure tables use it on the query path, for names that fail for the first time, so its sets are rebuilt rarely.
 */
import { presentation } from "../../base/dns/name.ts";
import type { ContainerFact } from "../../container/facts/fact.ts";

const REBUILD_MS = 1_000;

export class ContainerNames {
  readonly #facts: () => Iterable<ContainerFact>;
  #names = new Set<string>();
  #networks = new Set<string>();
  #builtMs = -Infinity;

  constructor(facts: () => Iterable<ContainerFact>) {
    this.#facts = facts;
  }

  /** `labels` are in lower case, without the root label. */
  has(labels: Uint8Array, length: number): boolean {
    this.#rebuild();
    const name = presentation(labels, 0, length);
    if (this.#names.has(name)) return true;
    for (let dot = name.indexOf("."); dot > 0; dot = name.indexOf(".", dot + 1)) {
      if (this.#networks.has(name.slice(dot + 1))) return true;
    }
    return false;
  }

  #rebuild(): void {
    const now = performance.now();
    if (now - this.#builtMs < REBUILD_MS) return;
    this.#builtMs = now;
    this.#names = new Set();
    this.#networks = new Set();
    for (const { name, endpoints } of this.#facts()) {
      if (name.includes(".")) this.#names.add(name.toLowerCase());
      for (const { networkName, names } of endpoints) {
        this.#networks.add(networkName.toLowerCase());
        for (const each of names) if (each.includes(".")) this.#names.add(each.toLowerCase());
      }
    }
  }
}
