/**
 * Ends: the ways in which a dns11 that serves nodes ends, each of which must leave a node as it was.
 */
import assert from "node:assert/strict";

import { type Dns11, dns11 } from "../program/dns11.ts";
import type { KindEnvironment } from "./kind-environment.ts";

export type End = (instance: Dns11, world: KindEnvironment) => Promise<void>;

export const stopped: End = async (instance) => {
  assert.equal(await instance.stop(), 0);
};

export const killedAndCleanedUp: End = async (instance, { engine }) => {
  instance.kill("SIGKILL");
  await instance.exited;
  const { code, stderr } = await dns11(["cleanup", "-H", engine.host, "--state-dir", instance.stateDir]);
  assert.equal(code, 0, stderr);
};

export const ENDS: Readonly<Record<string, End>> = {
  SIGTERM: stopped,
  "SIGKILL and `dns11 cleanup`": killedAndCleanedUp,
};
