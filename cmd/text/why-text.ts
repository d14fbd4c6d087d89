/**
 * WhyText: why a container is not served, and what else is worth knowing of it.
 */
import type { ContainerStatus } from "../../src/api/status.ts";
import type { NodeReport } from "../../src/base/model/node-report.ts";

/** Why it is not served, what may become a problem, and where to look. */
export function whyOf({ state, name, reason, culprits = [], warning, node }: ContainerStatus): string {
  const hint = state === "failed" ? `see dns11 doctor ${name}` : undefined;
  return [reason, ...culprits, warning, node && nodeText(node), hint].filter((text) => text !== undefined).join("; ");
}

function nodeText({ isNested }: NodeReport): string {
  return `${isNested === true ? "answers what runs inside, too" : "a KIND node"}: see dns11 kind status`;
}
