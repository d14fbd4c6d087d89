// The program that answers in the kernel, packet by packet (BPF_PROG_TEST_RUN), and the process beside it whose answers it
// repeats.

import assert from "node:assert/strict";

import { DEFAULT_BEHAVIOUR, type Behaviour } from "../../../src/base/model/behaviour.ts";
import type { View } from "../../../src/base/model/view.ts";
import { ClientAnswers } from "../../../src/features/kernel-answers/client-answers.ts";
import type { KernelSpace } from "../../../src/features/kernel-answers/kernel/kernel-space.ts";
import { runProgram } from "../../../src/kernel/bpf.ts";
import { Answerer } from "../../../src/query/answer.ts";
import { QueryHistory } from "../../../src/query/history/query-history.ts";
import { SLOT_BYTES } from "../../../src/query/ports.ts";
import { NONCE } from "../../fuzz/corpus.ts";
import { TYPE, aClient } from "../../support/scripted/builders.ts";
import { CLIENT_PORT, type PacketParts, aPacket, readPacket } from "../../support/packets/udp-packet.ts";

export const PROCESS_PORT = 5353;
const HEADER_BYTES = 12;
const into = Buffer.alloc(70_000);

// The process, with or without a kernel that remembers its answers.
export class Process {
  readonly #answerer: Answerer;
  readonly #client;
  readonly #block = Buffer.alloc(SLOT_BYTES);

  constructor(
    view: View,
    space?: KernelSpace,
    behaviour: Behaviour = DEFAULT_BEHAVIOUR,
    history: QueryHistory = new QueryHistory(),
  ) {
    this.#answerer = new Answerer(behaviour, { seed: 1 });
    this.#client = aClient(view, undefined, history);
    this.#client.probeNonce = NONCE;
    if (space !== undefined) void new ClientAnswers(this.#client, space);
  }

  // dns11 itself sends the next query from this port.
  announce(port: number): void {
    this.#client.ownQueries.announce(false, port);
  }

  // That query has arrived at the process.
  takeOwn(port: number): boolean {
    return this.#client.ownQueries.take(false, port);
  }

  get counters(): Readonly<Record<string, number>> {
    this.#client.collect();
    return this.#client.counters;
  }

  // Undefined for a query that is forwarded or gets no reply.
  answer(query: Buffer): Buffer | undefined {
    query.copy(this.#block);
    const length = this.#answerer.answer(this.#client, this.#block, 0, query.length, false);
    return length > 0 ? Buffer.from(this.#block.subarray(0, length)) : undefined;
  }
}

// The reply of the program; undefined if the packet went on to the process, as it was.
export function kernelReply(
  space: KernelSpace,
  payload: Buffer,
  parts: PacketParts = {},
  mark = 0,
): Buffer | undefined {
  const packet = aPacket({ payload, ...parts });
  const result = Buffer.from(runProgram(space.program, packet, into, mark));
  const read = readPacket(result);
  assert.ok(read.isSound);
  if (read.destinationPort === PROCESS_PORT) {
    assert.deepEqual(result, aPacket({ payload, destinationPort: PROCESS_PORT, ...parts }));
    return undefined;
  }
  const { from, to, sourcePort, destinationPort } = read;
  assert.deepEqual(
    { from, to, sourcePort, destinationPort },
    { ...REPLY, destinationPort: parts.sourcePort ?? CLIENT_PORT },
  );
  return read.payload;
}

const REPLY = { from: "127.0.0.11", to: "127.0.0.1", sourcePort: 53 };

// A reply without the order of its addresses.
export function sorted(query: Buffer, reply: Buffer): Buffer {
  const [count, type] = [reply.readUInt16BE(6), reply.readUInt16BE(reply.indexOf(0, HEADER_BYTES) + 1)];
  const end = reply.indexOf(0, HEADER_BYTES) + 5;
  const bytes = type === TYPE.A ? 16 : type === TYPE.AAAA ? 28 : 0;
  if (count < 2 || bytes === 0 || query.length < end) return reply;
  const records = Array.from({ length: count }, (_, index) =>
    reply.subarray(end + index * bytes, end + (index + 1) * bytes),
  );
  return Buffer.concat([
    reply.subarray(0, end),
    ...records.toSorted((a, b) => Buffer.compare(a, b)),
    reply.subarray(end + count * bytes),
  ]);
}
