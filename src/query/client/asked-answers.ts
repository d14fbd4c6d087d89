/**
 * AskedAnswers: what Docker's resolver answered one client. An answer is repeated for a second; after that it only
 * stands in while Docker's resolver is away. That a name is unknown is never kept: it holds for the query being answered.
 */
import { LIMITS } from "../../base/limits.ts";
import { RateLimit } from "../../base/lib/rate-limit.ts";
import { type DockerAnswer, type DockerAnswers, type DockerAsk, askKey } from "../../base/model/docker-ask.ts";

type Known = Extract<DockerAnswer, { kind: "known" }>;

interface KeptAnswer {
  readonly answer: Known;
  readonly atMs: number;
}

/** The answers of one query, by name. */
export type TurnAnswers = ReadonlyMap<string, DockerAnswer>;

export class AskedAnswers implements DockerAnswers {
  readonly #now: () => number;
  readonly #kept = new Map<string, KeptAnswer>();
  readonly #unknown: RateLimit;
  #turn: TurnAnswers | undefined;
  #awayUntilMs = -Infinity;
  #awayReason = "";

  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
    this.#unknown = new RateLimit(LIMITS.swarmUnknown, now);
  }

  /** Undefined if Docker's resolver must be asked. */
  find(ask: DockerAsk): DockerAnswer | undefined {
    const key = askKey(ask);
    const decided = this.#turn?.get(key);
    if (decided !== undefined) return decided;
    const nowMs = this.#now();
    const kept = this.#kept.get(key);
    if (kept !== undefined && nowMs - kept.atMs < LIMITS.swarmFreshMs) return kept.answer;
    return nowMs < this.#awayUntilMs ? this.#standIn(key, this.#awayReason) : undefined;
  }

  /** Runs `answer` with the answers that were got for this one query. */
  during<T>(turn: TurnAnswers, answer: () => T): T {
    this.#turn = turn;
    try {
      return answer();
    } finally {
      this.#turn = undefined;
    }
  }

  /** Takes an answer, and returns what the query gets. */
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
      return answer;
    }
    // What it has known it answers itself.
    if (answer.isOfName !== true || this.#kept.has(key)) {
      this.#awayUntilMs = this.#now() + LIMITS.swarmAwayMs;
      this.#awayReason = answer.reason;
    }
    return this.#standIn(key, answer.reason);
  }

  /** Whether the name was known when Docker's resolver answered last. */
  isKept(key: string): boolean {
    return this.#kept.has(key);
  }

  /** What a query for a new name gets without asking, because the client has asked for too many unknown ones; usually nothing. */
  refused(): DockerAnswer | undefined {
    return this.#unknown.has() ? undefined : { kind: "away", reason: TOO_MANY };
  }

  /** How many more of its names may be unknown now. */
  get unknownLeft(): number {
    return this.#unknown.left;
  }

  #standIn(key: string, reason: string): DockerAnswer {
    const kept = this.#kept.get(key);
    if (kept === undefined || this.#now() - kept.atMs > LIMITS.swarmLastKnownMs) return { kind: "away", reason };
    return { ...kept.answer, isLast: true };
  }

  #keep(key: string, answer: Known): void {
    this.#kept.delete(key);
    this.#kept.set(key, { answer, atMs: this.#now() });
    if (this.#kept.size <= LIMITS.swarmNamesKept) return;
    const [oldest] = this.#kept.keys();
    if (oldest !== undefined) this.#kept.delete(oldest);
  }
}

const TOO_MANY = "too many names that Docker's resolver does not know";
