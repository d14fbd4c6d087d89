/**
 * ApplySettings: puts other settings into force in a run. What takes long or can fail comes first, while the previous
 * settings are still in force everywhere.
 */
import type { RunSettings } from "../config/settings.ts";
import type { Serving } from "./serving.ts";

/** Resolves when all queries are answered by them. */
export async function applySettings(serving: Serving, settings: RunSettings): Promise<void> {
  const { querySide, containerSide, counts, queryLog, records, etcd, cluster } = serving;
  const stored = await etcd.prepare(settings.etcd);
  const clustered = await cluster.prepare(settings.cluster);
  let apply: () => void;
  try {
    apply = await containerSide.prepare(settings, { ...stored.names, cluster: clustered.names });
    // It may fail for want of memory: then nothing has changed.
    querySide.reconfigure(settings);
  } catch (error) {
    await Promise.all([stored.discard(), clustered.discard()]);
    throw error;
  }
  counts.setContainersMax(settings.metrics.containers);
  queryLog.setOn(settings.queries.isLogged);
  querySide.policies.set(settings.policies);
  apply();
  stored.apply();
  clustered.apply();
  await records.configure(settings);
  await containerSide.refreshed();
}
