/**
 * AdaptiveForwarder: forwards queries for all containers. Identical questions in flight become one upstream query with
 * several waiters. Replies are cached, and each waiter gets them in the form that its query needs. When all servers
 * fail, waiters get a stale answer, or SERVFAIL with the reason.
 */
import { EXTENDED_ERROR, errorOption } from "../../base/dns/extended-error.ts";
import { RCODE } from "../../base/dns/rcode.ts";
import { TYPE } from "../../base/dns/record-type.ts";
import {
  MESSAGE_BYTES_MAX,
  AD,
  ADDITIONALS_AT,
  CODES_AT,
  FLAGS_AT,
  HEADER_BYTES,
  QUESTIONS_AT,
  RD,
} from "../../base/dns/header.ts";
import { LIMITS } from "../../base/limits.ts";
import { guard } from "../../base/lib/guard.ts";
import { IndexedSet } from "../../base/lib/indexed-set.ts";
import type { RandomIds } from "../../base/lib/random-ids.ts";
import type { Behaviour } from "../../base/model/behaviour.ts";
import type { UpstreamPolicy } from "../../base/model/upstream-policy.ts";
import { missingText, serverText } from "../../base/model/server-text.ts";
import type { Route } from "../../base/model/view.ts";
import type { Client } from "../client/client.ts";
import type { DeferredQuery, Forward } from "../ports.ts";
import { CacheWriter, notCachedReason } from "../cache/cache-writer.ts";
import { type CacheReader, STALE_AGE, staleError } from "../cache/cache-reader.ts";
import { type CacheEntry, type CacheKey, isSameKey, keyHash } from "../cache/entry.ts";
import type { CacheOwner, ReplyCache } from "../cache/reply-cache.ts";
import type { Meter } from "../record/meter.ts";
import type { NameserverPool, ServerList } from "../upstream/nameserver-pool.ts";
import { AnswerEra } from "../query-policy.ts";
import { sentQuery } from "../wire/bare-query.ts";
import type { Trace } from "../trace.ts";
import {
  withoutHopByHop,
  replyWithoutClientOption,
  NOT_SHAREABLE,
  isDnssecOk,
  requestsAuthentic,
  upstreamFlags,
} from "../wire/hop-options.ts";
import { type FreshReply, readFreshReply } from "../wire/shared-reply.ts";
import { Admission } from "./failed-reply.ts";
import { Waiter } from "./waiter.ts";
import {
  type EarlierReply,
  type UpstreamQueryHooks,
  type UpstreamResult,
  type UpstreamQueryPlan,
  Deadlines,
} from "./upstream-query-plan.ts";
import { besideDocker } from "./server-order.ts";
import { type Loop, type LoopGuard, isBelow } from "../upstream/loop-guard.ts";
import { setU16, copyBytes } from "../../base/dns/bytes.ts";
import { OPT_BYTES, writeOpt } from "../../base/dns/opt.ts";
import { queryOf } from "../../base/dns/query.ts";
import type { Nameserver } from "../upstream/nameserver.ts";
import { UpstreamQuery } from "./upstream-query.ts";

/** Called for each client query that servers have failed. */
type OnFailure = (reason: string, client: Client, query: Pick<DeferredQuery, "name" | "type">) => void;

type Received = Extract<UpstreamResult, { kind: "reply" }>;

interface AdaptiveParts {
  readonly behaviour: Behaviour;
  readonly policy: UpstreamPolicy;
  readonly pool: NameserverPool;
  readonly cache: ReplyCache;
  readonly reader: CacheReader;
  readonly loopGuard: LoopGuard;
  readonly ids: RandomIds;
  readonly now: () => number;
  readonly onFailure: OnFailure;
  /** Limit over all containers. */
  readonly queriesMax: number;
  readonly meter?: Meter | undefined;
  readonly era?: AnswerEra;
}

const FRESH = { seconds: 0 };
const TRANSFERS = new Set<number>([TYPE.IXFR, TYPE.AXFR]);
/** The share of its time budget that a query which joins another one must still have there. */
const JOIN_SHARE = 0.5;

