/**
 * BriefTable: the kernel's table of answers that are valid for some seconds; all namespaces share it. The entries of a closed namespace are
 * deleted a little later, because a program may still be reading them.
 */
import { Pool, type PoolLimits, type Share } from "../../../base/lib/share.ts";
import { ElementWriter, MAP_FLAG, MAP_TYPE, createMap, deleteElements, readElement } from "../../../kernel/bpf.ts";
import { closeQuietly } from "../../../kernel/libc.ts";
import { BriefEntries, type BriefEntriesParts } from "./brief-entries.ts";
import type { BriefBatch } from "./brief-batch.ts";
import { BRIEF_KEY_BYTES, BRIEF_VALUE_BYTES } from "./layout.ts";

/** Longer than the second that entries need, because a timer may fire a little early. */
const RETIRED_MS = 2_000;
/** Looking for room in all namespaces costs too much to do it for each reply. */
const SWEEP_NS = 1_000_000_000;

export class BriefTable {
  readonly map: number;
  readonly writer: ElementWriter;
  readonly #pool: Pool;
  readonly #open = new Set<BriefEntries>();
  readonly #retired = new Set<NodeJS.Timeout>();
  #sweptNs = 0;

  /** `spaces`: the number of namespaces. Throws a SystemFault if the kernel refuses. */
  constructor(spaces: number, limits: PoolLimits) {
    this.#pool = new Pool(limits);
    this.map = createMap({
      name: "dns11_brief",
      type: MAP_TYPE.HASH,
      keyBytes: BRIEF_KEY_BYTES,
      valueBytes: BRIEF_VALUE_BYTES,
      entries: limits.whole + limits.always * spaces,
      flags: MAP_FLAG.NO_PREALLOC,
    });
    this.writer = new ElementWriter(this.map, BRIEF_KEY_BYTES, BRIEF_VALUE_BYTES);
  }

  open(parts: Pick<BriefEntriesParts, "space" | "kinds" | "generation" | "onEnding">): BriefEntries {
    const entries = new BriefEntries({ ...parts, table: this, share: this.#pool.open() });
    this.#open.add(entries);
    return entries;
  }

  read(key: Uint8Array, into: Uint8Array): boolean {
    return readElement(this.map, key, into);
  }

  delete({ keys }: BriefBatch): void {
    deleteElements(this.map, keys.bytes, BRIEF_KEY_BYTES, keys.count);
  }

  /** Has all namespaces delete their ended entries. */
  sweep(nowNs: number): void {
    if (nowNs - this.#sweptNs < SWEEP_NS) return;
    this.#sweptNs = nowNs;
    for (const entries of this.#open) entries.sweep(nowNs);
  }

  /** Ends these entries now, because their namespace is closed. */
  retire(entries: BriefEntries, batches: readonly BriefBatch[], share: Share): void {
    this.#open.delete(entries);
    const held = batches.filter(({ keys }) => keys.count > 0);
    if (held.length === 0) return;
    const timer = setTimeout(() => {
      this.#retired.delete(timer);
      for (const batch of held) {
        this.delete(batch);
        share.give(batch.keys.count);
      }
    }, RETIRED_MS).unref();
    this.#retired.add(timer);
  }

  close(): void {
    for (const timer of this.#retired) clearTimeout(timer);
    closeQuietly(this.map);
  }
}
