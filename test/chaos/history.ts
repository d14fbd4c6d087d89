// What must hold of everything that was asked and answered in a run, whatever failed meanwhile. Pure, as judge.ts: it works on records
// after the fact.

import type { Violation } from "./judge.ts";

export type Span = { readonly fromMs: number; readonly toMs: number };

// What a client got. Undefined where nothing came.
export type Answer = {
  readonly client: string;
  readonly name: string;
  readonly startedMs: number;
  readonly endedMs: number;
  readonly addresses: readonly string[];
  readonly ttl: number;
  // The reply has another ID or question than the query.
  readonly isForeign: boolean;
};

// A query at a server, and the address that it said.
export type Served = {
  readonly server: number;
  readonly name: string;
  readonly from: string;
  readonly atMs: number;
  readonly said: string;
};

export type History = {
  readonly answers: readonly Answer[];
  readonly served: readonly Served[];
  // When each container had ended, as the engine said.
  readonly ended: ReadonlyMap<string, number>;
  // From the request to the answer of each flush.
  readonly flushes: readonly Span[];
  // When dns11 could not know: the engine was down, or the process did not run.
  readonly unable: readonly Span[];
  // When dns11 took the first server for dead, as its log says.
  readonly firstDown: readonly Span[];
};

// Below the zones that a run's settings name: what is forwarded to nobody, what is counted, and what has an address of its own.
export const ZONES = { denied: ".denied.witness.test", counted: ".counted.witness.test", own: ".own.witness.test" };
const DOCKER_TTL = 600;
const OCTET = 256;
// A name that no container has any more is forwarded, and a server may answer it.
const OF_CONTAINER = /^10\.88\./;
// What a server says with a flaw, such as in reply to another question: Docker's resolver passes it on.
const FORGED = "198.51.100.66";
// dns11 asks from addresses of the engine's host, Docker's resolver from those of the container.
const OF_HOST = /^10\.53\./;
// The reply of the first server has been there for so long.
const OVERTAKEN_MS = 500;

// The address by which a server says that it was asked for this name: the third octet is the server's.
export function ownAddress(name: string, server: number): string {
  let hash = 0;
  for (const octet of Buffer.from(name.toLowerCase())) hash = (Math.imul(hash, 31) + octet) >>> 0;
  return `198.19.${server}.${hash % OCTET}`;
}

// The address by which it says how often it has been asked.
export function countAddress(count: number): string {
  return `198.20.${(count >> 8) % OCTET}.${count % OCTET}`;
}

function countOf(address: string): number {
  const [, , high = 0, low = 0] = address.split(".").map(Number);
  return high * OCTET + low;
}

export function checkHistory(history: History, toleranceMs: number): Violation[] {
  const { answers, served, ended } = history;
  const found: Violation[] = [];
  const note = ({ client, startedMs, endedMs }: Answer, what: string): void =>
    void found.push({ container: client, fromMs: startedMs, toMs: endedMs, what });
  for (const answer of answers) {
    const { name, addresses, startedMs, ttl, isForeign } = answer;
    const [address] = addresses;
    if (isForeign && !addresses.includes(FORGED)) note(answer, `the reply to ${name} is to another query`);
    if (address === undefined) continue;
    const endedAtMs = ended.get(name);
    if (endedAtMs !== undefined && ttl < DOCKER_TTL && OF_CONTAINER.test(address)) {
      const unableMs = history.unable.reduce(
        (sum, one) => sum + overlapMs(one, { fromMs: endedAtMs, toMs: startedMs }),
        0,
      );
      const lateMs = startedMs - endedAtMs - unableMs;
      if (lateMs > toleranceMs) note(answer, `${name} had ended ${Math.round(lateMs)} ms before, and was ${address}`);
    }
    if (name.endsWith(ZONES.own)) {
      const server = [1, 2].find((each) => address === ownAddress(name, each));
      if (server === undefined && address.startsWith("198.19."))
        note(answer, `${name} is ${address}, which is another name's`);
      if (server === 2 && isOvertaken(answer, history)) note(answer, `${name} is what the second server says`);
    }
    if (name.endsWith(ZONES.counted) && address.startsWith("198.20.")) {
      const flushMs = history.flushes.findLast(({ toMs }) => toMs < startedMs)?.fromMs ?? -Infinity;
      const before = served.findLast((each) => each.name === name && each.atMs < flushMs);
      if (before !== undefined && countOf(address) <= countOf(before.said))
        note(answer, `${name} is ${address}, from before the cache was flushed (${before.said})`);
    }
  }
  for (const { name, from, atMs } of served)
    if (name.endsWith(ZONES.denied) && OF_HOST.test(from))
      found.push({
        container: from,
        fromMs: atMs,
        toMs: atMs,
        what: `${name} is to be forwarded to nobody, and reached a server`,
      });
  return found;
}

// The first server had answered, and dns11 did not take it for dead.
function isOvertaken({ name, startedMs, endedMs }: Answer, { served, firstDown }: History): boolean {
  const first = served.find((each) => each.server === 1 && each.name === name && each.atMs >= startedMs);
  if (first === undefined || first.atMs + OVERTAKEN_MS > endedMs) return false;
  return !firstDown.some((span) => overlapMs(span, { fromMs: startedMs, toMs: endedMs }) > 0);
}

function overlapMs(a: Span, b: Span): number {
  return Math.max(0, Math.min(a.toMs, b.toMs) - Math.max(a.fromMs, b.fromMs));
}
