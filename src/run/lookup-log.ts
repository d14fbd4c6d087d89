/**
 * LookupLog: logs lookups that upstream servers fail, once for each container and name in a while. A container has a
 * bounded number of names in that time, and its own share of the log, so that none hides the failures of another.
 */
import { presentation } from "../base/dns/name.ts";
import { typeName } from "../base/dns/record-type.ts";
import { shortened } from "../base/lib/text.ts";
import { LIMITS } from "../base/limits.ts";
import type { RateLimitedLog } from "../base/log/rate-limited-log.ts";
import type { Client } from "../query/client/client.ts";

/** What was logged for one container. */
interface LoggedNames {
  readonly names: Map<string, LoggedName>;
  /** Failures of further names since the last line. */
  suppressed: number;
}

interface LoggedName {
  untilMs: number;
  repeated: number;
}

interface FailedLookup {
  readonly client: Client;
  /** Wire labels in lower case, one character per byte. */
  readonly name: string;
  readonly type: number;
  /** What each server did. */
  readonly reason: string;
}

export class LookupLog {
  readonly #log: RateLimitedLog;
  readonly #now: () => number;
  /** Containers have names only as far as they are logged, too. */
  readonly #hasNames: () => boolean;
  readonly #logged = new WeakMap<Client, LoggedNames>();
  /** The name of a container by its ID. */
  nameOf: (containerId: string) => string | undefined = () => undefined;

  constructor(log: RateLimitedLog, hasNames: () => boolean, now: () => number = () => performance.now()) {
    this.#log = log;
    this.#hasNames = hasNames;
    this.#now = now;
  }

  failed({ client, name, type, reason }: FailedLookup): void {
    const now = this.#now();
    const logged = this.#logged.get(client) ?? { names: new Map<string, LoggedName>(), suppressed: 0 };
    this.#logged.set(client, logged);
    const { names } = logged;
    const known = names.get(name);
    if (known !== undefined && now < known.untilMs) {
      known.repeated++;
      return;
    }
    if (known === undefined && names.size >= LIMITS.logNames && !dropExpired(names, now)) {
      logged.suppressed++;
      return;
    }
    names.set(name, { untilMs: now + LIMITS.logRepeatMs, repeated: 0 });
    const { containerId } = client.history;
    const container = this.nameOf(containerId) ?? containerId.slice(0, 12);
    const shown = this.#hasNames() ? { name: textOf(name) } : {};
    const repeated = known === undefined || known.repeated === 0 ? {} : { repeated: known.repeated };
    const suppressed = logged.suppressed === 0 ? {} : { othersSuppressed: logged.suppressed };
    logged.suppressed = 0;
    const fields = { ...shown, type: typeName(type), container, result: reason, ...repeated, ...suppressed };
    this.#log.line("warn", containerId, fields, "lookup failed");
  }
}

/** Whether there is room for another name now. */
function dropExpired(names: Map<string, LoggedName>, now: number): boolean {
  for (const [name, { untilMs }] of names) if (untilMs <= now) names.delete(name);
  return names.size < LIMITS.logNames;
}

/** Escaping makes a byte up to four characters. */
function textOf(name: string): string {
  const bytes = Buffer.from(name, "latin1");
  return shortened(presentation(bytes, 0, bytes.length), LIMITS.logNameChars);
}
