/**
 * ApplySettings: puts other settings into force in a run. What takes long or can fail comes first, while the previous
 * settings are still in force everywhere.
 */
import type { RunSettings } from "../config/settings.ts";
import type { Prepared } from "../features/contract.ts";
import { type Serving, sharedNamesOf } from "./serving.ts";

/** Resolves when all queries are answered by them. */
export async function applySettings(serving: Serving, settings: RunSettings): Promise<void> {
  const { querySide, containerSide, counts, records, features } = serving;
  const ofFeatures: Prepared[] = [];
  let apply: () => void;
  try {
    for (const each of features) if (each.prepare !== undefined) ofFeatures.push(await each.prepare(settings));
    apply = await containerSide.prepare(settings, sharedNamesOf(ofFeatures));
    // It may fail for want of memory: then nothing has changed.
    querySide.reconfigure(settings);
  } catch (error) {
    await Promise.all(ofFeatures.map(async (each) => await each.discard()));
    throw error;
  }
  counts.setContainersMax(settings.metrics.containers);
  querySide.policies.set(settings.policies);
  for (const each of features) each.configure?.(settings);
  apply();
  for (const each of ofFeatures) each.commit();
  await records.configure(settings);
  await containerSide.refreshed();
}
