/**
 * RateLimitedLog: logs what can happen repeatedly to the same container or server. A new event is logged at once.
 * Repetitions are counted, and logged later in one line with their number. Events that happen to very many subjects at
 * once are limited as well.
 */
import { LIMITS } from "../limits.ts";
import type { Log } from "./log.ts";

type Level = "info" | "warn";

/** One topic about one container or server. */
interface Subject {
  readonly kind: string;
  level: Level;
  fields: object;
  /** The last logged line. */
  signature: string;
  untilMs: number;
  logged: number;
  suppressed: number;
}

interface Kind {
  untilMs: number;
  logged: number;
  suppressed: number;
}

export class RateLimitedLog {
  readonly #log: Log;
  readonly #now: () => number;
  readonly #subjects = new Map<string, Subject>();
  readonly #kinds = new Map<string, Kind>();
  readonly #timer: NodeJS.Timeout;

  constructor(log: Log, now: () => number = () => performance.now()) {
    this.#log = log;
    this.#now = now;
    this.#timer = setInterval(() => this.sweep(), LIMITS.logKindMs / 2);
    this.#timer.unref();
  }

  /** `about` is the subject; `text` is constant. Texts with the same `topic` are limited together. */
  log(level: Level, about: string, fields: object, text: string, topic: string = text): void {
    const key = `${topic}\n${about}`;
    const signature = `${text} ${JSON.stringify(fields)}`;
    const subject = this.#subjects.get(key);
    if (subject === undefined || this.#now() >= subject.untilMs) {
      const suppressed = subject?.suppressed ?? 0;
      this.#store(key, { kind: text, level, fields, signature, untilMs: this.#now() + LIMITS.logRepeatMs });
      this.#emit(level, text, suppressed === 0 ? fields : { ...fields, repeated: suppressed });
      return;
    }
    if (signature === subject.signature || subject.logged >= LIMITS.logLinesPerSubject) {
      subject.suppressed++;
      Object.assign(subject, { level, fields, kind: text });
      return;
    }
    subject.logged++;
    Object.assign(subject, { level, fields, signature, kind: text });
    this.#emit(level, text, fields);
  }

  /** Logs the counts of subjects without new events. */
  sweep(): void {
    const now = this.#now();
    for (const [key, subject] of this.#subjects) {
      if (now < subject.untilMs) continue;
      this.#subjects.delete(key);
      if (subject.suppressed > 0)
        this.#emit(subject.level, subject.kind, { ...subject.fields, repeated: subject.suppressed });
    }
    for (const [text, kind] of this.#kinds) {
      if (now < kind.untilMs) continue;
      this.#kinds.delete(text);
      this.#logSuppressed(text, kind);
    }
  }

  /** Logs the remaining counts. */
  close(): void {
    clearInterval(this.#timer);
    for (const [, { level, kind, fields, suppressed }] of this.#subjects) {
      if (suppressed > 0) this.#emit(level, kind, { ...fields, repeated: suppressed });
    }
    for (const [text, kind] of this.#kinds) this.#logSuppressed(text, kind);
    this.#subjects.clear();
    this.#kinds.clear();
  }

  #store(key: string, subject: Omit<Subject, "logged" | "suppressed">): void {
    this.#subjects.delete(key);
    if (this.#subjects.size >= LIMITS.logSubjects) {
      const [oldest] = this.#subjects.keys();
      this.#subjects.delete(oldest as string);
    }
    this.#subjects.set(key, { ...subject, logged: 1, suppressed: 0 });
  }

  #emit(level: Level, text: string, fields: object): void {
    const now = this.#now();
    let kind = this.#kinds.get(text);
    if (kind === undefined || now >= kind.untilMs) {
      if (kind !== undefined) this.#logSuppressed(text, kind);
      kind = { untilMs: now + LIMITS.logKindMs, logged: 0, suppressed: 0 };
      this.#kinds.set(text, kind);
    }
    if (kind.logged >= LIMITS.logLinesPerKind) {
      kind.suppressed++;
      return;
    }
    kind.logged++;
    this.#log[level](fields, text);
  }

  #logSuppressed(text: string, { suppressed }: Kind): void {
    if (suppressed > 0) this.#log.warn({ line: text, suppressed }, "similar lines were suppressed");
  }
}
