// Owns the invariants of every message that is received. Each check throws if one is violated.

import assert from "node:assert/strict";

import { decode } from "dns-packet";

import { RCODE } from "../../src/base/dns/rcode.ts";
import { LIMITS } from "../../src/base/limits.ts";
import { DEFAULT_BEHAVIOUR, type Behaviour, STRICT_BEHAVIOUR } from "../../src/base/model/behaviour.ts";
import { NAME_BYTES_MAX } from "../../src/base/dns/name.ts";
import { Answerer } from "../../src/query/answer.ts";
import { DEFERRED, DROPPED, type DeferredQuery, SLOT_BYTES } from "../../src/query/ports.ts";
import { readDockerReply } from "../../src/query/forward/docker-forwarder.ts";
import type { Client } from "../../src/query/client/client.ts";
import { StreamReader, withLength } from "../../src/base/lib/stream-reader.ts";
import { Question, type QuestionResult } from "../../src/query/wire/question.ts";
import { Records, isReadable } from "../../src/query/wire/records.ts";
import { relay } from "../../src/query/wire/relay.ts";
import { failure, sizeLimit } from "../../src/query/wire/reply.ts";
import { scrub, readReply as readUpstreamReply } from "../../src/query/wire/scrub.ts";
import { type FreshReply, readFreshReply } from "../../src/query/wire/shared-reply.ts";
import { CACHE_DEFAULTS } from "../../src/base/model/upstream-policy.ts";
import { applyCacheTtl } from "../../src/query/cache/cache-writer.ts";
import { TYPE, aClient } from "../support/scripted/builders.ts";
import { readName, readReply } from "../unit/support/reply.ts";
import { NONCE, aWorld } from "./corpus.ts";
import type { Random } from "./random.ts";

const CANARY_BYTES = 64;
const STALE_BYTES = 2048;

// A slot in memory with guard bytes before and after it that must not change.
class Slot {
  readonly block: Buffer;
  readonly offset: number;
  readonly #stale: number;

  // Different offsets and different old content: a result that differs has read bytes outside the message.
  constructor(offset: number, stale: number) {
    this.offset = offset;
    this.#stale = stale;
    this.block = Buffer.alloc(offset + SLOT_BYTES + CANARY_BYTES, stale);
  }

