/**
 * OncePerStep: work that is due after any of many changes, done once after all changes of a step, before the next step.
 */
import { guard } from "./guard.ts";

export function oncePerStep(work: () => void): () => void {
  let isDue = false;
  return () => {
    if (isDue) return;
    isDue = true;
    guard.defer(0, () => {
      isDue = false;
      work();
    });
  };
}