export class AdaptiveForwarder {
  readonly #parts: AdaptiveParts;
  readonly #running = new IndexedSet<InFlightQuery>();
  /** Indexes into `#running`, by the hash of the question. */
  readonly #byHash = new Map<number, number>();
  readonly #hooks: UpstreamQueryHooks;
  readonly #admission: Admission;
  readonly #writer: CacheWriter;
  readonly #era: AnswerEra;
  #refreshing = 0;
  #rotation = 0;

  constructor(parts: AdaptiveParts) {
    this.#parts = parts;
    const { now, ids, meter, queriesMax } = parts;
    this.#admission = new Admission(queriesMax);
    this.#writer = new CacheWriter(parts);
    this.#era = parts.era ?? new AnswerEra();
    this.#hooks = {
      now,
      random: () => ids.next(),
      deadlines: new Deadlines(now),
      meter,
      onResult: (query, result) => this.#finishSafely(query as InFlightQuery, result),
      onLate: (query) => this.#serveStale(query as InFlightQuery),
    };
  }

  /** Queries without an answer yet. */
  get inFlight(): number {
    return this.#admission.inFlight;
  }

  readonly forward: Forward = (client, deferred, transport, respond) => {
    const { behaviour, now } = this.#parts;
    const heldBytes = this.#admission.admit(client, deferred.query.length);
    const waiter = new Waiter({
      client,
      deferred,
      transport,
      arrivedMs: now(),
      era: this.#era,
      handlesTruncation: behaviour.handlesTruncation,
      heldBytes,
      respond,
      onDone: this.#onDone,
    });
    if (heldBytes === 0) guard.defer(client.number, () => this.#refuse(waiter));
    else if (client.slots.tryTake()) this.#startSafely(waiter);
    else this.#waitForSlot(waiter);
  };

  readonly #onDone = ({ client, heldBytes }: Waiter): number => {
    this.#admission.release(client, heldBytes);
    return this.#parts.now();
  };

  #waitForSlot(waiter: Waiter): void {
    waiter.client.slots.take(
      () => this.#startSafely(waiter),
      // Deferred: the caller must not be called back before this call has returned.
      () => guard.defer(waiter.client.number, () => this.#refuse(waiter)),
    );
  }

  /** Refreshes a cache entry; no client waits for it. Returns whether it has begun. */
  refresh(client: Client, serverList: ServerList, entry: CacheEntry): boolean {
    if (this.#refreshing >= LIMITS.prefetchesAtOnce || !entry.hasReply || this.#byHash.has(entry.hash)) return false;
    // In the background only Docker's resolver would be asked, and its failure says nothing about the other servers.
    if (serverList.isDocker && serverList.nameservers.some(({ server }) => server.isBackup === true)) return false;
    const { key } = entry;
    const question = queryForKey(key);
    this.#refreshing++;
    this.#writer.beginRefresh(entry);
    const hasOpt = isDnssecOk(key.bits);
    const extras = { hasOpt, isAuthentic: entry.wasAskedForAd && !hasOpt };
    const message = queryFor(question, question.length, key.bits, extras);
    this.#send({ client, serverList, key, isRefresh: true, message, questionEnd: question.length, waiters: [] });
    return true;
  }

  /** Upstream replies may have changed: queries in flight are not cached, and no query joins them. */
  invalidate(): void {
    this.#byHash.clear();
    this.#era.end();
    this.#writer.clear();
    this.#parts.pool.dropHostServers();
  }

  /**
   * Removes the cache entries of one name, or all, and does not cache what is in flight for it. Returns how many
   * replies were removed, and how many queries were in flight.
   */
  flush(name: string | undefined): { readonly replies: number; readonly inFlight: number } {
    let inFlight = 0;
    for (const [hash, index] of this.#byHash) {
      if (name !== undefined && this.#running.at(index)?.request.key?.name !== name) continue;
      this.#byHash.delete(hash);
      inFlight++;
    }
    this.#era.end();
    return { replies: this.#writer.removeNamed(name), inFlight };
  }

  /** The cache usage of a container; without one, that of detached containers. */
  ownerOf(client: Client | undefined): CacheOwner | undefined {
    return this.#writer.ownerOf(client);
  }

  /**
   * A server turned out to loop back to a container: what that container waits for is sent to other servers, which ends
   * the loop.
   */
  excludeLooping(client: Client, { nameserver, suffix }: Loop): void {
    for (const { request } of this.#running) {
      if (!request.serverList.nameservers.includes(nameserver)) continue;
      const looping = request.waiters.filter((one) => one.client === client && isBelow(one.deferred.name, suffix));
      for (const waiter of looping) {
        request.waiters.splice(request.waiters.indexOf(waiter), 1);
        guard.defer(client.number, () => this.#startSafely(waiter));
      }
    }
  }

  /** An internal error before a query is sent is reported like one after it. */
  #startSafely(waiter: Waiter): void {
    const { number } = waiter.client;
    if (!guard.run("upstream", number, () => this.#start(waiter))) {
      guard.defer(number, () => this.#failInternally(waiter));
    }
  }

  #failInternally(waiter: Waiter): void {
    if (this.#claim(waiter)) waiter.fail(RCODE.SERVFAIL, this.#error(...INTERNAL_ERROR));
  }

  #start(waiter: Waiter): void {
    const { behaviour, pool, loopGuard } = this.#parts;
    const { client, deferred } = waiter;
    // It may have been answered while it waited.
    if (waiter.isDone) return;
    const serverList = pool.serverListFor(client, deferred.route);
    if (serverList.nameservers.length === 0 || deferred.query.length > MESSAGE_BYTES_MAX) {
      const reason = noServerReason(deferred.route);
      deferred.trace?.recordAnswer("servers", reason);
      guard.defer(client.number, () => {
        if (this.#claim(waiter)) waiter.fail(RCODE.SERVFAIL, this.#error(EXTENDED_ERROR.prohibited, reason));
      });
      return;
    }
    const looping = loopGuard.loopingServers(client, serverList.nameservers, deferred.name);
    const { questionEnd } = deferred;
    if (deferred.bits === NOT_SHAREABLE || looping.length > 0) {
      // A reply from other servers than usual must not be shared.
      const sent = sentQuery(deferred);
      // A signed query must arrive unchanged.
      const message = deferred.signature === undefined ? withoutHopByHop(sent, questionEnd) : Buffer.from(sent);
      this.#send({ client, serverList, looping, key: undefined, message, questionEnd, waiters: [waiter] });
      return;
    }
    const key = cacheKeyOf(waiter, serverList);
    const query = this.#inFlightFor(key);
    // The question is in flight already: this query is another client's, or our own, looped back by the server.
    if (query !== undefined && behaviour.guardsLoops) {
      const { nameservers, isDocker } = serverList;
      const asked = isDocker ? besideDocker(nameservers, deferred.query, deferred) : nameservers;
      loopGuard.suspect(client, asked, key.name);
    }
    const isShareable = behaviour.handlesTruncation || waiter.transport === "udp";
    // What waits in another container's queue to the server may wait for long.
    const isOnItsWay = query?.isSent === true || query?.request.client === client;
    const isAuthentic = deferred.policy?.isEnforcing === true || requestsAuthentic(deferred.query, 0);
    const hasAd = !isAuthentic || (query !== undefined && asksForAd(query.request));
    const mayJoin = behaviour.coalesces && isShareable && isOnItsWay && hasAd && !waiter.isRequeued;
    if (query !== undefined && mayJoin && this.#isEarly(query, client)) {
      query.request.waiters.push(waiter);
      this.#recordJoin(query, deferred.trace);
      return;
    }
    // Under an enforced policy a client must not choose whether the query has an OPT: that would carry data out.
    const hasOpt = deferred.policy?.isEnforcing === true ? deferred.isDnssecOk : deferred.hasOpt;
    const message = queryFor(sentQuery(deferred), questionEnd, deferred.bits, { hasOpt, isAuthentic });
    this.#send({ client, serverList, key, message, questionEnd, waiters: [waiter] });
  }

  #send(request: UpstreamRequest): void {
    const { behaviour, policy, now } = this.#parts;
    const { client, serverList, key, message, questionEnd, waiters } = request;
    const isStream = waiters[0]?.transport === "tcp";
    const query = new InFlightQuery(
      request,
      {
        nameservers: serverList.isDocker
          ? besideDocker(serverList.nameservers, message, waiters[0]?.deferred)
          : serverList.nameservers,
        clientOptions: serverList.clientOptions,
        looping: request.looping ?? [],
        clientNumber: client.number,
        arrivedMs: waiters[0]?.arrivedMs ?? now(),
        policy: policy.forward,
        hedges: behaviour.hedges,
        fetchesWhole: behaviour.handlesTruncation || isStream,
        // A client that signed its query verifies the signature of the reply, which must stay unchanged.
        checksReplies: behaviour.checksReplies && !hasSignedWaiter(waiters),
        // A query that cannot be shared may need TCP, such as a zone transfer.
        usesTcp: policy.forward.usesTcp || (isStream && key === undefined),
        isStream,
        endMs: (waiters[0]?.arrivedMs ?? now()) + this.#budgetMs(client),
        dial: client.dial,
        tap: client.tap,
        isTransfer: TRANSFERS.has(waiters[0]?.deferred.type ?? 0),
        queueTo: (nameserver) => this.#parts.pool.queueTo(client, nameserver),
        streamsTo: (nameserver) => this.#parts.pool.streamsTo(client, nameserver),
        share: client.shares.queryBytes,
        nameHash: waiters[0]?.deferred.nameHash ?? key?.hash ?? 0,
        message,
        questionEnd,
        isOptOurs: key !== undefined,
        rotation: this.#rotation++,
        earlier: waiters[0]?.earlier,
      },
      this.#hooks,
    );
    query.running = this.#running.add(query);
    const trace = waiters[0]?.deferred.trace;
    if (trace !== undefined) trace.attachJournal(query.openJournal());
    if (key !== undefined) this.#byHash.set(key.hash, query.running);
    query.start();
  }

  /** Whatever goes wrong with a reply, every waiter gets an answer. */
  #finishSafely(query: InFlightQuery, result: UpstreamResult): void {
    const { client, waiters } = query.request;
    if (guard.run("upstream", client.number, () => this.#finish(query, result))) return;
    for (const waiter of waiters) {
      guard.run("upstream", waiter.client.number, () => this.#failInternally(waiter));
    }
  }

  #finish(query: InFlightQuery, result: UpstreamResult): void {
    const { key, isRefresh, waiters, questionEnd } = query.request;
    const isCurrent = key !== undefined && this.#byHash.get(key.hash) === query.running;
    this.#running.remove(query.running);
    if (isCurrent) this.#byHash.delete(key.hash);
    if (isRefresh === true && key !== undefined) {
      this.#writer.endRefresh(key);
      this.#refreshing--;
    }
    if (result.isClientLimit) this.#requeueOthers(query, result);
    if (result.kind === "failed") return this.#finishFailed(query, result, isCurrent && !result.isClientLimit);
    const reply = key === undefined ? undefined : readFreshReply(result.message);
    const matchesQuestion = reply?.questionEnd === questionEnd;
    // The reply lacks what the next client may need, so it is not cached.
    if (isCurrent && result.lacksExtras) this.#writer.endFailure(key);
    else if (isCurrent && matchesQuestion) this.#store(query.request, key, reply, result);
    if (!result.isWhole) this.#requeueStreams(query);
    if (matchesQuestion) this.#give(waiters, result, reply);
    else this.#give(waiters, withoutClientOption(query.request, result), undefined);
  }

  /**
   * Each answer may have to pass a policy, which takes milliseconds for a long reply, so many waiters are answered in several turns of the
   * event loop. `shared` is undefined if the reply is for one query only.
   */
  #give(waiters: readonly Waiter[], result: Received, shared: FreshReply | undefined): void {
    const { message, isWhole, server } = result;
    const end = Math.min(waiters.length, Math.max(1, Math.floor(LIMITS.joinedReplyBytes / message.length)));
    for (let index = 0; index < end; index++) {
      const waiter = waiters[index] as Waiter;
      if (!this.#claim(waiter)) continue;
      // TCP has room for everything: truncated here means that the full reply was not available.
      if (!isWhole && waiter.transport === "tcp") waiter.fail(RCODE.SERVFAIL, this.#error(...TRUNCATED));
      else if (shared !== undefined) waiter.sendShared(shared, FRESH, server);
      else waiter.sendRaw(message, server);
    }
    if (end < waiters.length) this.#giveLater(waiters.slice(end), result, shared);
  }

  #giveLater(waiters: readonly Waiter[], result: Received, shared: FreshReply | undefined): void {
    // The receive buffer is reused by then.
    const message = Buffer.from(result.message);
    const kept = shared && readFreshReply(message);
    setImmediate(() => {
      const give = (): void => this.#give(waiters, { ...result, message }, kept);
      if (guard.run("upstream", waiters[0]?.client.number ?? 0, give)) return;
      for (const waiter of waiters) guard.run("upstream", waiter.client.number, () => this.#failInternally(waiter));
    });
  }

  /**
   * Queries that joined must not fail because of the limits of the first client: they are sent on their own, once. What is left
   * of their time may be too little for any reply, so what the first client gets is theirs if nothing better comes.
   */
  #requeueOthers({ request: { client, waiters } }: InFlightQuery, result: UpstreamResult): void {
    const others = waiters.filter((one) => one.client !== client && !one.isDone && !one.isRequeued);
    const earlier = others.length === 0 ? undefined : earlierOf(result);
    for (const waiter of others) {
      waiters.splice(waiters.indexOf(waiter), 1);
      waiter.isRequeued = true;
      waiter.earlier = earlier;
      guard.defer(waiter.client.number, () => this.#startSafely(waiter));
    }
  }

  /** A query over TCP may wait longer for the whole reply, and get it from another server. */
  #requeueStreams({ request: { waiters } }: InFlightQuery): void {
    for (const waiter of waiters.slice(1)) {
      if (waiter.transport === "udp" || waiter.isDone || waiter.isRequeued) continue;
      waiters.splice(waiters.indexOf(waiter), 1);
      waiter.isRequeued = true;
      guard.defer(waiter.client.number, () => this.#startSafely(waiter));
    }
  }

  #store(request: UpstreamRequest, key: CacheKey, reply: FreshReply, result: Received): void {
    const { client, serverList, waiters } = request;
    const { passedOver, isClientLimit } = result;
    const seconds = this.#writer.store(client, serverList, key, reply, {
      // A preferred server that did not answer this time may answer otherwise as soon as it is back.
      secondsMax: passedOver === undefined ? Number.POSITIVE_INFINITY : LIMITS.lowerReplySeconds,
      isKept: !isClientLimit,
      wasAskedForAd: asksForAd(request),
    });
    const before = passedOver === undefined ? "" : `, as ${serverText(passedOver)} may answer otherwise`;
    const why = isClientLimit ? "other containers may be answered by another server" : notCachedReason(reply);
    const what = seconds === 0 ? `not cached: ${why}` : `cached for ${seconds} s${before}`;
    for (const { deferred } of waiters) deferred.trace?.record("cache", what);
  }

  #finishFailed(query: InFlightQuery, result: Extract<UpstreamResult, { kind: "failed" }>, isCurrent: boolean): void {
    const { failures, wasSilent, extendedError } = result;
    const { key, client, waiters } = query.request;
    const reason = failures.map(({ server, reason: what }) => `${server}: ${what}`).join("; ") || NO_NAMESERVER;
    for (const waiter of waiters) {
      const { client: sender, deferred, isDone } = waiter;
      if (!isDone && deferred.isOwn !== true) this.#parts.onFailure(reason, sender, deferred);
    }
    this.#serveStale(query);
    const why = extendedError ?? this.#error(wasSilent ? EXTENDED_ERROR.unreachable : EXTENDED_ERROR.network, reason);
    if (key !== undefined && isCurrent) {
      this.#writer.storeFailure(client, key, why ?? this.#error(EXTENDED_ERROR.cachedError, reason), wasSilent);
    }
    for (const waiter of waiters) if (this.#claim(waiter)) waiter.fail(RCODE.SERVFAIL, why);
  }

  /** Answers the waiters with a stale answer, if there is one. The upstream query continues. */
  #serveStale({ request: { key, serverList, waiters } }: InFlightQuery): void {
    const stale = key === undefined ? undefined : this.#writer.useStale(key, serverList);
    if (stale === undefined) return;
    for (const waiter of waiters) {
      if (!this.#claim(waiter)) continue;
      if (waiter.deferred.isOwn !== true) this.#writer.countStale();
      waiter.deferred.trace?.recordAnswer("cache", "stale answer");
      const why = this.#parts.behaviour.sendsExtendedErrors ? staleError(stale) : undefined;
      waiter.sendShared(stale, STALE_AGE, undefined, why);
    }
  }

  /**
   * Claims a waiter that still needs its answer, which must follow at once: its slot is already free for the next
   * query. Returns false if it has been answered.
   */
  #claim(waiter: Waiter): boolean {
    if (waiter.isDone) return false;
    waiter.releaseSlot();
    return true;
  }

  #recordJoin(query: InFlightQuery, trace: Trace | undefined): void {
    trace?.record("servers", "the same question is already in flight; waiting for its reply");
    trace?.attachJournal(query.openJournal());
  }

  #refuse(waiter: Waiter): void {
    waiter.deferred.trace?.recordAnswer(
      "servers",
      "refused: too many queries in flight (of this container, or of all)",
    );
    waiter.fail(
      RCODE.REFUSED,
      this.#error(EXTENDED_ERROR.other, "too many queries in flight (of this container, or of all)"),
    );
  }

  #inFlightFor(key: CacheKey): InFlightQuery | undefined {
    const index = this.#byHash.get(key.hash);
    const query = index === undefined ? undefined : this.#running.at(index);
    const other = query?.request.key;
    return other !== undefined && isSameKey(other, key) ? query : undefined;
  }

  /** The first client may have a shorter budget than this one, or have spent some of it before the query was sent. */
  #isEarly({ endMs }: InFlightQuery, client: Client): boolean {
    return endMs - this.#parts.now() > this.#budgetMs(client) * JOIN_SHARE;
  }

  #budgetMs({ view }: Client): number {
    return Math.min(this.#parts.policy.forward.budgetMs, view.budgetMs ?? Infinity);
  }

  #error(code: number, text: string): Buffer | undefined {
    return this.#parts.behaviour.sendsExtendedErrors ? errorOption(code, text) : undefined;
  }
}

