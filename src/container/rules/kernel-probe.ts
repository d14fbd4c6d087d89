/**
 * KernelProbe: a query that only the kernel can answer. It is told the answer to a nonce, and the nonce is queried inside
 * the namespace: what comes back was written at lo, and passed whatever a container's firewall has for it.
 */
import { randomBytes } from "node:crypto";

import type { KnownAnswer } from "../../base/model/answer-memory.ts";
import { isKernelProbeAnswer, kernelProbeAnswer, kernelProbeQuery } from "../../base/model/probe-message.ts";
import { type Within, exchange } from "./exchange.ts";

/** The answers of the namespace in the kernel, as the probe sees them. */
export interface KernelProbeTarget {
  remember(answer: KnownAnswer): boolean;
  /** A query of our own was answered. */
  discount(): void;
}

const NONCE_BYTES = 12;
const ADDRESS_BYTES = 4;

/** Returns what went wrong. */
export async function probeKernel(
  within: Within,
  target: KernelProbeTarget,
  destination: string,
): Promise<string | undefined> {
  const nonce = randomBytes(NONCE_BYTES).toString("hex");
  const address = randomBytes(ADDRESS_BYTES);
  // Without room for it, there are answers already that have worked.
  if (!target.remember(kernelProbeAnswer(nonce, address))) return undefined;
  const message = (id: number): Buffer => kernelProbeQuery(nonce, id);
  const [leg] = await exchange(within, { destination, protocols: ["udp"], message });
  if (leg?.failure !== undefined) return `a query that the kernel answers failed: ${leg.failure}`;
  if (leg?.reply === undefined) return "an answer of the kernel did not arrive";
  if (!isKernelProbeAnswer(leg.reply, leg.id, address))
    return "the kernel did not answer a query whose answer it knows";
  target.discount();
  return undefined;
}
