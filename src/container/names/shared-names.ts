/**
 * SharedNames: what this machine knows of the store that machines share: its names, and the containers of other machines.
 */
import type { NameSource } from "./source/name-source.ts";
import type { RemoteMembers } from "./zone/remote-members.ts";

export interface SharedNames {
  readonly source: NameSource;
  /** Undefined where nothing is published. */
  readonly remote: RemoteMembers | undefined;
}
