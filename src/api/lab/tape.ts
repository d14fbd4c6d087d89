/**
 * Tape: what containers asked and were answered, as one file that a person can read and edit, and that can be replayed. It
 * names services, not containers, so that it fits the next run, too.
 */
import type { LeaseScope, RecordedQuery, RuleAnswer, RuleRequest } from "../lease.ts";

export const TAPE_VERSION = 1;

/** One answer, in the notation of the settings' `records`. */
type TapeAnswer = Readonly<Record<string, unknown>> & {
  readonly rcode?: string;
  /** How often in a row; once if it is missing. */
  readonly times?: number;
  /** Seconds since the recording began, for people. */
  readonly at?: number;
};

interface TapeEntry {
  /** A Compose service, or a container. */
  readonly by: string;
  readonly name: string;
  readonly type: string;
  /** Answered as always. */
  readonly live?: boolean;
  readonly answers?: readonly TapeAnswer[];
}

export interface TapeContent {
  readonly tape: typeof TAPE_VERSION;
  readonly queries: readonly TapeEntry[];
}

/** What replaying does with what is not on the tape. */
export const MISSING = ["nxdomain", "servfail", "refused"] as const;
export type Missing = (typeof MISSING)[number];

/** The longest sequence of answers that a rule has, and what fits into a line of a lease. */
const ANSWERS_MAX = 1_000;
const ANSWERS_CHARS = 48_000;

export function tapeOf(queries: readonly RecordedQuery[]): TapeContent {
  const entries = new Map<string, { entry: TapeEntry; answers: TapeAnswer[] }>();
  for (const { container, service, name, type, rcode, cnames, records, ttl, isLocal, isRuled, ms } of queries) {
    if (isRuled) continue;
    const by = service ?? container;
    const key = JSON.stringify([by, name, type]);
    const known = entries.get(key) ?? { entry: { by, name, type, ...(isLocal && { live: true }) }, answers: [] };
    entries.set(key, known);
    // What was answered late or never says nothing about the name.
    if (isLocal || rcode === "NONE") continue;
    const answer = {
      ...(rcode !== "NOERROR" && { rcode }),
      ...(cnames.length > 0 && { cnames }),
      ...records,
      ...(ttl !== null && { ttl }),
    };
    const last = known.answers.at(-1);
    if (last !== undefined && isSame(last, answer))
      known.answers[known.answers.length - 1] = { ...last, times: (last.times ?? 1) + 1 };
    else known.answers.push({ ...answer, at: Math.round(ms) / 1000 });
  }
  return {
    tape: TAPE_VERSION,
    queries: [...entries.values()].map(({ entry, answers }) => ({ ...entry, ...(answers.length > 0 && { answers }) })),
  };
}

/** Records in another order, or with another time left, are the same answer. */
function isSame(a: TapeAnswer, b: TapeAnswer): boolean {
  return recordsText(a) === recordsText(b);
}

function recordsText(answer: TapeAnswer): string {
  const fields = Object.entries(answer).filter(([key]) => key !== "times" && key !== "at" && key !== "ttl");
  return fields
    .map(
      ([key, value]) => `${key} ${Array.isArray(value) ? value.map(String).toSorted(byText).join(" ") : String(value)}`,
    )
    .toSorted(byText)
    .join("\n");
}

function byText(a: string, b: string): number {
  return a < b ? -1 : Number(a > b);
}

/**
 * The rules that replay it, the first ones first: what is not on the tape fails, a name on it has the types that were asked,
 * and only for whom it was answered.
 */
export function replayRules({ queries }: TapeContent, scope: LeaseScope, missing: Missing): RuleRequest[] {
  const live = queries.filter((each) => each.live === true).map(({ name }) => name);
  const taped = queries.filter((each) => each.live !== true);
  const within = (by: string): LeaseScope => ({ ...scope, container: by });
  const names = [...new Set(taped.map(({ name }) => name))].filter((name) => !live.includes(name));
  const pairs = new Map(taped.map(({ by, name }) => [JSON.stringify([by, name]), { by, name }]));
  return [
    {
      action: "only",
      ...(live.length + names.length > 0 && { names: [...new Set([...live, ...names])] }),
      fail: missing,
      in: scope,
    },
    ...names.map((name): RuleRequest => ({ name, action: missing, in: scope })),
    ...[...pairs.values()].map(({ by, name }): RuleRequest => ({ name, action: "nodata", in: within(by) })),
    ...taped.flatMap(({ by, name, type, answers = [] }): RuleRequest[] =>
      answers.length === 0
        ? []
        : [
            {
              name,
              action: "sequence",
              types: [type],
              answers: fittingAnswers(answers.map((each) => answerOf(each))),
              in: within(by),
            },
          ],
    ),
  ];
}

/** The last answer of a sequence stays, so what does not fit is rarely missed. */
function fittingAnswers(answers: readonly RuleAnswer[]): RuleAnswer[] {
  const fitting: RuleAnswer[] = [];
  let [left, chars] = [ANSWERS_MAX, 0];
  for (const answer of answers) {
    const { times = 1 } = answer as TapeAnswer;
    chars += JSON.stringify(answer).length;
    if (left === 0 || (fitting.length > 0 && chars > ANSWERS_CHARS)) break;
    const taken = Math.min(times, left);
    left -= taken;
    fitting.push(taken === times ? answer : { ...(answer as object), times: taken });
  }
  return fitting;
}

/** Without what is for people. */
function answerOf(answer: TapeAnswer): RuleAnswer {
  return Object.fromEntries(Object.entries(answer).filter(([key]) => key !== "at"));
}
