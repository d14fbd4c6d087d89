/**
 * RecordingPolicy: whether queries are recorded, and with their names. One object is shared by all that record; it
 * changes with the settings.
 */
import type { QueryNames } from "../../base/model/query-record.ts";

export interface RecordingPolicy {
  isEnabled: boolean;
  hasNames: boolean;
}

export function recordingPolicy(names: QueryNames): RecordingPolicy {
  return { isEnabled: names !== "off", hasNames: names === "full" };
}

/** Applies a setting; returns whether something that may have been recorded would not be recorded now. */
export function changePolicy(policy: RecordingPolicy, names: QueryNames): boolean {
  const { isEnabled, hasNames } = policy;
  Object.assign(policy, recordingPolicy(names));
  return (isEnabled && !policy.isEnabled) || (hasNames && !policy.hasNames);
}
