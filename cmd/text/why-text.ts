/**
 * WhyText: why a container is not served, and what else is worth knowing of it.
 */
import type { ContainerStatus } from "../../src/api/status.ts";

/** Why it is not served, what may become a problem, and where to look. */
export function whyOf({ state, name, reason, culprits = [], warning, node }: ContainerStatus): string {
  const hint = state === "failed" ? `see dns11 doctor ${name}` : undefined;
  return [reason, ...culprits, warning, node === undefined ? undefined : "a KIND node: see dns11 kind status", hint]
    .filter((text) => text !== undefined)
    .join("; ");
}