/** Only a reply that others may use as well, by its servers' order; copied, as its memory is used for other replies. */
function earlierOf(result: UpstreamResult): EarlierReply | undefined {
  if (result.kind !== "reply" || result.passedOver === undefined || !result.isWhole) return undefined;
  const { message, rcode, server, lacksExtras } = result;
  return { message: Buffer.from(message), rcode, server, lacksExtras };
}

/** Takes out of a reply that is passed on as it came what the server was told about the client. */
function withoutClientOption({ serverList, waiters, questionEnd }: UpstreamRequest, result: Received): Received {
  const { clientOptions, nameservers } = serverList;
  if (clientOptions?.[nameservers.findIndex(({ server }) => server === result.server)] === undefined) return result;
  return {
    ...result,
    message: replyWithoutClientOption(result.message, questionEnd, waiters[0]?.deferred.hasOpt === true),
  };
}

/** Whether the reply has AD if the server has validated it. */
function asksForAd({ key, message }: UpstreamRequest): boolean {
  return requestsAuthentic(message, 0) || (key !== undefined && isDnssecOk(key.bits));
}

const TRUNCATED = [
  EXTENDED_ERROR.network,
  "the reply is too large for UDP, and the nameserver cannot be reached over TCP",
] as const;
const INTERNAL_ERROR = [EXTENDED_ERROR.other, "internal error of dns11"] as const;
const NO_NAMESERVER = "no upstream server is available to this container";

