// Owns the invariant of the program that answers in the kernel: a packet leaves it as it came, with another port, or as the
// answer that the process gives to the same query.

import assert from "node:assert/strict";

import { LIMITS } from "../../../../src/base/limits.ts";
import { KERNEL_ANSWER_LIMITS } from "../../../../src/features/kernel-answers/limits.ts";
import type { Behaviour } from "../../../../src/base/model/behaviour.ts";
import { KernelAnswers } from "../../../../src/features/kernel-answers/kernel/kernel-answers.ts";
import type { KernelSpace } from "../../../../src/features/kernel-answers/kernel/kernel-space.ts";
import { runProgram } from "../../../../src/kernel/bpf.ts";
import { QueryHistories } from "../../../../src/query/history/query-histories.ts";
import { PROCESS_PORT, Process, sorted } from "../kernel-program.ts";
import { type ReadPacket, readPacket } from "../../../support/packets/udp-packet.ts";
import { HOSTILE, QUERIES, aWorld } from "../../../fuzz/corpus.ts";
import { fateOf, packetOf, withPort } from "./kernel-packets.ts";
import { mutated } from "../../../fuzz/mutate.ts";
import type { Random } from "../../../fuzz/random.ts";

const CORPUS = [...QUERIES, ...HOSTILE];
const FORGET_ONCE_IN = 5_000;
const READ_ONCE_IN = 500;
// A test takes one page.
const PAYLOAD_BYTES_MAX = 3_000;

export class KernelCheck {
  readonly #kernel = new KernelAnswers({ ...KERNEL_ANSWER_LIMITS, spaces: 2 });
  readonly #space = this.#kernel.open() as KernelSpace;
  readonly #histories = new QueryHistories("full");
  readonly #alone: Process;
  readonly #teaching: Process;
  readonly #into = Buffer.alloc(70_000);
  // Queries that have been answered by the kernel as they are.
  readonly #plain: Buffer[] = [];
  readonly outcomes = { answered: 0, passed: 0, reply: 0, untouched: 0 };

  constructor(behaviour: Behaviour) {
    this.#kernel.setStyle(behaviour);
    this.#alone = new Process(aWorld(true), undefined, behaviour);
    this.#teaching = new Process(aWorld(true), this.#space, behaviour, this.#histories.open("fuzzed"));
    this.#space.serve(PROCESS_PORT);
    for (const query of CORPUS) {
      this.#teaching.answer(query);
      if (this.#space.size > this.#plain.length) this.#plain.push(query);
    }
  }

  close(): void {
    this.#space.close();
    this.#kernel.close();
  }

  draw(random: Random): Buffer {
    const message = mutated(random.pick(random.once(2) ? this.#plain : CORPUS), random, CORPUS);
    return message.subarray(0, Math.min(LIMITS.udpQueryBytes, PAYLOAD_BYTES_MAX));
  }

  run(message: Buffer, random: Random): void {
    if (random.once(FORGET_ONCE_IN)) this.#kernel.forgetAll();
    if (random.once(READ_ONCE_IN)) this.#readHistory();
    // What the process is asked first is what the kernel may know; failures, after the second time.
    for (let time = 0; time < 2; time++) this.#teaching.answer(message);
    const packet = packetOf(message, random);
    const fate = fateOf(packet);
    const result = runProgram(this.#space.program, packet, this.#into);
    const unanswered = withPort(packet, fate === "plain" ? "passed" : fate);
    if (result.equals(unanswered)) {
      this.outcomes[fate === "plain" ? "passed" : fate]++;
      return;
    }
    assert.equal(fate, "plain", `${packet.toString("hex")} became ${result.toString("hex")}`);
    this.#checkReply(readPacket(packet), readPacket(result));
    this.outcomes.answered++;
  }

  #checkReply(query: ReadPacket, reply: ReadPacket): void {
    // A packet whose header is damaged elsewhere stays as damaged as it was, and is dropped after the program.
    assert.equal(reply.isSound, query.isSound);
    assert.deepEqual(
      [reply.from, reply.to, reply.sourcePort, reply.destinationPort],
      [query.to, query.from, query.destinationPort, query.sourcePort],
    );
    const expected = this.#alone.answer(query.payload);
    assert.ok(expected !== undefined, "the process does not answer it");
    const same = sorted(query.payload, reply.payload).equals(sorted(query.payload, expected));
    assert.ok(same, `${reply.payload.toString("hex")} instead of ${expected.toString("hex")}`);
  }

  #readHistory(): void {
    for (const history of this.#histories.histories()) {
      for (const { name } of history.since(history.lastSeq - 8))
        assert.ok(name === null || /^[\u0020-\u007e]*$/.test(name));
    }
  }
}