  place(message: Buffer): void {
    message.copy(this.block, this.offset);
    const end = this.offset + message.length;
    this.block.fill(this.#stale, end, Math.min(end + STALE_BYTES, this.block.length));
  }

  isIntact(): boolean {
    const { block, offset } = this;
    for (let at = Math.max(0, offset - CANARY_BYTES); at < offset; at++) if (block[at] !== this.#stale) return false;
    for (let at = offset + SLOT_BYTES; at < block.length; at++) if (block[at] !== this.#stale) return false;
    return true;
  }
}

export class AnswerCheck {
  readonly #behaviour: Behaviour;
  readonly #isStream: boolean;
  readonly #client: Client;
  readonly #answerers: readonly [Answerer, Answerer];
  readonly #slots = [new Slot(CANARY_BYTES, 0xa5), new Slot(CANARY_BYTES + 37, 0x00)] as const;
  readonly #question: Question;
  readonly #scratch = Buffer.alloc(SLOT_BYTES * 2);
  // Duration of the last answer alone, in microseconds.
  lastMicros = 0;
  readonly outcomes = { dropped: 0, deferred: 0, answered: 0, refused: 0 };

  constructor(mode: "strict" | "default", isStream: boolean, seed: number) {
    this.#behaviour = mode === "strict" ? STRICT_BEHAVIOUR : DEFAULT_BEHAVIOUR;
    this.#question = new Question(this.#behaviour.checksQueries);
    this.#isStream = isStream;
    this.#client = aClient(aWorld(isStream));
    this.#client.probeNonce = NONCE;
    this.#answerers = [new Answerer(this.#behaviour, { seed }), new Answerer(this.#behaviour, { seed })];
  }

  // What a listener would pass on of such a message.
  cut(message: Buffer): Buffer {
    const { readsLongQueries } = this.#behaviour;
    if (this.#isStream) return message;
    return message.subarray(0, readsLongQueries ? LIMITS.udpQueryBytes : LIMITS.udpQueryBytesStrict);
  }

  run(message: Buffer): void {
    const [first, second] = this.#slots;
    const [one, other] = this.#answerers;
    first.place(message);
    second.place(message);
    const start = performance.now();
    const result = one.answer(this.#client, first.block, first.offset, message.length, this.#isStream);
    this.lastMicros = (performance.now() - start) * 1000;
    const again = other.answer(this.#client, second.block, second.offset, message.length, this.#isStream);
    assert.equal(again, result, "the same message has the same outcome anywhere");
    assert.ok(first.isIntact() && second.isIntact(), "nothing beyond the slot is written");
    if (message.length < 12 || (message[2] ?? 0) >= 0x80)
      assert.equal(result, DROPPED, "a message that is no query gets no reply");
    if (result === DROPPED) {
      this.outcomes.dropped++;
    } else if (result === DEFERRED) {
      this.outcomes.deferred++;
      const deferred = one.takeDeferred(first.block);
      assert.deepEqual(other.takeDeferred(second.block), deferred);
      this.#checkDeferred(message, deferred);
    } else {
      const reply = first.block.subarray(first.offset, first.offset + result);
      assert.ok(
        reply.equals(second.block.subarray(second.offset, second.offset + result)),
        "replies are the same anywhere",
      );
      this.#checkReply(message, reply);
    }
  }

  #checkReply(message: Buffer, reply: Buffer): void {
    const verdict = this.#read(message);
    const limit = verdict === "answer" ? sizeLimit(this.#question.records.optUdpSize, this.#isStream) : 512;
    assert.ok(reply.length >= 12 && reply.length <= limit, `${reply.length} octets of ${limit} are a reply`);
    const { id, flags, opcode, rcode, counts, answers } = readReply(reply);
    assert.equal(id, message.readUInt16BE(0), "a reply has the id of its query");
    assert.ok(flags.startsWith("qr"), "a reply has QR set");
    assert.ok(opcode === 0 || opcode === (((message[2] ?? 0) >> 3) & 15), "a reply has the opcode of its query");
    if (rcode === RCODE.NOERROR) {
      assert.ok(verdict === "answer" && counts[0] === 1, "only a readable query is answered");
      // As in Docker, an address may point to a name that is longer than the limit.
      if (answers.every(({ type, data }) => type !== TYPE.PTR || data.length <= NAME_BYTES_MAX + 1)) decode(reply);
      this.outcomes.answered++;
    } else {
      this.outcomes.refused++;
    }
  }

  // A deferred query must equal the original, in a form that the forwarder can turn into an error reply.
  #checkDeferred(message: Buffer, { query, questionEnd }: DeferredQuery): void {
    assert.equal(this.#read(message), "answer", "only a readable query is forwarded");
    const { type, labelCount, foldedLength } = this.#question;
    const name = Buffer.from(this.#question.folded.subarray(0, foldedLength));
    const verdict = this.#read(query);
    // Writing out a compressed name moves the targets of pointers after it.
    assert.ok(
      verdict === "answer" || (message[12] ?? 0) >= 64 || query.length !== message.length,
      "a forwarded query can be read",
    );
    assert.deepEqual(
      [this.#question.type, this.#question.labelCount, this.#question.end],
      [type, labelCount, questionEnd],
    );
    assert.ok(name.equals(this.#question.folded.subarray(0, foldedLength)), "the forwarded name is the queried one");
    const length = failure(this.#scratch, this.#question, RCODE.SERVFAIL, this.#behaviour);
    assert.ok(length <= 512);
    assert.equal(readReply(this.#scratch.subarray(0, length)).id, message.readUInt16BE(0));
  }

  #read(message: Buffer): QuestionResult {
    message.copy(this.#scratch);
    return this.#question.read(this.#scratch, 0, message.length);
  }
}

export class ReplyCheck {
  readonly #records = new Records();
  lastMicros = 0;

  // A reply that is passed on fits into a message, and parses to the same result again.
  run(reply: Buffer): void {
    const first = Buffer.from(reply);
    const start = performance.now();
    const read = readUpstreamReply(first);
    this.lastMicros = (performance.now() - start) * 1000;
    assert.equal(
      isReadable(reply, this.#records),
      isReadable(reply, new Records()),
      "nothing of the last reply is left",
    );
    const again = readUpstreamReply(Buffer.from(reply));
    assert.equal(read === undefined, again === undefined, "parsing a reply is deterministic");
    if (read === undefined) return;
    const { message, rcode } = read;
    assert.ok(message.length >= 12 && message.length <= 65_535, `${message.length} octets are passed on`);
    assert.equal(message.readUInt16BE(0), reply.readUInt16BE(0), "the id stays");
    assert.equal(message.readUInt16BE(2), reply.readUInt16BE(2), "the flags stay");
    // A name may point into trailing bytes, which are removed.
    if (message.length < reply.length) return;
    const passedOn = readUpstreamReply(Buffer.from(message));
    assert.ok(passedOn?.message.equals(message) && passedOn.rcode === rcode, "a reply that is passed on can be parsed");
  }
}

// A reply in the place of Docker's resolver: whatever it says, what is read of it can be written as records.
export class AskedCheck {
  lastMicros = 0;
  readonly outcomes = { records: 0, unknown: 0, away: 0 };

  run(reply: Buffer): void {
    const read = readUpstreamReply(Buffer.from(reply));
    if (read === undefined) return;
    const { message } = read;
    // To its own question, or nothing of it would be read.
    const questionEnd = Math.min(message.length, Math.max(12, message.indexOf(0, 12)) + 5);
    const type = [TYPE.A, TYPE.AAAA, TYPE.PTR][message.length % 3] ?? TYPE.A;
    const start = performance.now();
    const asked = readDockerReply(message, { message, questionEnd, type, isGuarded: message.length % 2 === 0 });
    this.lastMicros = (performance.now() - start) * 1000;
    this.outcomes[asked.kind]++;
    if (asked.kind !== "records") return;
    const { data } = asked;
    if (type === TYPE.PTR) {
      assert.ok(data.length <= NAME_BYTES_MAX + 1, `a name of ${data.length} octets`);
      let at = 0;
      for (let length = data[at] ?? 0; length > 0; length = data[at] ?? 0) {
        assert.ok(length <= 63, `a label of ${length} octets`);
        at += 1 + length;
      }
      assert.equal(data.length === 0 ? 1 : data.length, at + 1, "a name ends with its last octet");
    } else {
      const size = type === TYPE.A ? 4 : 16;
      assert.ok(data.length % size === 0 && data.length <= LIMITS.askedAddresses * size, `${data.length} octets`);
    }
  }
}

// The rest of a reply's path: it answers a question, is parsed strictly, scrubbed, gets its TTLs and is written for a
// client, and contains nothing unrelated.
export class RelayCheck {
  readonly #block = Buffer.alloc(SLOT_BYTES);
  lastMicros = 0;
  readonly outcomes = { unreadable: 0, unrelated: 0, whole: 0, scrubbed: 0 };

  run(reply: Buffer): void {
    const message = Buffer.from(reply);
    const start = performance.now();
    const read = readUpstreamReply(message, true);
    const scrubbed = read === undefined ? undefined : scrub(read.message);
    const fresh = Buffer.isBuffer(scrubbed) ? readFreshReply(scrubbed) : undefined;
    this.lastMicros = (performance.now() - start) * 1000;
    // What the lenient parser accepts must be processed without harm, too.
    const lenient = readUpstreamReply(Buffer.from(reply));
    if (lenient !== undefined) readFreshReply(lenient.message);
    if (read === undefined) {
      this.outcomes.unreadable++;
    } else if (!Buffer.isBuffer(scrubbed)) {
      this.outcomes.unrelated++;
    } else {
      this.outcomes[scrubbed === read.message ? "whole" : "scrubbed"]++;
      if (scrubbed.readUInt16BE(4) !== 1) return;
      assert.ok(fresh !== undefined, "a reply that passed the strict parser can be read");
      checkRelated(scrubbed);
      const again = scrub(Buffer.from(scrubbed));
      assert.ok(Buffer.isBuffer(again) && again.equals(scrubbed), "scrubbing again removes nothing");
      this.#relay(scrubbed, fresh);
    }
  }

  #relay(message: Buffer, reply: FreshReply): void {
    const seconds = applyCacheTtl(reply, CACHE_DEFAULTS);
    assert.ok(seconds >= 0 && seconds <= CACHE_DEFAULTS.ttlSecondsMax, `it is cached for ${seconds} s`);
    for (const limit of [512, 1232, 65_535]) {
      const hasOpt = limit !== 512;
      const client = {
        ...{ limit, hasOpt, isDnssecOk: false, wantsAuthentic: false, isLocalName: false },
        endsChain: !hasOpt,
      };
      message.copy(this.#block, 0, 0, reply.questionEnd);
      const length = relay(this.#block, 0, client, reply, { seconds: 1 });
      assert.ok(length <= limit, `${length} octets fit into ${limit}`);
      assert.ok(
        isReadable(this.#block.subarray(0, length), new Records(), true),
        "a reply that is passed on can be parsed",
      );
    }
  }
}

const META_TYPES = 128;

// Independent of the program's code: every record of the answer is owned by the queried name, or by the
// target of an alias among them.
export function checkRelated(message: Buffer): void {
  const { question, answers } = readReply(message);
  assert.ok(question);
  if ((question.type >= META_TYPES && question.type <= TYPE.ANY) || question.class === TYPE.ANY) return;
  const reached = new Set([question.name.toLowerCase()]);
  for (let before = -1; before !== reached.size;) {
    before = reached.size;
    for (const { owner, type, data, end } of answers) {
      const name = owner.toLowerCase();
      const target = type === TYPE.CNAME || type === TYPE.DNAME ? nameText(message, end - data.length) : undefined;
      if (target === undefined) continue;
      if (type === TYPE.CNAME && reached.has(name)) reached.add(target);
      if (type !== TYPE.DNAME) continue;
      for (const one of reached) {
        const isBelow = name === "." ? one !== "." : one.endsWith(`.${name}`);
        if (!isBelow || reached.size > answers.length * 4) continue;
        const head = one.slice(0, one.length - (name === "." ? 0 : name.length + 1));
        reached.add(target === "." ? head : `${head}.${target}`);
        reached.add(name);
      }
    }
  }
  for (const { owner } of answers) assert.ok(reached.has(owner.toLowerCase()), `"${owner}" follows from the question`);
}

function nameText(message: Buffer, at: number): string {
  return readName(message, at).text.toLowerCase();
}

// Messages come out of a stream unchanged, however it is segmented.
export function checkStream(messages: readonly Buffer[], random: Random): void {
  const stream = Buffer.concat(messages.map((message) => withLength(message)));
  const reader = new StreamReader();
  let taken = 0;
  for (let at = 0; at < stream.length;) {
    const size = random.once(3) ? 1 + random.below(4) : 1 + random.below(3000);
    reader.push(stream.subarray(at, at + size));
    at += size;
    if (random.once(4)) continue;
    for (let next = reader.next(); next !== undefined; next = reader.next()) assert.ok(messages[taken++]?.equals(next));
  }
  for (let next = reader.next(); next !== undefined; next = reader.next()) assert.ok(messages[taken++]?.equals(next));
  assert.equal(taken, messages.length, "every message comes out of the stream");
}
