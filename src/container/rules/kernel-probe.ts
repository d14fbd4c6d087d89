/**
 * KernelProbe: a query that only the kernel can answer. It is told the answer to a nonce, and the nonce is queried inside
 * the namespace: what comes back was written at lo, and passed whatever a container's firewall has for it.
 */
import { randomBytes } from "node:crypto";

import type { KernelAnswer } from "../../base/model/kernel-answer.ts";
import {
  NONCE_BYTES,
  isKernelProbeAnswer,
  kernelProbeAnswer,
  kernelProbeQuery,
  sentProbes,
} from "../../base/model/probe-message.ts";
import { type ExchangeResult, exchange } from "./exchange.ts";
import type { Within } from "../../kernel/net-namespace.ts";

/** The answers of the namespace in the kernel, as the probe sees them. */
export interface KernelProbeTarget {
  remember(answer: KernelAnswer): boolean;
  /** Leaves out of the statistics that many answers, because they were given to dns11's own queries. */
  discount(queries: number): void;
}

const ADDRESS_BYTES = 4;

/** Names that change in this very moment end all answers, also that to the nonce. */
const ATTEMPTS = 3;
const NOT_ANSWERED = "the kernel did not answer a query whose answer it knows";

/** Returns what went wrong. `mark`: of the packets, where only those lead to the kernel. */
export async function probeKernel(
  within: Within,
  target: KernelProbeTarget,
  destination: string,
  mark?: number,
): Promise<string | undefined> {
  let failure: string | undefined;
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    failure = await probeOnce(within, target, { destination, mark });
    if (failure !== NOT_ANSWERED) return failure;
  }
  return failure;
}

async function probeOnce(
  within: Within,
  target: KernelProbeTarget,
  { destination, mark }: { readonly destination: string; readonly mark: number | undefined },
): Promise<string | undefined> {
  const nonce = randomBytes(NONCE_BYTES).toString("hex");
  const address = randomBytes(ADDRESS_BYTES);
  // Without room for it, there are answers already that have worked.
  if (!target.remember(kernelProbeAnswer(nonce, address))) return undefined;
  sentProbes.add(nonce);
  const message = (id: number): Buffer => kernelProbeQuery(nonce, id);
  target.discount(1);
  const [leg] = await exchange(within, { destination, protocols: ["udp"], message, mark });
  const failure = failureOf(leg, address);
  if (failure !== undefined) target.discount(-1);
  return failure;
}

function failureOf(leg: ExchangeResult | undefined, address: Uint8Array): string | undefined {
  if (leg?.failure !== undefined) return `a query that the kernel answers failed: ${leg.failure}`;
  if (leg?.reply === undefined) return "an answer of the kernel did not arrive";
  const isRight = isKernelProbeAnswer(leg.reply, leg.id, address);
  return isRight ? undefined : NOT_ANSWERED;
}
