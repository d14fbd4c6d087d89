/**
 * AdaptiveForwarder: asks upstream for everybody. Identical questions in flight are one flight with several who wait for
 * it; what comes back is kept, and handed to each in the form in which it asked. When all servers fail, a reply that is
 * over stands in for them, and where there is none the failure says why.
 */
import { EXTENDED_ERROR, errorOption } from "../../base/dns/extended-error.ts";
import { RCODE } from "../../base/dns/rcode.ts";
import { TYPE } from "../../base/dns/record-type.ts";
import { MESSAGE_BYTES_MAX } from "../../base/dns/sizes.ts";
import { LIMITS } from "../../base/limits.ts";
import { guard } from "../../base/lib/guard.ts";
import type { RandomIds } from "../../base/lib/random-ids.ts";
import type { Behaviour } from "../../base/model/behaviour.ts";
import type { UpstreamPolicy } from "../../base/model/upstream-policy.ts";
import type { Client } from "../client/client.ts";
import { CacheWriter } from "../cache/cache-writer.ts";
import { type CacheReader, STALE_AGE, staleError } from "../cache/cache-reader.ts";
import type { CacheEntry } from "../cache/entry.ts";
import { type CacheKey, isSameKey } from "../cache/key.ts";
import type { CacheOwner, ReplyCache } from "../cache/reply-cache.ts";
import { NOT_SHAREABLE, isDnssecOk } from "../cache/shareable.ts";
import type { Meter } from "../record/meter.ts";
import type { Forward } from "../ports.ts";
import type { NameserverPool, ServerList } from "../upstream/nameserver-pool.ts";
import type { Trace } from "../trace.ts";
import { type FreshReply, readFreshReply } from "../wire/shared-reply.ts";
import { Admission } from "./admission.ts";
import { Deadlines } from "./deadlines.ts";
import { Waiter } from "./waiter.ts";
import type { UpstreamQueryHooks, UpstreamResult } from "./upstream-query-plan.ts";
import { queryFor, queryForKey } from "./shared-query.ts";
import { type UpstreamRequest, InFlightQuery, cacheKeyOf, hasSignedWaiter } from "./in-flight-query.ts";
import { type Loop, type LoopGuard, isBelow } from "../upstream/loop-guard.ts";

/** Told of every query that no server answered, for the log. */
type OnFailure = (reason: string) => void;

export interface AdaptiveParts {
  readonly behaviour: Behaviour;
  readonly policy: UpstreamPolicy;
  readonly pool: NameserverPool;
  readonly cache: ReplyCache;
  readonly reader: CacheReader;
  readonly loopGuard: LoopGuard;
  readonly ids: RandomIds;
  readonly now: () => number;
  readonly onFailure: OnFailure;
  /** What all containers together may have in flight. */
  readonly queriesMax: number;
  readonly meter?: Meter | undefined;
}

const FRESH = { seconds: 0 };
const TRANSFERS = new Set<number>([TYPE.IXFR, TYPE.AXFR]);
/** Who joins a flight later than this would have too little of its time. */
const JOIN_SHARE = 0.5;

export class AdaptiveForwarder {
  readonly #parts: AdaptiveParts;
  readonly #trips = new Map<number, InFlightQuery>();
  readonly #all = new Set<InFlightQuery>();
  readonly #hooks: UpstreamQueryHooks;
  readonly #admission: Admission;
  readonly #keeping: CacheWriter;
  #refreshing = 0;
  #turn = 0;

