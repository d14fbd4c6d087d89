/**
 * LookupLog: logs lookups that upstream servers fail, once for each container and name in a while. A container has a
 * bounded number of names in that time, so that none hides the failures of another.
 */
import { presentation } from "../base/dns/name.ts";
import { typeName } from "../base/dns/record-type.ts";
import { LIMITS } from "../base/limits.ts";
import type { RateLimitedLog } from "../base/log/rate-limited-log.ts";
import type { Client } from "../query/client/client.ts";

interface LoggedName {
  untilMs: number;
  repeated: number;
}

export interface FailedLookup {
  readonly client: Client;
  /** Wire labels in lower case, one character per byte. */
  readonly name: string;
  readonly type: number;
  /** What each server did. */
  readonly reason: string;
}

const NAMES_MAX = 16;

export class LookupLog {
  readonly #log: RateLimitedLog;
  readonly #now: () => number;
  /** Containers have names only as far as they are logged, too. */
  readonly #hasNames: () => boolean;
  readonly #names = new WeakMap<Client, Map<string, LoggedName>>();
  /** The name of a container by its ID. */
  nameOf: (containerId: string) => string | undefined = () => undefined;

  constructor(log: RateLimitedLog, hasNames: () => boolean, now: () => number = () => performance.now()) {
    this.#log = log;
    this.#hasNames = hasNames;
    this.#now = now;
  }

  failed({ client, name, type, reason }: FailedLookup): void {
    const now = this.#now();
    const names = this.#names.get(client) ?? new Map<string, LoggedName>();
    this.#names.set(client, names);
    const known = names.get(name);
    if (known !== undefined && now < known.untilMs) {
      known.repeated++;
      return;
    }
    if (known === undefined && names.size >= NAMES_MAX && !dropExpired(names, now)) return;
    names.set(name, { untilMs: now + LIMITS.logRepeatMs, repeated: 0 });
    const { containerId } = client.history;
    const container = this.nameOf(containerId) ?? containerId.slice(0, 12);
    const bytes = Buffer.from(name, "latin1");
    const shown = this.#hasNames() ? { name: presentation(bytes, 0, bytes.length) } : {};
    const repeated = known === undefined || known.repeated === 0 ? {} : { repeated: known.repeated };
    const fields = { ...shown, type: typeName(type), container, result: reason, ...repeated };
    this.#log.log("warn", `${containerId} ${name}`, fields, "lookup failed");
  }
}

/** Whether there is room for another name now. */
function dropExpired(names: Map<string, LoggedName>, now: number): boolean {
  for (const [name, { untilMs }] of names) if (untilMs <= now) names.delete(name);
  return names.size < NAMES_MAX;
}