/** A configured container that cannot be queried is named, because that is what to fix; without one, the route has no server. */
function noServerReason({ servers, missing = [] }: Route): string {
  if (servers.length > 0 || missing.length === 0) return NO_NAMESERVER;
  return missing.map((each) => missingText(each)).join("; ");
}

/** What the client's query has beside its question. */
interface Extras {
  readonly hasOpt: boolean;
  readonly isAuthentic: boolean;
}

/**
 * The upstream query is the same for all clients with the same question, whatever the options of the first. It has EDNS and AD only if the
 * first client has them: there are servers and networks that drop such queries, and clients behind them ask without.
 */
function queryForKey({ name, type }: CacheKey): Buffer {
  return queryOf({ labels: Buffer.from(name, "latin1"), type });
}

/** Header and question of a client's query, with our own OPT in place of the client's. */
function queryFor(message: Buffer, questionEnd: number, bits: number, { hasOpt, isAuthentic }: Extras): Buffer {
  // From the pool: a separate buffer would be one more object for the garbage collector.
  const query = Buffer.allocUnsafe(questionEnd + (hasOpt ? OPT_BYTES : 0)).fill(0, 0, HEADER_BYTES);
  copyBytes(message, HEADER_BYTES, questionEnd, query, HEADER_BYTES);
  query[FLAGS_AT] = RD;
  query[CODES_AT] = upstreamFlags(bits) | (isAuthentic ? AD : 0);
  setU16(query, QUESTIONS_AT, 1);
  if (!hasOpt) return query;
  setU16(query, ADDITIONALS_AT, 1);
  writeOpt(query, questionEnd, 0, isDnssecOk(bits));
  return query;
}