  constructor(parts: AdaptiveParts) {
    this.#parts = parts;
    const { now, ids, meter, queriesMax } = parts;
    this.#admission = new Admission(queriesMax);
    this.#keeping = new CacheWriter(parts);
    this.#hooks = {
      now,
      random: () => ids.next(),
      deadlines: new Deadlines(now),
      meter,
      onResult: (flight, landing) => this.#landSafely(flight as InFlightQuery, landing),
      onLate: (flight) => this.#standIn(flight as InFlightQuery),
    };
  }

  /** Queries that have not been answered yet. */
  get inFlight(): number {
    return this.#admission.inFlight;
  }

  readonly forward: Forward = (client, deferred, transport, respond) => {
    const { behaviour, now } = this.#parts;
    const heldBytes = this.#admission.admit(client, deferred.query.length);
    const delivery = new Waiter({
      client,
      deferred,
      transport,
      arrivedMs: now(),
      fits: behaviour.handlesTruncation,
      heldBytes,
      respond,
      onDone: this.#onDone,
    });
    if (heldBytes === 0) guard.defer(client.number, () => this.#refuse(delivery));
    else if (client.slots.tryTake()) this.#boardSafely(delivery);
    else this.#wait(delivery);
  };

  readonly #onDone = ({ client, heldBytes }: Waiter): number => {
    this.#admission.release(client, heldBytes);
    return this.#parts.now();
  };

  #wait(delivery: Waiter): void {
    delivery.client.slots.take(
      () => this.#boardSafely(delivery),
      // Nobody is called back before this call has returned.
      () => guard.defer(delivery.client.number, () => this.#refuse(delivery)),
    );
  }

  /** Asks for a kept reply anew; nobody waits for it. */
  refresh(client: Client, lane: ServerList, entry: CacheEntry): void {
    if (this.#refreshing >= LIMITS.prefetchesAtOnce || !entry.hasReply || this.#trips.has(entry.hash)) return;
    const { key } = entry;
    const question = queryForKey(key);
    this.#refreshing++;
    this.#keeping.beginRefresh(entry);
    const message = queryFor(question, question.length, key.bits);
    this.#depart({
      client,
      serverList: lane,
      key,
      isRefresh: true,
      message,
      questionEnd: question.length,
      waiters: [],
    });
  }

  /** What servers say from now on may be something else: nothing that is on its way is kept, and nobody joins it. */
  invalidate(): void {
    this.#trips.clear();
    this.#keeping.clear();
    this.#parts.pool.dropHostServers();
  }

  /**
   * Forgets what servers said of one name, or of all; what is on its way is not kept either. Returns how many replies went,
   * and how many were on their way.
   */
  flush(name: string | undefined): { readonly replies: number; readonly inFlight: number } {
    let inFlight = 0;
    for (const [hash, { request: errand }] of this.#trips) {
      if (name !== undefined && errand.key?.name !== name) continue;
      this.#trips.delete(hash);
      inFlight++;
    }
    return { replies: this.#keeping.removeNamed(name), inFlight };
  }

  /** What of the cache is charged to a container; to nobody: to those that are gone. */
  ownerOf(client: Client | undefined): CacheOwner | undefined {
    return this.#keeping.ownerOf(client);
  }

  /** A server was found to lead back to a container: what that waits for is asked of others, and with that the loop ends. */
  excludeLooping(client: Client, { nameserver, suffix }: Loop): void {
    for (const { request: errand } of this.#all) {
      if (!errand.serverList.nameservers.includes(nameserver)) continue;
      const looping = errand.waiters.filter((one) => one.client === client && isBelow(one.deferred.name, suffix));
      for (const delivery of looping) {
        errand.waiters.splice(errand.waiters.indexOf(delivery), 1);
        guard.defer(client.number, () => this.#boardSafely(delivery));
      }
    }
  }

  /** A defect before anybody is asked is told like one after it. */
  #boardSafely(delivery: Waiter): void {
    const { number } = delivery.client;
    if (!guard.run("upstream", number, () => this.#board(delivery))) {
      guard.defer(number, () => this.#failOf(delivery));
    }
  }

  #failOf(delivery: Waiter): void {
    if (this.#mayHave(delivery)) delivery.fail(RCODE.SERVFAIL, this.#error(...INTERNAL_ERROR));
  }

  #board(delivery: Waiter): void {
    const { behaviour, pool: fleet, loopGuard: loops } = this.#parts;
    const { client, deferred } = delivery;
    // It may have had its answer meanwhile.
    if (delivery.isDone) return;
    const lane = fleet.serverListFor(client, deferred.route);
    if (lane.nameservers.length === 0 || deferred.query.length > MESSAGE_BYTES_MAX) {
      deferred.trace?.recordAnswer("servers", NO_NAMESERVER[1]);
      guard.defer(client.number, () => {
        if (this.#mayHave(delivery)) delivery.fail(RCODE.SERVFAIL, this.#error(...NO_NAMESERVER));
      });
      return;
    }
    const leadingBack = loops.loopingServers(client, lane.nameservers, deferred.name);
    const { questionEnd } = deferred;
    if (deferred.bits === NOT_SHAREABLE || leadingBack.length > 0) {
      // What is asked of others than usual is nobody else's answer.
      const message = Buffer.from(deferred.query);
      this.#depart({
        client,
        serverList: lane,
        looping: leadingBack,
        key: undefined,
        message,
        questionEnd,
        waiters: [delivery],
      });
      return;
    }
    const key = cacheKeyOf(delivery, lane);
    const trip = this.#tripOf(key);
    // The same question again while it is being asked: somebody else's, or ours, by way of the server.
    if (trip !== undefined && behaviour.guardsLoops) loops.suspect(client, lane.nameservers, key.name);
    const isAlike = behaviour.handlesTruncation || delivery.transport === "udp";
    if (trip !== undefined && behaviour.coalesces && isAlike && !delivery.isRequeued && this.#isEarly(trip)) {
      trip.request.waiters.push(delivery);
      this.#tellJoined(trip, deferred.trace);
      return;
    }
    const message = queryFor(deferred.query, deferred.questionEnd, deferred.bits);
    this.#depart({ client, serverList: lane, key, message, questionEnd, waiters: [delivery] });
  }

  #depart(errand: UpstreamRequest): void {
    const { behaviour, policy, now } = this.#parts;
    const { client, serverList: lane, key, message, questionEnd, waiters: waiting } = errand;
    const isStream = waiting[0]?.transport === "tcp";
    const trip = new InFlightQuery(
      errand,
      {
        nameservers: lane.nameservers,
        looping: errand.looping ?? [],
        clientNumber: client.number,
        arrivedMs: waiting[0]?.arrivedMs ?? now(),
        policy: policy.forward,
        hedges: behaviour.hedges,
        fetchesWhole: behaviour.handlesTruncation || isStream,
        // Whoever signed a query checks the signature of its reply, as it came.
        checksReplies: behaviour.checksReplies && !hasSignedWaiter(waiting),
        // A question of its own may be one that only a stream can answer, as a transfer is.
        usesTcp: policy.forward.usesTcp || (isStream && key === undefined),
        endMs: (waiting[0]?.arrivedMs ?? now()) + Math.min(policy.forward.budgetMs, client.view.budgetMs ?? Infinity),
        dial: client.dial,
        isTransfer: TRANSFERS.has(waiting[0]?.deferred.type ?? 0),
        streamsTo: (nameserver) => this.#parts.pool.streamsTo(client, nameserver),
        message,
        questionEnd,
        isOptOurs: key !== undefined,
        turn: this.#turn++,
      },
      this.#hooks,
    );
    this.#all.add(trip);
    const trace = waiting[0]?.deferred.trace;
    if (trace !== undefined) trace.attachJournal(trip.journal);
    if (key !== undefined) this.#trips.set(key.hash, trip);
    trip.start();
  }

  /** Whatever goes wrong with a reply, everybody who waits for it gets an answer. */
  #landSafely(trip: InFlightQuery, landing: UpstreamResult): void {
    const { client, waiters: waiting } = trip.request;
    if (guard.run("upstream", client.number, () => this.#land(trip, landing))) return;
    for (const delivery of waiting) {
      guard.run("upstream", delivery.client.number, () => this.#failOf(delivery));
    }
  }

  #land(trip: InFlightQuery, landing: UpstreamResult): void {
    const { key, isRefresh, waiters: waiting, questionEnd } = trip.request;
    const isCurrent = key !== undefined && this.#trips.get(key.hash) === trip;
    this.#all.delete(trip);
    if (isCurrent) this.#trips.delete(key.hash);
    if (isRefresh === true && key !== undefined) {
      this.#keeping.endRefresh(key);
      this.#refreshing--;
    }
    if (landing.isOwnWant) this.#moveOthers(trip);
    if (landing.kind === "failed") return this.#landFailed(trip, landing, isCurrent && !landing.isOwnWant);
    // Without EDNS no records of DNSSEC come, and whoever asks for them next may get them.
    const isLess = key !== undefined && landing.isPlain && isDnssecOk(key.bits);
    const reply = key === undefined ? undefined : readFreshReply(landing.message);
    const isAsked = reply?.questionEnd === questionEnd;
    if (isCurrent && isAsked && !isLess) this.#keep(trip.request, key, reply);
    for (const delivery of waiting) {
      if (!this.#mayHave(delivery)) continue;
      // A stream has room for everything: truncated there means that nobody could get the rest.
      if (!landing.isWhole && delivery.transport === "tcp") delivery.fail(RCODE.SERVFAIL, this.#error(...TRUNCATED));
      else if (isAsked) delivery.sendShared(reply, FRESH, landing.server);
      else delivery.sendRaw(landing.message, landing.server);
    }
  }

  /** Whoever has joined is not to suffer for what whoever asked first has used up: they ask for themselves, once. */
  #moveOthers({ request: { client, waiters: waiting } }: InFlightQuery): void {
    for (const delivery of waiting.filter((one) => one.client !== client && !one.isDone && !one.isRequeued)) {
      waiting.splice(waiting.indexOf(delivery), 1);
      delivery.isRequeued = true;
      guard.defer(delivery.client.number, () => this.#boardSafely(delivery));
    }
  }

  #keep({ client, serverList: lane, waiters: waiting }: UpstreamRequest, key: CacheKey, reply: FreshReply): void {
    const seconds = this.#keeping.store(client, lane, key, reply);
    const what = seconds === 0 ? "not kept" : `kept for ${seconds} s`;
    for (const { deferred } of waiting) deferred.trace?.record("cache", what);
  }

  #landFailed(trip: InFlightQuery, landing: Extract<UpstreamResult, { kind: "failed" }>, isCurrent: boolean): void {
    const { failures, wasSilent, told } = landing;
    const { key, client, waiters: waiting } = trip.request;
    const reason = failures.map(({ server, reason: what }) => `${server}: ${what}`).join("; ") || NO_NAMESERVER[1];
    this.#parts.onFailure(reason);
    this.#standIn(trip);
    const why = told ?? this.#error(wasSilent ? EXTENDED_ERROR.unreachable : EXTENDED_ERROR.network, reason);
    if (key !== undefined && isCurrent) {
      this.#keeping.storeFailure(client, key, why ?? this.#error(EXTENDED_ERROR.cachedError, reason), wasSilent);
    }
    for (const delivery of waiting) if (this.#mayHave(delivery)) delivery.fail(RCODE.SERVFAIL, why);
  }

  /** Answers those who wait with a reply that is over, if there is one. The flight goes on. */
  #standIn({ request: { key, serverList: lane, waiters: waiting } }: InFlightQuery): void {
    const stale = key === undefined ? undefined : this.#keeping.useStale(key, lane);
    if (stale === undefined) return;
    for (const delivery of waiting) {
      if (!this.#mayHave(delivery)) continue;
      this.#keeping.countStale();
      delivery.deferred.trace?.recordAnswer("cache", "a reply that is over stands in (stale)");
      const why = this.#parts.behaviour.sendsExtendedErrors ? staleError(stale) : undefined;
      delivery.sendShared(stale, STALE_AGE, undefined, why);
    }
  }

  /** Whether it still waits for its answer, which is to follow at once: its slot is free for the next one. */
  #mayHave(delivery: Waiter): boolean {
    if (delivery.isDone) return false;
    delivery.releaseSlot();
    return true;
  }

  #tellJoined(trip: InFlightQuery, trace: Trace | undefined): void {
    trace?.record("servers", "the same is being asked already, and its reply is waited for");
    trace?.attachJournal(trip.journal);
  }

  #refuse(delivery: Waiter): void {
    delivery.deferred.trace?.recordAnswer("servers", "refused: too many queries of this container are in flight");
    delivery.fail(RCODE.REFUSED, this.#error(EXTENDED_ERROR.other, "too many queries of this container are in flight"));
  }

  #tripOf(key: CacheKey): InFlightQuery | undefined {
    const trip = this.#trips.get(key.hash);
    const other = trip?.request.key;
    return other !== undefined && isSameKey(other, key) ? trip : undefined;
  }

  #isEarly({ startMs }: InFlightQuery): boolean {
    const { policy, now } = this.#parts;
    return now() - startMs < policy.forward.budgetMs * JOIN_SHARE;
  }

  #error(code: number, text: string): Buffer | undefined {
    return this.#parts.behaviour.sendsExtendedErrors ? errorOption(code, text) : undefined;
  }
}

const TRUNCATED = [
  EXTENDED_ERROR.network,
  "the reply is too large for UDP, and the nameserver cannot be reached by TCP",
] as const;
const INTERNAL_ERROR = [EXTENDED_ERROR.other, "a defect of dns11"] as const;
const NO_NAMESERVER = [EXTENDED_ERROR.prohibited, "no nameserver may be asked from here"] as const;
