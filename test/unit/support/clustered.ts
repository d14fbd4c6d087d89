// Objects of a cluster and the answers that a container gets from them: the source of names and the answerer, without an API.

import { DEFAULT_BEHAVIOUR } from "../../../src/base/model/behaviour.ts";
import { CLUSTER_DEFAULTS, type ClusterPolicy } from "../../../src/base/model/cluster-policy.ts";
import { ClusterNames } from "../../../src/container/names/kubernetes/cluster-names.ts";
import { aClient, aQuery, aView } from "../../support/scripted/builders.ts";
import type { KubeObject } from "../../support/servers/kube-api.ts";
import { type Reply, answerOnce } from "./reply.ts";
import { TYPE_NUMBERS, recordText } from "./stored.ts";

export class ClusterWorld {
  readonly names: ClusterNames;

  // Undefined: before the first list.
  constructor(objects: readonly unknown[] | undefined, policy: Partial<ClusterPolicy> = {}, now?: () => number) {
    this.names = new ClusterNames({ ...CLUSTER_DEFAULTS, api: "/kubeconfig", ...policy }, now);
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

  reply(name: string, type = "A"): Reply | undefined {
    const query = aQuery({ name, type: TYPE_NUMBERS[type] ?? 0 });
    const client = aClient({ ...aView([]), names: this.names.namesOnHost(["cluster.local"]) });
    const result = answerOnce(query, { behaviour: DEFAULT_BEHAVIOUR, client, isStream: true });
    return result.kind === "reply" ? result.reply : undefined;
  }

  // The response code, and each record as `TYPE DATA`; "forwarded" where another server is asked.
  ask(name: string, type = "A"): readonly (string | number)[] {
    const reply = this.reply(name, type);
    return reply === undefined ? ["forwarded"] : [reply.rcode, ...reply.answers.map(recordText).toSorted()];
  }

  additional(name: string, type: string): readonly string[] {
    const records = this.reply(name, type)?.additionals ?? [];
    return records
      .filter((each) => each.type === TYPE_NUMBERS["A"] || each.type === TYPE_NUMBERS["AAAA"])
      .map((each) => `${each.owner} ${recordText(each)}`)
      .toSorted();
  }
}
