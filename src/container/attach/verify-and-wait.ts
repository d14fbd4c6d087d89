/**
 * VerifyAndWait: one verification of an attachment with its result, for those who were asked to repair it.
 */
import { setTimeout as sleep } from "node:timers/promises";

import { LIMITS } from "../../base/limits.ts";
import type { Attachment } from "./attachment.ts";

/** How often to poll a verification that was already running. */
const REPAIR_POLL_MS = 10;

/** Verifies now and returns whether queries arrive; waits for a verification that was already running. */
export async function verifyAndWait(attachment: Attachment): Promise<boolean> {
  const startMs = Date.now();
  // The machine's clock may be set back meanwhile.
  const deadlineMs = performance.now() + LIMITS.repairMs;
  await attachment.verify();
  for (;;) {
    const { state, isOpen } = attachment;
    if (state.kind === "attached" && state.verifiedMs >= startMs) return true;
    if (!isOpen || (state.kind === "failed" && state.atMs >= startMs) || performance.now() > deadlineMs) return false;
    await sleep(REPAIR_POLL_MS);
  }
}
