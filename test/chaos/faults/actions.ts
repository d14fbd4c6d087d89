// Table from kinds of faults to the functions that apply them.

import type { Kind } from "../plan.ts";
import type { FaultAction } from "../fault-context.ts";
import * as containers from "./containers.ts";
import * as dns11 from "./dns11.ts";
import * as engine from "./engine.ts";
import * as kernel from "./kernel.ts";

export const FAULT_ACTIONS: Readonly<Record<Kind, FaultAction>> = {
  kill: dns11.kill,
  terminate: dns11.terminate,
  stop: dns11.stop,
  hang: dns11.stop,
  memory: dns11.memory,
  descriptors: dns11.descriptors,
  "full-folder": dns11.fullFolder,
  "full-start": dns11.fullStart,
  clock: dns11.clock,
  "kill-dockerd": engine.killDockerd,
  "restart-dockerd": engine.restartDockerd,
  "kill-containerd": engine.killContainerd,
  restart: containers.restart,
  replace: containers.replace,
  join: containers.join,
  "short-lived": containers.shortLived,
  network: containers.network,
  connections: kernel.connections,
  "connections-of-host": kernel.connectionsOfHost,
  rules: kernel.rules,
};
