/**
 * SharedNames: what this machine knows from elsewhere: the names of the store that machines share, the containers of other
 * machines, and the names of a Kubernetes cluster. They outlive a reload.
 */
import type { ClusterNames } from "./kubernetes/cluster-names.ts";
import type { NameSource } from "./source/name-source.ts";
import type { RemoteMembers } from "./zone/remote-members.ts";

export interface SharedNames {
  readonly source: NameSource;
  /** Undefined where no cluster is used. */
  readonly cluster?: ClusterNames | undefined;
  /** Undefined where nothing is published. */
  readonly remote: RemoteMembers | undefined;
}
