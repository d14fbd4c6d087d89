/**
 * Plain queries of one namespace answered by a program at its lo. The rules then lead UDP past connection tracking, and the program writes
 * our port into what it does not answer. A probe decides whether that works in this namespace: a firewall inside may drop packets that are
 * not tracked. Until it has succeeded, only probes go there, so a firewall that drops them costs no client a query. Where it does not, the
 * process answers, by the rules that translate addresses.
 *
 * Later, a probe that fails leads back to the process alone. No query is lost then either: the rules change first, and packets that have
 * passed the old ones still find the program. Then it is tried again, on trial, after pauses that grow.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { NO_JITTER, backoffMs } from "../../base/lib/retry.ts";
import { Fault, reasonOf } from "../../base/lib/fault.ts";
import { guard } from "../../base/lib/guard.ts";
import { LIMITS } from "../../base/limits.ts";
import { KERNEL_ANSWER_LIMITS } from "./limits.ts";
import type { AnsweredByReport } from "../../base/model/answered-by.ts";
import type { ExtraNamespace, ExtraPlace, ServedExtra } from "../../container/attach/namespace-extra.ts";
import { CONTAINER_CAPTURE, type Capture, DOCKER_RESOLVER } from "../../container/capture/capture.ts";
import { type ProbeResult, TRIAL_MARK } from "../../container/rules/probe.ts";
import type { KernelAnswers } from "./kernel/kernel-answers.ts";
import type { KernelSpace } from "./kernel/kernel-space.ts";
import type { Client } from "../../query/client/client.ts";
import { ClientAnswers } from "./client-answers.ts";
import { randomBytes } from "node:crypto";
import { setU16 } from "../../base/dns/bytes.ts";
import { POINTER_BYTES } from "../../base/dns/name.ts";
import { queryOf } from "../../base/dns/query.ts";
import { TYPE } from "../../base/dns/record-type.ts";
import { QUESTION_POINTER, RECORD_FIXED_BYTES, writeRecord } from "../../base/dns/record.ts";
import { labelsOf, nameAnswer } from "../../base/model/name-query.ts";
import { NONCE_BYTES, probeName, sentProbes } from "../../base/model/probe-message.ts";
import { type ExchangeResult, exchange } from "../../container/rules/exchange.ts";
import type { KernelAnswer } from "./kernel/kernel-answer.ts";
import type { Within } from "../../kernel/net-namespace.ts";

const NOT_PROBED = "not probed yet";
const ONLY_CONTAINERS = `only queries to ${DOCKER_RESOLVER} in a container are answered by the kernel`;

interface NamespaceParts {
  /** Undefined where there is no program on this machine; then the reason. */
  readonly kernelAnswers: KernelAnswers | undefined;
  readonly reason: string | undefined;
  readonly turns: Pick<Turns, "add">;
  /** Undefined where the number is nobody's. */
  readonly clientOf: (number: number) => Client | undefined;
  readonly onClose: () => void;
}

/** The kernel answers from now on, or no longer; then why not. */
type Verdict = { readonly works: true } | { readonly works: false; readonly reason: string };

export class NamespaceAnswers implements ServedExtra {
  readonly #parts: NamespaceParts;
  /** That of the process's own queries. */
  readonly #mark: number;
  #space: KernelSpace | undefined;
  /** Until the program has proved itself, only probes depend on it. */
  #isTrial = false;
  /** Why the process answers, if that is known. */
  #reason: string | undefined;
  /** Nothing has failed. */
  #isMeant = false;
  /** When it is tried again, if it has failed. */
  readonly #retry = new KernelRetry();
  #namespace: ExtraNamespace | undefined;
  #answers: ClientAnswers | undefined;

