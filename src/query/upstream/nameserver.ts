/**
 * Nameserver: one server, which is an address and the namespace it is reached from, with its health, its sockets, and
 * the kinds of queries that it does not answer.
 */
import { LIMITS } from "../../base/limits.ts";
import type { Server } from "../../base/model/view.ts";
import { Health, type OnHealthChange } from "./health.ts";
import { type SocketPoolParts, SocketPool } from "./socket-pool.ts";
import { TlsMemory } from "./tls-connection.ts";

/** Called when a server goes down or comes back up. */
export type OnHealth = (server: Server, ...change: Parameters<OnHealthChange>) => void;

/** How a server that is up fails names. */
interface ZoneFailure {
  /** A response code; "late": its reply came when the query had ended; "silent": none has come. */
  readonly what: string;
  /** How long a reply took that came too late. */
  readonly tookMs?: number;
  readonly atMs: number;
}

export class Nameserver {
  readonly server: Server;
  readonly health: Health;
  readonly sockets: SocketPool;
  /** Set if it is queried over TLS, and in no other way. */
  readonly tls: TlsMemory | undefined;
  /** The network on the way may drop such queries. No container can have the server answer only some of its queries. */
  readonly silentTo = { edns: new Silence(), ad: new Silence(), udp: new Silence() };
  /** Per container: the authoritative servers behind a shared resolver may reject EDNS for one container's names. */
  readonly #withoutEdnsUntilMs = new Map<number, number>();
  #loopsUntilMs = -Infinity;
  /** The time at which TCP last failed, without a reply over TCP since. */
  #tcpFailedMs = -Infinity;

  /** How it failed names of a zone last, of the zones that it failed last. */
  readonly #failures = new Map<number, ZoneFailure>();

  constructor(server: Server, parts: SocketPoolParts, onHealth: OnHealth) {
    this.server = server;
    this.tls = server.tls === undefined ? undefined : new TlsMemory();
    this.health = new Health((...change) => onHealth(server, ...change));
    this.sockets = new SocketPool(server.address.includes(":") ? 6 : 4, LIMITS.upstreamSockets, parts, this.health);
  }

  /** The server rejected a query of this container because of EDNS or AD. */
  markWithoutEdns(nowMs: number, client: number): void {
    for (const [each, untilMs] of this.#withoutEdnsUntilMs) if (nowMs >= untilMs) this.#withoutEdnsUntilMs.delete(each);
    this.#withoutEdnsUntilMs.set(client, nowMs + LIMITS.withoutEdnsMs);
  }

  /** It is skipped until then for clients in a forwarding loop. */
  get loopsUntilMs(): number {
    return this.#loopsUntilMs;
  }

  /** As far as this container has observed; or, without one, any container. */
  speaksEdns(nowMs: number, client?: number): boolean {
    if (this.silentTo.edns.isKnown(nowMs)) return false;
    if (client !== undefined) return !this.isRejecting(nowMs, client);
    return [...this.#withoutEdnsUntilMs.values()].every((untilMs) => nowMs >= untilMs);
  }

  /** It rejected EDNS or AD in a query of this container. */
  isRejecting(nowMs: number, client: number): boolean {
    return nowMs < (this.#withoutEdnsUntilMs.get(client) ?? -Infinity);
  }

  noteTcp(nowMs: number, hasReplied: boolean): void {
    this.#tcpFailedMs = hasReplied ? -Infinity : nowMs;
    if (!hasReplied) this.silentTo.udp.forget();
  }

  /** It did not reply over TCP a moment ago: for explanations, because a container may have caused it. */
  isTcpBlocked(nowMs: number): boolean {
    return nowMs - this.#tcpFailedMs < LIMITS.tcpFailureMs;
  }

  /** For explanations only, because containers choose the zones. A query ends before its reply comes, so silence does not disprove it. */
  noteFailure(zone: number, failure: ZoneFailure): void {
    const before = this.#failures.get(zone);
    if (failure.what === "silent" && before?.what === "late" && failure.atMs - before.atMs < LIMITS.lateReplyMs) return;
    this.#failures.delete(zone);
    this.#failures.set(zone, failure);
    const [oldest] = this.#failures.keys();
    if (this.#failures.size > LIMITS.failedZones && oldest !== undefined) this.#failures.delete(oldest);
  }

  failureOf(zone: number): ZoneFailure | undefined {
    return this.#failures.get(zone);
  }

  /** A query to it came back to us through a container. */
  markLooping(nowMs: number): void {
    this.#loopsUntilMs = nowMs + LIMITS.loopMs;
  }

  isLooping(nowMs: number): boolean {
    return nowMs < this.#loopsUntilMs;
  }
}

/**
 * Whether a server is silent to one kind of query, such as those with EDNS or those over UDP, while it answers others.
 * Packets get lost, and some names take long: so one silence is enough only where no such query was answered lately, and
 * otherwise a few in a row are needed. It ends with the next answer to such a query, and after some time (RFC 6891, 6.2.2).
 */
class Silence {
  #answeredMs = -Infinity;
  #unanswered = 0;
  #untilMs = -Infinity;

  /** A query of this kind was answered. */
  recordAnswer(nowMs: number): void {
    this.#answeredMs = nowMs;
    this.#unanswered = 0;
    this.#untilMs = -Infinity;
  }

  /** One was not answered in time. */
  recordSilence(): void {
    this.#unanswered++;
  }

  /** Another kind of query was answered while one of this kind was not. Returns whether the server is silent to this kind from now on. */
  recordOther(nowMs: number): boolean {
    if (!this.isSuspected(nowMs)) return false;
    this.#untilMs = nowMs + LIMITS.silentMs;
    return true;
  }

  /** It has been silent too often for lost packets. */
  get isRepeated(): boolean {
    return this.#unanswered >= LIMITS.silencesInRow;
  }

  /** Whether it is worth trying another kind of query. */
  isSuspected(nowMs: number): boolean {
    return this.isRepeated || !this.isAnsweredLately(nowMs);
  }

  isAnsweredLately(nowMs: number): boolean {
    return nowMs - this.#answeredMs < LIMITS.silentMs;
  }

  isKnown(nowMs: number): boolean {
    return nowMs < this.#untilMs;
  }

  forget(): void {
    this.#untilMs = -Infinity;
  }
}
