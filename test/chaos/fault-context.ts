// What faults act on.

import type { Engine } from "../support/engine/engine.ts";
import type { ControlGroup } from "./control-group.ts";
import type { Member } from "./member.ts";
import type { Fault } from "./plan.ts";
import type { StateFolder } from "./state-folder.ts";
import type { SteppedClock } from "../support/program/stepped-clock.ts";
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
  // A dockerd 20.10 that dies while it creates a network never starts again: it panics on its own state (libnetwork's
  // reservePools). So networks are not created or removed while it is killed.
  readonly networks: Mutex;
};

// Applies the fault and heals it, whatever happens in between; returns a note for the report.
export type FaultAction = (context: FaultContext, fault: Fault) => Promise<string>;

export function targetOf({ members }: FaultContext, { target }: Fault): Member {
  const member = members[target % members.length];
  if (member === undefined) throw new Error("there is no container");
  return member;
}
