/**
 * RateLimitedLog: logs what can happen repeatedly to the same container or server. A new event is logged at once.
 * Repetitions are counted, and logged later in one line with their number. Events that happen to very many subjects at
 * once are limited as well: each has room for a line, so that one cannot hide the others.
 */
import { LIMITS } from "../limits.ts";
import type { Log } from "./log.ts";

type Level = "info" | "warn";

/** One topic about one container or server. */
interface Subject {
  readonly about: string;
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
  /** Lines by container or server. */
  readonly owners: Map<string, number>;
  /** The number of lines beyond the first one of each owner. */
  logged: number;
  suppressed: number;
}

/** What is limited together. */
interface Topic {
  /** The text is the default. */
  readonly topic?: string;
  /** How long a subject's lines are limited. */
  readonly repeatMs?: number;
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

  /** `about` is the subject, a container or server; `text` is constant. */
  log(
    level: Level,
    about: string,
    fields: object,
    text: string,
    { topic = text, repeatMs = LIMITS.logRepeatMs }: Topic = {},
  ): void {
    const key = `${topic}\n${about}`;
    const signature = `${text} ${JSON.stringify(fields)}`;
    const subject = this.#subjects.get(key);
    if (subject === undefined || this.#now() >= subject.untilMs) {
      const suppressed = subject?.suppressed ?? 0;
      this.#store(key, { about, kind: text, level, fields, signature, untilMs: this.#now() + repeatMs });
      this.line(level, about, suppressed === 0 ? fields : { ...fields, repeated: suppressed }, text);
      return;
    }
    if (signature === subject.signature || subject.logged >= LIMITS.logLinesPerSubject) {
      subject.suppressed++;
      Object.assign(subject, { level, fields, kind: text });
      return;
    }
    subject.logged++;
    Object.assign(subject, { level, fields, signature, kind: text });
    this.line(level, about, fields, text);
  }

  /** Logs the counts of subjects without new events. */
  sweep(): void {
    const now = this.#now();
    for (const [key, subject] of this.#subjects) {
      if (now < subject.untilMs) continue;
      this.#subjects.delete(key);
      if (subject.suppressed > 0) this.#repeat(subject);
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
    for (const [, subject] of this.#subjects) if (subject.suppressed > 0) this.#repeat(subject);
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

  #repeat({ level, about, kind, fields, suppressed }: Subject): void {
    this.line(level, about, { ...fields, repeated: suppressed }, kind);
  }

  /** Logs a line whose repetitions the caller limits; only the limits of its kind apply. */
  line(level: Level, owner: string, fields: object, text: string): void {
    const now = this.#now();
    let kind = this.#kinds.get(text);
    if (kind === undefined || now >= kind.untilMs) {
      if (kind !== undefined) this.#logSuppressed(text, kind);
      kind = { untilMs: now + LIMITS.logKindMs, owners: new Map(), logged: 0, suppressed: 0 };
      this.#kinds.set(text, kind);
    }
    if (!hasRoom(kind, owner)) {
      kind.suppressed++;
      return;
    }
    const count = kind.owners.get(owner) ?? 0;
    kind.owners.set(owner, count + 1);
    if (count > 0) kind.logged++;
    this.#log[level](fields, text);
  }

  #logSuppressed(text: string, { suppressed }: Kind): void {
    if (suppressed > 0) this.#log.warn({ line: text, suppressed }, "similar lines were suppressed");
  }
}

function hasRoom({ owners, logged }: Kind, owner: string): boolean {
  const count = owners.get(owner) ?? 0;
  if (count === 0) return owners.size < LIMITS.logOwnersPerKind;
  return count < LIMITS.logLinesPerOwner && logged < LIMITS.logLinesPerKind;
}
