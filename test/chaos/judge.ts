// Compares what a container's questions came to with when an answer was owed to it. Pure: everything is decided here after
// the fact, from recorded times, so that a busy machine cannot confuse the verdict.

import { EVERY_MS, type Late, type Question, type Way, WAYS } from "./prober.ts";

// A time in which an answer is owed, or the reason why it is not.
export type Duty = { readonly fromMs: number; readonly toMs: number; readonly excuse: string | undefined };

export type Duties = Readonly<Record<Way, readonly Duty[]>>;

// The container has the address in this time.
export type AddressSpan = { readonly address: string; readonly fromMs: number; toMs: number };

// In this span dns11 could have run for so long, and had no processor.
export type Starved = { readonly fromMs: number; readonly toMs: number; readonly ms: number };

export type Recording = {
  readonly container: string;
  readonly questions: readonly Question[];
  readonly lates: readonly Late[];
  readonly duties: Duties;
  readonly addresses: readonly AddressSpan[];
};

export type Violation = {
  readonly container: string;
  readonly fromMs: number;
  readonly toMs: number;
  readonly what: string;
};

export type Tally = {
  asked: number;
  byDns11: number;
  byDocker: number;
  lost: number;
};

type Excused = Tally & { seconds: number };

export type Judgement = {
  readonly violations: readonly Violation[];
  readonly owed: Tally;
  // The longest time without a right answer while one was owed, in milliseconds.
  readonly longestGapMs: number;
  // By the outcome: questions that got no right answer while one was owed.
  readonly lost: ReadonlyMap<string, number>;
  readonly excused: ReadonlyMap<string, Excused>;
};

// Docker says that its names may be remembered for ten minutes, dns11 for five seconds.
const DOCKER_TTL = 600;

export function judge(records: readonly Recording[], toleranceMs: number, starved: readonly Starved[] = []): Judgement {
  const violations: Violation[] = [];
  const lost = new Map<string, number>();
  const excused = new Map<string, Excused>();
  const owed = emptyTally();
  let longestGapMs = 0;
  for (const record of records) {
    for (const way of WAYS) {
      const questions = record.questions.filter((question) => question.way === way);
      const right = (question: Question): boolean => isRight(question, record.addresses, toleranceMs);
      for (const duty of record.duties[way]) {
        const within = questions.filter(({ askedMs }) => askedMs >= duty.fromMs && askedMs < duty.toMs);
        if (duty.excuse !== undefined) {
          const tally = excused.get(duty.excuse) ?? { ...emptyTally(), seconds: 0 };
          excused.set(duty.excuse, tally);
          tally.seconds += (duty.toMs - duty.fromMs) / 1_000;
          for (const question of within) count(tally, question, right(question));
          continue;
        }
        for (const question of within) {
          // One that is still waiting when the duty ends belongs to what comes next.
          if (!right(question) && endOf(question) > duty.toMs) continue;
          count(owed, question, right(question));
          if (right(question)) continue;
          const how = howItFailed(question);
          lost.set(how, (lost.get(how) ?? 0) + 1);
          if (!isWrong(question)) continue;
          const [fromMs, toMs] = [question.askedMs, endOf(question)];
          violations.push({ container: record.container, fromMs, toMs, what: `its own name was answered: ${how}` });
        }
        const answeredMs = questions.filter(right).map(endOf);
        for (const gap of gapsOf(answeredMs, duty)) {
          const lateMs = record.lates.reduce((sum, late) => sum + overlapMs(late, gap), 0);
          const starvedMs = starved.reduce((sum, one) => sum + shareMs(one, gap), 0);
          const ms = gap.toMs - gap.fromMs - lateMs - starvedMs - EVERY_MS[way];
          longestGapMs = Math.max(longestGapMs, ms);
          if (ms <= toleranceMs) continue;
          const what = `no right answer for ${Math.round(ms)} ms (${way})`;
          violations.push({ container: record.container, fromMs: gap.fromMs, toMs: gap.toMs, what });
        }
      }
    }
  }
  return { violations, owed, longestGapMs, lost, excused };
}

type Span = { readonly fromMs: number; readonly toMs: number };

// Times between two right answers, or between one and the beginning or the end of the duty. What is taken off them: the
// pause before the next question, and what the machine did not let the asker or dns11 do.
function gapsOf(answeredMs: readonly number[], duty: Duty): Span[] {
  const within = answeredMs.filter((ms) => ms > duty.fromMs && ms < duty.toMs).toSorted((a, b) => a - b);
  const points = [duty.fromMs, ...within, duty.toMs];
  return points.slice(1).map((toMs, index) => ({ fromMs: points[index] ?? toMs, toMs }));
}

// As much of it as falls into the gap.
function shareMs(starved: Starved, gap: Span): number {
  return (starved.ms * overlapMs(starved, gap)) / (starved.toMs - starved.fromMs);
}

function overlapMs(a: Span, b: Span): number {
  return Math.max(0, Math.min(a.toMs, b.toMs) - Math.max(a.fromMs, b.fromMs));
}

function endOf(question: Question): number {
  return question.askedMs + question.tookMs;
}

// An address that it lost or gets may be told for as long as an answer may take.
function isRight(question: Question, spans: readonly AddressSpan[], toleranceMs: number): boolean {
  const { outcome, addresses = [], askedMs } = question;
  if (outcome !== "answer") return false;
  return addresses.every((address) =>
    spans.some(
      (span) => span.address === address && span.fromMs <= endOf(question) && span.toMs + toleranceMs >= askedMs,
    ),
  );
}

// Worse than no answer: a client believes and remembers it.
function isWrong({ outcome }: Question): boolean {
  return outcome === "answer" || outcome === "NXDOMAIN" || outcome === "no data";
}

function howItFailed({ way, outcome, addresses = [], ttl }: Question): string {
  return outcome === "answer" ? `${way}: wrong address ${addresses.join(" ")} (TTL ${ttl})` : `${way}: ${outcome}`;
}

function emptyTally(): Tally {
  return { asked: 0, byDns11: 0, byDocker: 0, lost: 0 };
}

function count(tally: Tally, { ttl }: Question, right: boolean): void {
  tally.asked++;
  if (!right) tally.lost++;
  else if (ttl === DOCKER_TTL) tally.byDocker++;
  else tally.byDns11++;
}
