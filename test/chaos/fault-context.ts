// What the faults of a run are done to.

import type { Engine } from "../support/engine/engine.ts";
import type { ControlGroup } from "./control-group.ts";
import type { Member } from "./member.ts";
import type { Fault } from "./plan.ts";
import type { StateFolder } from "./state-folder.ts";
import type { SteppedClock } from "./stepped-clock.ts";
import type { Supervisor } from "./supervisor.ts";
import type { Mutex } from "./mutex.ts";
import type { World } from "./world.ts";

export type FaultContext = {
  readonly engine: Engine;
  readonly world: World;
  readonly members: readonly Member[];
  readonly supervisor: Supervisor;
  readonly state: StateFolder;
  readonly group: ControlGroup;
  readonly clock: SteppedClock;
  // A dockerd 20.10 that dies while it makes a network never starts again: it panics at what it finds on its disk
  // (libnetwork's reservePools). So networks are not made or removed at the moment at which it dies.
  readonly networks: Mutex;
};

// Does the fault and heals it, whatever happens in between; says what is worth knowing about this time.
export type FaultAction = (context: FaultContext, fault: Fault) => Promise<string>;

export function targetOf({ members }: FaultContext, { target }: Fault): Member {
  const member = members[target % members.length];
  if (member === undefined) throw new Error("there is no container");
  return member;
}
