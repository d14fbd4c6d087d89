// Verdict of a run: compares the outcomes of a container's probes with the times in which an answer was expected. Pure:
// it works on recorded times after the fact, so a busy machine cannot distort it.

import { EVERY_MS, type Stall, type ProbeResult, type ProbeMode, PROBE_MODES } from "./prober.ts";

// A time span in which an answer is expected, or the reason why not.
export type AnswerSpan = { readonly fromMs: number; readonly toMs: number; readonly excuse: string | undefined };

export type AnswerSpans = Readonly<Record<ProbeMode, readonly AnswerSpan[]>>;

// Time span in which the container has the address.
export type AddressSpan = { readonly address: string; readonly fromMs: number; toMs: number };

// Time that dns11 was runnable in this span without getting a CPU.
export type Starved = { readonly fromMs: number; readonly toMs: number; readonly ms: number };

export type Recording = {
  readonly container: string;
  readonly probes: readonly ProbeResult[];
  readonly stalls: readonly Stall[];
  readonly answerSpans: AnswerSpans;
  readonly addresses: readonly AddressSpan[];
};

export type Violation = {
  readonly container: string;
  readonly fromMs: number;
  readonly toMs: number;
  readonly what: string;
};

export type Tally = {
  probes: number;
  byDns11: number;
  byDocker: number;
  lost: number;
};

type Excused = Tally & { seconds: number };

export type Judgement = {
  readonly violations: readonly Violation[];
  readonly expected: Tally;
  // Longest time without a correct answer while one was expected, in milliseconds.
  readonly longestGapMs: number;
  // Probes without a correct answer while one was expected, by outcome.
  readonly lost: ReadonlyMap<string, number>;
  readonly excused: ReadonlyMap<string, Excused>;
};

// TTL of Docker's own names: ten minutes; dns11 uses five seconds.
const DOCKER_TTL = 600;

export function judge(records: readonly Recording[], toleranceMs: number, starved: readonly Starved[] = []): Judgement {
  const violations: Violation[] = [];
  const lost = new Map<string, number>();
  const excused = new Map<string, Excused>();
  const expected = emptyTally();
  let longestGapMs = 0;
  for (const record of records) {
    for (const mode of PROBE_MODES) {
      const probes = record.probes.filter((probe) => probe.mode === mode);
      const right = (probe: ProbeResult): boolean => isRight(probe, record.addresses, toleranceMs);
      for (const span of record.answerSpans[mode]) {
        const within = probes.filter(({ startedMs }) => startedMs >= span.fromMs && startedMs < span.toMs);
        if (span.excuse !== undefined) {
          const tally = excused.get(span.excuse) ?? { ...emptyTally(), seconds: 0 };
          excused.set(span.excuse, tally);
          tally.seconds += (span.toMs - span.fromMs) / 1_000;
          for (const probe of within) count(tally, probe, right(probe));
          continue;
        }
        for (const probe of within) {
          // A probe still waiting at the end of the span belongs to the next span.
          if (!right(probe) && endOf(probe) > span.toMs) continue;
          count(expected, probe, right(probe));
          if (right(probe)) continue;
          const failure = failureOf(probe);
          lost.set(failure, (lost.get(failure) ?? 0) + 1);
          if (!isWrong(probe)) continue;
          const [fromMs, toMs] = [probe.startedMs, endOf(probe)];
          violations.push({
            container: record.container,
            fromMs,
            toMs,
            what: `wrong answer for its own name: ${failure}`,
          });
        }
        const answeredMs = probes.filter(right).map(endOf);
        for (const gap of gapsOf(answeredMs, span)) {
          const lateMs = record.stalls.reduce((sum, stall) => sum + overlapMs(stall, gap), 0);
          const starvedMs = starved.reduce((sum, one) => sum + shareMs(one, gap), 0);
          const ms = gap.toMs - gap.fromMs - lateMs - starvedMs - EVERY_MS[mode];
          longestGapMs = Math.max(longestGapMs, ms);
          if (ms <= toleranceMs) continue;
          const what = `no correct answer for ${Math.round(ms)} ms (${mode})`;
          violations.push({ container: record.container, fromMs: gap.fromMs, toMs: gap.toMs, what });
        }
      }
    }
  }
  return { violations, expected, longestGapMs, lost, excused };
}

type Span = { readonly fromMs: number; readonly toMs: number };

// Times between two correct answers, or between one and the start or end of the span. Deducted from them: the probe
// interval, and the time in which prober or dns11 did not get a CPU.
function gapsOf(answeredMs: readonly number[], span: AnswerSpan): Span[] {
  const within = answeredMs.filter((ms) => ms > span.fromMs && ms < span.toMs).toSorted((a, b) => a - b);
  const points = [span.fromMs, ...within, span.toMs];
  return points.slice(1).map((toMs, index) => ({ fromMs: points[index] ?? toMs, toMs }));
}

// The share of it that falls into the gap.
function shareMs(starved: Starved, gap: Span): number {
  return (starved.ms * overlapMs(starved, gap)) / (starved.toMs - starved.fromMs);
}

function overlapMs(a: Span, b: Span): number {
  return Math.max(0, Math.min(a.toMs, b.toMs) - Math.max(a.fromMs, b.fromMs));
}

function endOf(probe: ProbeResult): number {
  return probe.startedMs + probe.tookMs;
}

// An address that was removed or added is valid for the duration of a probe and the tolerance.
function isRight(probe: ProbeResult, spans: readonly AddressSpan[], toleranceMs: number): boolean {
  const { outcome, addresses = [], startedMs } = probe;
  if (outcome !== "answer") return false;
  return addresses.every((address) =>
    spans.some(
      (span) => span.address === address && span.fromMs <= endOf(probe) && span.toMs + toleranceMs >= startedMs,
    ),
  );
}

// Worse than no answer: clients use and cache it.
function isWrong({ outcome }: ProbeResult): boolean {
  return outcome === "answer" || outcome === "NXDOMAIN" || outcome === "no data";
}

function failureOf({ mode, outcome, addresses = [], ttl }: ProbeResult): string {
  return outcome === "answer" ? `${mode}: wrong address ${addresses.join(" ")} (TTL ${ttl})` : `${mode}: ${outcome}`;
}

function emptyTally(): Tally {
  return { probes: 0, byDns11: 0, byDocker: 0, lost: 0 };
}

function count(tally: Tally, { ttl }: ProbeResult, right: boolean): void {
  tally.probes++;
  if (!right) tally.lost++;
  else if (ttl === DOCKER_TTL) tally.byDocker++;
  else tally.byDns11++;
}
