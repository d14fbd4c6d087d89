// Records of etcd and the answers that a container gets from them: the source of names and the answerer, without etcd.

import type { EtcdPolicy } from "../../../src/features/etcd/feature.ts";
import { ETCD_DEFAULTS } from "./defaults.ts";
import { StoredNames } from "../../../src/features/etcd/names.ts";
import { type VisibleNames } from "../../../src/base/model/visible-names.ts";
import { NamesWorld } from "../../unit/support/names.ts";

export interface StoredWorldParts extends Partial<EtcdPolicy> {
  readonly now?: () => number;
  readonly recordsMax?: number;
  // Sources before and after it.
  readonly before?: readonly VisibleNames[];
  readonly after?: readonly VisibleNames[];
}

export class StoredWorld extends NamesWorld {
  readonly names: StoredNames;
  readonly policy: EtcdPolicy;
  readonly #parts: StoredWorldParts;

  // Values by key below the prefix; undefined before the first list.
  constructor(values: Readonly<Record<string, unknown>> | undefined, parts: StoredWorldParts = {}) {
    super();
    this.#parts = parts;
    const { now: _, recordsMax: _m, before: _b, after: _a, ...policy } = parts;
    this.policy = { ...ETCD_DEFAULTS, endpoints: ["http://127.0.0.1:2379"], zones: ["shop.test"], ...policy };
    this.names = new StoredNames(this.policy, parts);
    if (values === undefined) return;
    this.list(values);
    this.names.setCurrent(true);
  }

  list(values: Readonly<Record<string, unknown>>): void {
    this.names.begin();
    for (const [key, value] of Object.entries(values)) this.put(key, value);
    this.names.commit();
  }

  put(key: string, value: unknown, lease?: string): void {
    const bytes = Buffer.isBuffer(value)
      ? value
      : Buffer.from(typeof value === "string" ? value : JSON.stringify(value));
    this.names.put({ key: `/skydns/${key}`, value: bytes, lease });
  }

  remove(key: string): void {
    this.names.remove(`/skydns/${key}`);
  }

  override view(): readonly VisibleNames[] {
    const own = this.names.namesFor();
    const { before = [], after = [] } = this.#parts;
    return [...before, ...(own === undefined ? [] : [own]), ...after];
  }
}
