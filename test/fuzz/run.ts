// Owns a run of the fuzzer: a number of inputs from one seed, through every check, with their durations.

import { AnswerCheck, AskedCheck, RelayCheck, ReplyCheck, checkStream } from "./check.ts";
import { HOSTILE, HUGE, HUGE_REPLIES, QUERIES, REPLIES } from "./corpus.ts";
import { mutated } from "./mutate.ts";
import { Random } from "./random.ts";

export type RunOptions = { readonly seed: number; readonly inputs: number; readonly from?: number };

type Violation = {
  readonly index: number;
  readonly what: string;
  readonly hex: string;
  readonly error: unknown;
};

// Per kind of input, in microseconds of the program's own work.
type Times = {
  readonly median: number;
  readonly slowest: number;
  readonly slowestBytes: number;
  readonly slowestIndex: number;
};

export type Run = {
  readonly inputs: number;
  readonly seconds: number;
  readonly violation: Violation | undefined;
  readonly times: Readonly<Record<string, Times>>;
  readonly outcomes: Readonly<Record<string, number>>;
};

const KINDS = ["strict udp", "strict tcp", "default udp", "default tcp", "reply", "relay", "asked"] as const;
type Kind = (typeof KINDS)[number];

const HUGE_ONCE_IN = 500;
const HOSTILE_ONCE_IN = 6;
const STREAM_MESSAGES = 32;
const REPEATS = 5;

// Durations are counted in tenths of a microsecond, so that a million of them take little memory.
class Stopwatch {
  readonly #tenths = new Uint32Array(10_000);
  #count = 0;
  slowest = 0;
  slowestBytes = 0;
  slowestIndex = -1;

  // A pause of the machine is not the input's fault: a slow input is measured again, and its best time counts.
  note(micros: number, bytes: number, index: number, again: () => number): void {
    const tenth = Math.min(this.#tenths.length - 1, Math.floor(micros * 10));
    this.#tenths[tenth] = (this.#tenths[tenth] ?? 0) + 1;
    this.#count++;
    if (micros <= this.slowest) return;
    let best = micros;
    for (let repeat = 0; repeat < REPEATS; repeat++) best = Math.min(best, again());
    if (best <= this.slowest) return;
    this.slowest = best;
    this.slowestBytes = bytes;
    this.slowestIndex = index;
  }

  times(): Times {
    let seen = 0;
    const tenth = this.#tenths.findIndex((count) => (seen += count) * 2 >= this.#count);
    const { slowest, slowestBytes, slowestIndex } = this;
    return { median: (tenth + 0.5) / 10, slowest, slowestBytes, slowestIndex };
  }
}

export function fuzz({ seed, inputs, from = 0 }: RunOptions): Run {
  const answers = {
    "strict udp": new AnswerCheck("strict", false, seed),
    "strict tcp": new AnswerCheck("strict", true, seed),
    "default udp": new AnswerCheck("default", false, seed),
    "default tcp": new AnswerCheck("default", true, seed),
  };
  const replies = { reply: new ReplyCheck(), relay: new RelayCheck(), asked: new AskedCheck() };
  const watches = new Map(KINDS.map((kind) => [kind, new Stopwatch()]));
  const recent: Buffer[] = [];
  let violation: Violation | undefined;
  const start = performance.now();
  let index = from;
  for (; index < from + inputs && violation === undefined; index++) {
    const random = new Random(seed, index);
    const kind = random.pick(KINDS);
    const drawn = draw(kind, random);
    const isReply = isReplyKind(kind);
    const check = isReply ? replies[kind] : answers[kind];
    const message = isReply ? drawn : answers[kind].cut(drawn);
    try {
      check.run(message);
      watches.get(kind)?.note(check.lastMicros, message.length, index, () => {
        check.run(message);
        return check.lastMicros;
      });
      recent.push(message);
      if (recent.length === STREAM_MESSAGES) checkStream(recent.splice(0), random);
    } catch (error) {
      violation = { index, what: kind, hex: message.toString("hex"), error };
    }
  }
  const outcomes: Record<string, number> = {};
  for (const check of [...Object.values(answers), replies.relay, replies.asked]) {
    for (const [word, count] of Object.entries(check.outcomes)) outcomes[word] = (outcomes[word] ?? 0) + count;
  }
  return {
    inputs: index - from,
    seconds: (performance.now() - start) / 1000,
    violation,
    times: Object.fromEntries([...watches].map(([kind, watch]) => [kind, watch.times()])),
    outcomes,
  };
}

function isReplyKind(kind: Kind): kind is "reply" | "relay" | "asked" {
  return kind === "reply" || kind === "relay" || kind === "asked";
}

function draw(kind: Kind, random: Random): Buffer {
  const isReply = isReplyKind(kind);
  const sound = isReply ? REPLIES : QUERIES;
  if (random.once(HUGE_ONCE_IN)) return mutated(random.pick(isReply ? HUGE_REPLIES : HUGE), random, sound);
  return mutated(random.pick(random.once(HOSTILE_ONCE_IN) ? HOSTILE : sound), random, sound);
}