  /**
   * As it begins: the process answers, and the program is attached when it is this namespace's turn. Where the previous process has left a
   * program, it goes on until this one's takes its place.
   */
  constructor({ capture, pairs, mark, onlyByProcess, held }: ExtraPlace, parts: NamespaceParts) {
    this.#parts = parts;
    this.#mark = mark;
    if (parts.kernelAnswers === undefined) this.#reason = parts.reason;
    else if (onlyByProcess !== undefined) this.#mean(onlyByProcess);
    else if (capture !== CONTAINER_CAPTURE || pairs.length === 0) this.#mean(ONLY_CONTAINERS);
    else this.#reason = NOT_PROBED;
    const [[link], [pair]] = [held, pairs];
    if (link === undefined || pair === undefined || !this.#isWanted) return;
    let space: KernelSpace | undefined;
    try {
      space = this.#openSpace();
      space.adopt(link);
      space.serve(pair.listening.udpPort);
      this.#space = space;
      this.#reason = undefined;
    } catch (error) {
      this.#fail(space, error);
    }
  }

  get untracked(): ServedExtra["untracked"] {
    if (this.#space === undefined) return "none";
    return this.#isTrial ? "probes" : "all";
  }

  get held(): readonly number[] {
    return this.#space?.held ?? [];
  }

  /** Undefined where nothing else than the process is wanted. */
  get report(): AnsweredByReport | undefined {
    const [space, reason] = [this.#space, this.#reason];
    if (space !== undefined && !this.#isTrial) return { by: "kernel" };
    if (space !== undefined || reason === NOT_PROBED) return { by: "process", reason: NOT_PROBED, isPending: true };
    return reason === undefined ? undefined : { by: "process", reason, ...(this.#isMeant && { isMeant: true }) };
  }

  serve(namespace: ExtraNamespace): void {
    this.#namespace = namespace;
    if (!this.#isTrial) this.#setMemory(this.#space);
  }

  /** A KIND node may have been served as any container first. */
  setCapture(capture: Capture): void {
    if (this.#parts.kernelAnswers === undefined) return;
    if (capture !== CONTAINER_CAPTURE) {
      if (this.#isMeant) return;
      this.#withdraw(ONLY_CONTAINERS);
      this.#isMeant = true;
    } else if (this.#reason === ONLY_CONTAINERS) {
      this.#isMeant = false;
      this.#reason = NOT_PROBED;
      this.#retry.forget();
    }
  }

  rulesChanged(): void {
    this.#retry.hurry();
  }

  retry(): void {
    this.#retry.forget();
  }

  /** The same now, where the kernel could not answer. */
  retryNow(): void {
    const { report } = this;
    if (report?.by !== "process" || report.isMeant === true) return;
    this.retry();
    this.#namespace?.verify();
  }

  /** Has the kernel answer where a probe shows that it can, and the process where it cannot. */
  async settle(result: ProbeResult): Promise<ProbeResult> {
    const namespace = this.#namespace;
    if (namespace === undefined) return result;
    const verdict = await this.#check(result, namespace);
    if (verdict === undefined || !namespace.isCurrent) return result;
    if (verdict.works) {
      this.#isTrial = false;
      this.#setMemory(this.#space);
    } else {
      this.#withdraw(verdict.reason);
      this.#retry.fail();
    }
    await namespace.replaceRules();
    namespace.renewHold();
    // What leads TCP to the process has not changed.
    return await this.settle(await namespace.probe(result.kind === "works" ? ["udp"] : ["udp", "tcp"]));
  }

  verified(): void {
    if (this.#isDue) this.#parts.turns.add(this);
  }

  /** It is its turn: attaches the program and has the namespace verified. The next turn does not wait for a lock of this one. */
  async takeTurn(): Promise<void> {
    const attachAndVerify = async (): Promise<void> => {
      if (await this.attach()) this.#namespace?.verify();
    };
    await this.#namespace?.endOf(attachAndVerify());
  }

  /** Attaches the program, if it is due; returns whether it is there. Only probes depend on it until it is settled. */
  async attach(): Promise<boolean> {
    const namespace = this.#namespace;
    if (namespace === undefined || !this.#isDue) return false;
    if (!(await this.#openIn(namespace))) return false;
    await namespace.replaceRules();
    namespace.renewHold();
    return true;
  }

  takePlace(): void {
    this.#space?.takePlace();
  }

  leave(): void {
    this.#space?.forget();
    this.#parts.onClose();
  }

  /** The rules lead nothing to the program any more. */
  close(): void {
    this.#space?.close();
    this.#space = undefined;
    this.#reason = undefined;
    this.#parts.onClose();
  }

  #mean(reason: string): void {
    this.#reason = reason;
    this.#isMeant = true;
  }

  /** Whether the program is to be attached when it is the namespace's turn. */
  get #isWanted(): boolean {
    const hasProgram = this.#parts.kernelAnswers !== undefined;
    return hasProgram && this.#space === undefined && !this.#isMeant && this.#retry.isDue();
  }

  get #isDue(): boolean {
    const namespace = this.#namespace;
    return namespace?.isTrial === false && namespace.isCurrent && this.#isWanted;
  }

  async #openIn(namespace: ExtraNamespace): Promise<boolean> {
    let space: KernelSpace | undefined;
    try {
      space = this.#openSpace();
      await space.attachIn(namespace.netns.fd);
      const port = this.#isMeant || !namespace.isCurrent ? undefined : namespace.udpPort;
      if (port === undefined) {
        space.close();
        return false;
      }
      space.serve(port);
      this.#space = space;
      this.#isTrial = true;
      this.#reason = undefined;
      return true;
    } catch (error) {
      this.#fail(space, error);
      return false;
    }
  }

  #openSpace(): KernelSpace {
    const space = this.#parts.kernelAnswers?.open(this.#mark);
    if (space === undefined) {
      throw new Fault("KERNEL_FULL", "the kernel already answers for as many namespaces as there may be", {
        remedy: "Nothing is lost but speed: the process answers for the others.",
      });
    }
    return space;
  }

  #fail(space: KernelSpace | undefined, error: unknown): void {
    space?.close();
    this.#retry.fail();
    this.#reason = reasonOf(error);
  }

  /** `result`: of the probe that the process answers. Returns undefined where nothing changes. */
  async #check(result: ProbeResult, { isTrial, netns }: ExtraNamespace): Promise<Verdict | undefined> {
    const space = this.#space;
    if (space === undefined || result.kind === "unknown") return undefined;
    // The program of the previous process does not know this one's answers.
    if (!space.isInPlace && result.kind === "works") return undefined;
    if (this.#isTrial) {
      if (result.kind === "broken" || isTrial) return undefined;
      const reason = await probeKernel(netns.within, space, DOCKER_RESOLVER, TRIAL_MARK);
      return reason === undefined ? { works: true } : { works: false, reason };
    }
    const reason =
      result.kind === "broken" ? result.failures.join("; ") : await probeKernel(netns.within, space, DOCKER_RESOLVER);
    return reason === undefined ? undefined : { works: false, reason };
  }

  /** The rules are about to lead past it. Packets that have passed the old ones still find the program. */
  #withdraw(reason: string): void {
    const space = this.#space;
    this.#setMemory(undefined);
    space?.forget();
    this.#space = undefined;
    this.#isTrial = false;
    this.#reason = reason;
    setTimeout(() => space?.close(), LIMITS.drainQuietMs).unref();
  }

  /** Has the kernel answer the client from this memory, or the process alone. */
  #setMemory(space: KernelSpace | undefined): void {
    this.#answers?.end();
    this.#answers = undefined;
    const number = this.#namespace?.clientNumber;
    const client = number === undefined ? undefined : this.#parts.clientOf(number);
    if (space !== undefined && client !== undefined) this.#answers = new ClientAnswers(client, space);
  }
}

/**
 * Which namespace gets the program next, one after the other. The kernel holds its lock of all interfaces while it attaches a program, some
 * 14 ms, and whoever starts containers needs that lock: so most of the time is theirs. Until then the process answers.
 */
export class Turns {
  readonly #waiting = new Set<NamespaceAnswers>();
  #isTaking = false;

  add(namespace: NamespaceAnswers): void {
    this.#waiting.add(namespace);
    if (!this.#isTaking) void this.#takeAll();
  }

  /** Namespaces that wait are due again at their next verification. */
  clear(): void {
    this.#waiting.clear();
  }

  async #takeAll(): Promise<void> {
    this.#isTaking = true;
    for (const namespace of this.#waiting) {
      this.#waiting.delete(namespace);
      try {
        await namespace.takeTurn();
      } catch (error) {
        guard.report(error, "attach");
      }
      await sleep(KERNEL_ANSWER_LIMITS.attachPauseMs, undefined, { ref: false });
    }
    this.#isTaking = false;
  }
}

/**
 * When a namespace in which answers of the kernel have not arrived is tried again. Each try costs two changes
 * of rules, so the pauses grow. They are shorter after a change of the container's rules, which may have removed the cause;
 * but they grow, because a container may change its rules as often as it likes.
 */
export class KernelRetry {
  #failures = 0;
  #failedMs = Number.NEGATIVE_INFINITY;
  #isHurried = false;

  /** It does not work now. Failures count until there has been none for a long time. */
  fail(nowMs = performance.now()): void {
    const isFirst = nowMs - this.#failedMs > 2 * KERNEL_ANSWER_LIMITS.retryLastMs;
    this.#failures = isFirst ? 1 : this.#failures + 1;
    this.#failedMs = nowMs;
    this.#isHurried = false;
  }

  /** Something has changed in the namespace. */
  hurry(): void {
    this.#isHurried = true;
  }

  /** An operator wants to know: at the next verification. */
  forget(): void {
    this.#failures = 0;
  }

  /** Whether to try at this verification. */
  isDue(nowMs = performance.now()): boolean {
    // After the first failure a change is followed at once.
    const steps = this.#isHurried ? this.#failures - 2 : this.#failures - 1;
    if (steps < 0) return true;
    const firstMs = this.#isHurried ? KERNEL_ANSWER_LIMITS.retryAfterChangeMs : KERNEL_ANSWER_LIMITS.retryFirstMs;
    return nowMs - this.#failedMs >= backoffMs(steps, firstMs, KERNEL_ANSWER_LIMITS.retryLastMs, NO_JITTER);
  }
}

/**
 * A query that only the kernel can answer. It is told the answer to a nonce, and the nonce is queried inside
 * the namespace: what comes back was written at lo, and passed whatever a container's firewall has for it.
 * The answers of the namespace in the kernel, as the probe sees them.
 */
interface KernelProbeTarget {
  remember(answer: KernelAnswer): boolean;
  /** Leaves out of the statistics that many answers, because they were given to dns11's own queries. */
  discount(queries: number): void;
}

const ADDRESS_BYTES = 4;

/** Names that change in this very moment end all answers, also that to the nonce. */
const ATTEMPTS = 3;
const NOT_ANSWERED = "the kernel did not answer a query whose answer it knows";

/** Returns what went wrong. `mark`: of the packets, where only those lead to the kernel. */
async function probeKernel(
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
