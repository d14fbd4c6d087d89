/**
 * NameClient: resolves and explains names through the running dns11, or without one by reading the engine and querying from
 * inside the container.
 */
import type { ControlClient } from "../src/api/control-client.ts";
import { codeOf } from "../src/base/lib/fault.ts";
import { type ControlOptions, clientFor } from "./control-options.ts";
import { onThisPlatform } from "./platform.ts";
import { abortOnSignal } from "./run.ts";

type NameClient = Pick<ControlClient, "explain" | "lookup">;

export async function withNameClient<T>(options: ControlOptions, work: (client: NameClient) => Promise<T>): Promise<T> {
  try {
    return await work(await clientFor(options));
  } catch (error) {
    if (codeOf(error) !== "NOT_RUNNING") throw error;
  }
  const { Standalone } = await onThisPlatform(async () => await import("../src/run/engine/standalone.ts"));
  const standalone = await Standalone.open(options.host, abortOnSignal());
  try {
    return await work(standalone);
  } finally {
    standalone.close();
  }
}

/** The results of all requests, in order. */
export async function forEachInTurn<T, R>(requests: readonly T[], work: (each: T) => Promise<R>): Promise<R[]> {
  const results: R[] = [];
  for (const each of requests) results.push(await work(each));
  return results;
}
