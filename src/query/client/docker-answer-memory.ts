/**
 * DockerAnswerMemory: what Docker's resolver answered one client. An answer is used again for a second; later it is used only while
 * Docker's resolver does not reply. That a name is unknown is remembered for the query in progress, and for a second once the client has
 * asked for too many unknown names.
 */
import { LIMITS } from "../../base/limits.ts";
import { RateLimit } from "../../base/lib/rate-limit.ts";
import {
  type DockerAnswer,
  type DockerAnswers,
  type DockerQuestion,
  dockerQuestionKey,
} from "../../base/model/visible-names.ts";

type KnownAnswer = Extract<DockerAnswer, { kind: "known" }>;

interface KeptAnswer {
  readonly answer: KnownAnswer;
  readonly atMs: number;
}

/** The answers of one query, by name. */
type QueryAnswers = ReadonlyMap<string, DockerAnswer>;

export class DockerAnswerMemory implements DockerAnswers {
  readonly #now: () => number;
  readonly #kept = new Map<string, KeptAnswer>();
  readonly #unknown: RateLimit;
  readonly #unknownAtMs = new Map<string, number>();
  #queryAnswers: QueryAnswers | undefined;
  #awayUntilMs = -Infinity;
  #awayReason = "";

  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
    this.#unknown = new RateLimit(LIMITS.askedUnknown, now);
  }

  /** Undefined if Docker's resolver must be asked. */
  find(question: DockerQuestion): DockerAnswer | undefined {
    const key = dockerQuestionKey(question);
    const decided = this.#queryAnswers?.get(key);
    if (decided !== undefined) return decided;
    const nowMs = this.#now();
    const kept = this.#kept.get(key);
    if (kept !== undefined && nowMs - kept.atMs < LIMITS.askedFreshMs) return kept.answer;
    return nowMs < this.#awayUntilMs ? this.#standIn(key, this.#awayReason) : undefined;
  }

  /** Runs `answer` so that it also finds the answers that were got for this one query. */
  during<T>(queryAnswers: QueryAnswers, answer: () => T): T {
    this.#queryAnswers = queryAnswers;
    try {
      return answer();
    } finally {
      this.#queryAnswers = undefined;
    }
  }

  /** Records an answer, and returns what the query gets. */
  take(key: string, answer: DockerAnswer): DockerAnswer {
    if (answer.kind === "known") {
      this.#awayUntilMs = -Infinity;
      this.#keep(key, answer);
      return answer;
    }
    if (answer.kind === "unknown") {
      this.#awayUntilMs = -Infinity;
      this.#kept.delete(key);
      this.#unknown.take();
      putLimited(this.#unknownAtMs, key, this.#now());
      return answer;
    }
    // A name that Docker's resolver has known is one that it answers itself, so silence about it means that the resolver is away.
    if (answer.isOfName !== true || this.#kept.has(key)) {
      this.#awayUntilMs = this.#now() + LIMITS.askedAwayMs;
      this.#awayReason = answer.reason;
    }
    return this.#standIn(key, answer.reason);
  }

  /** Whether the name was known when Docker's resolver answered last. */
  isKept(key: string): boolean {
    return this.#kept.has(key);
  }

  /**
   * What a query for a new name gets without asking Docker's resolver, because the client has asked for too many unknown names; undefined
   * if it may ask. A program that goes on asking for one name, such as a service that was removed, fails as it would with any answer.
   */
  refused(key: string): DockerAnswer | undefined {
    if (this.#unknown.has()) return undefined;
    const unknownAtMs = this.#unknownAtMs.get(key) ?? -Infinity;
    const isRecent = this.#now() - unknownAtMs < LIMITS.askedFreshMs;
    return isRecent ? { kind: "unknown" } : { kind: "away", reason: TOO_MANY };
  }

  /** How many more names may turn out unknown now. */
  get unknownLeft(): number {
    return this.#unknown.left;
  }

  #standIn(key: string, reason: string): DockerAnswer {
    const kept = this.#kept.get(key);
    if (kept === undefined || this.#now() - kept.atMs > LIMITS.askedLastKnownMs) return { kind: "away", reason };
    return { ...kept.answer, isLast: true };
  }

  #keep(key: string, answer: KnownAnswer): void {
    putLimited(this.#kept, key, { answer, atMs: this.#now() });
  }
}

/** Removes the oldest entry if there are too many. */
function putLimited<T>(all: Map<string, T>, key: string, value: T): void {
  all.delete(key);
  all.set(key, value);
  if (all.size <= LIMITS.askedNamesKept) return;
  const [oldest] = all.keys();
  if (oldest !== undefined) all.delete(oldest);
}

const TOO_MANY = "too many names that Docker's resolver does not know";