/** What is queried, and for which clients. */
interface UpstreamRequest {
  readonly client: Client;
  readonly serverList: ServerList;
  /** Servers of the list that loop back to the client. */
  readonly looping?: readonly Nameserver[];
  /** Undefined for a query that cannot be shared. */
  readonly key: CacheKey | undefined;
  readonly waiters: Waiter[];
  /** The query to send, and where its question ends. */
  readonly message: Buffer;
  readonly questionEnd: number;
  /** It refreshes a cache entry. */
  readonly isRefresh?: boolean;
}

/**
 * An upstream query with its waiters. It is one object, because there may be thousands, and everything
 * that is alive when the garbage collector runs adds to its pause.
 */
class InFlightQuery extends UpstreamQuery {
  readonly request: UpstreamRequest;
  /** When its time budget ends, which is that of the first waiter. */
  readonly endMs: number;
  /** Its index among all queries in flight. */
  running = -1;

  constructor(request: UpstreamRequest, plan: UpstreamQueryPlan, hooks: UpstreamQueryHooks) {
    super(plan, hooks);
    this.request = request;
    this.endMs = plan.endMs;
  }
}

/** The key for merging queries and caching replies. */
function cacheKeyOf({ deferred }: Waiter, { scope }: ServerList): CacheKey {
  const { name, nameHash, type, bits } = deferred;
  return { hash: keyHash(nameHash, type, bits, scope), name, type, bits, scope };
}

function hasSignedWaiter(waiters: readonly Waiter[]): boolean {
  return waiters.some(({ deferred }) => deferred.signature !== undefined);
}
