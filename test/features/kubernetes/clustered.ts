// Objects of a cluster and the answers that a container gets from them: the source of names and the answerer, without an API.

import type { VisibleNames } from "../../../src/base/model/visible-names.ts";
import type { ClusterSettings } from "../../../src/features/kubernetes/feature.ts";
import { ClusterNames } from "../../../src/features/kubernetes/names.ts";
import { NamesWorld } from "../../unit/support/names.ts";
import type { KubeObject } from "./kube-api.ts";

const DEFAULTS = { zone: "cluster.local", staleSecondsMax: 86_400 };

export class ClusterWorld extends NamesWorld {
  readonly names: ClusterNames;

  // Undefined: before the first list.
  constructor(objects: readonly unknown[] | undefined, policy: Partial<ClusterSettings> = {}, now?: () => number) {
    super();
    this.names = new ClusterNames({ ...DEFAULTS, api: "/kubeconfig", ...policy }, now);
    if (objects === undefined) return;
    this.list(objects);
    this.names.setCurrent(true);
  }

  list(objects: readonly unknown[]): void {
    const stores = [this.names.services, this.names.slices];
    for (const store of stores) store.begin();
    for (const object of objects) this.put(object);
    for (const store of stores) store.commit(0);
  }

  put(object: unknown): void {
    const isSlice = (object as KubeObject | null)?.kind === "EndpointSlice";
    (isSlice ? this.names.slices : this.names.services).put(object);
  }

  remove(object: KubeObject): void {
    (object.kind === "EndpointSlice" ? this.names.slices : this.names.services).remove(object);
  }

  override view(): readonly VisibleNames[] {
    return this.names.namesForHost({ zones: ["cluster.local"] });
  }
}
