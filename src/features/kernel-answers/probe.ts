/**
 * KernelProbe: a query that only the kernel can answer. It is told the answer to a nonce, and the nonce is queried inside
 * the namespace: what comes back was written at lo, and passed whatever a container's firewall has for it.
 */
import { randomBytes } from "node:crypto";

import { setU16 } from "../../base/dns/bytes.ts";
import { POINTER_BYTES } from "../../base/dns/name.ts";
import { queryOf } from "../../base/dns/query.ts";
import { TYPE } from "../../base/dns/record-type.ts";
import { QUESTION_POINTER, RECORD_FIXED_BYTES, writeRecord } from "../../base/dns/record.ts";
import { labelsOf, nameAnswer } from "../../base/model/name-query.ts";
import { NONCE_BYTES, probeName, sentProbes } from "../../base/model/probe-message.ts";
import { type ExchangeResult, exchange } from "../../container/rules/exchange.ts";
import type { KernelAnswer } from "../../kernel/answers/kernel-answer.ts";
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

/** The query whose answer the kernel knows: for the address of a nonce. */
export function kernelProbeQuery(nonce: string, id: number): Buffer {
  return queryOf({ labels: labelsOf(probeName(nonce)), type: TYPE.A, id, isRecursive: false });
}

/** That answer: an address that nobody else knows. */
export function kernelProbeAnswer(nonce: string, address: Uint8Array): KernelAnswer {
  const name = labelsOf(probeName(nonce));
  const record = Buffer.alloc(POINTER_BYTES + RECORD_FIXED_BYTES + address.length);
  setU16(record, 0, QUESTION_POINTER);
  record.set(address, writeRecord(record, POINTER_BYTES, TYPE.A, 0, address.length));
  return {
    type: TYPE.A,
    name,
    nameBytes: name.length,
    labels: probeName(nonce).split(".").length,
    rcode: 0,
    isAuthoritative: false,
    answers: 1,
    authorities: 0,
    message: record,
    from: 0,
    to: record.length,
    shuffledBytes: 0,
    source: undefined,
  };
}

function isKernelProbeAnswer(reply: Buffer, id: number, address: Uint8Array): boolean {
  const answer = nameAnswer(reply, id);
  return typeof answer === "object" && answer.join() === address.join(".");
}
