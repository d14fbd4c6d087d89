// Compares what a container's questions came to with when an answer was owed to it. Pure: everything is decided here after
// the fact, from recorded times, so that a busy machine cannot confuse the verdict.

import { EVERY_MS, type Late, type Question, type Way, WAYS } from "./asker.ts";

// A time in which an answer is owed, or the reason why it is not.
export type Duty = { readonly fromMs: number; readonly toMs: number; readonly excuse: string | undefined };

export type Duties = Readonly<Record<Way, readonly Duty[]>>;

// The container has the address in this time.
export type AddressSpan = { readonly address: string; readonly fromMs: number; toMs: number };

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

export function judge(records: readonly Recording[], toleranceMs: number): Judgement {
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
        for (const gap of gapsOf(answeredMs, record.lates, duty, EVERY_MS[way])) {
          longestGapMs = Math.max(longestGapMs, gap.ms);
          if (gap.ms <= toleranceMs) continue;
          const what = `no right answer for ${Math.round(gap.ms)} ms (${way})`;
          violations.push({ container: record.container, fromMs: gap.fromMs, toMs: gap.toMs, what });
        }
      }
    }
  }
  return { violations, owed, longestGapMs, lost, excused };
}

type Gap = { readonly fromMs: number; readonly toMs: number; readonly ms: number };

// Times between two right answers, or between one and the beginning or the end of the duty, without those in which the
// asker did not run and the pause before its next question.
function gapsOf(answeredMs: readonly number[], lates: readonly Late[], duty: Duty, everyMs: number): Gap[] {
  const within = answeredMs.filter((ms) => ms > duty.fromMs && ms < duty.toMs).toSorted((a, b) => a - b);
  const points = [duty.fromMs, ...within, duty.toMs];
  return points.slice(1).map((toMs, index) => {
    const fromMs = points[index] ?? toMs;
    const lateMs = lates.reduce((sum, late) => sum + overlapMs(late, { fromMs, toMs }), 0);
    return { fromMs, toMs, ms: toMs - fromMs - lateMs - everyMs };
  });
}

function overlapMs(a: Late, b: Late): number {
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
