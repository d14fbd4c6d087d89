/**
 * The query's way, built from its parts in the order in which a query meets them: listen, answer (wire, policy, cache),
 * forward, upstream. Settings that change have it built anew; queries that are on their way end where they began.
 */
import { isDeepStrictEqual } from "node:util";

import { LIMITS } from "../base/limits.ts";
import type { RunSettings } from "../config/settings.ts";
import type { OpenEndpointFor } from "../container/attach/endpoint.ts";
import { MessageBlock } from "../kernel/message-block.ts";
import { RandomIds } from "../base/lib/random-ids.ts";
import { serverText } from "../base/model/server-text.ts";
import type { Server } from "../base/model/view.ts";
import type { QueryReadings } from "../metrics/metrics.ts";
import { type Log, Throttle } from "../base/log/log.ts";
import { RateLimitedLog } from "../base/log/rate-limited-log.ts";
import { Answerer } from "../query/answer.ts";
import { CacheReader } from "../query/cache/cache-reader.ts";
import { ReplyCache } from "../query/cache/reply-cache.ts";
import { AdaptiveForwarder } from "../query/forward/adaptive.ts";
import { LoopGuard } from "../query/upstream/loop-guard.ts";
import { SequentialForwarder } from "../query/forward/sequential.ts";
import type { SlotLimit } from "../query/client/slots.ts";
import { QueryHistories } from "../query/history/query-histories.ts";
import { Endpoint } from "../query/listen/endpoint.ts";
import { type Forward, SLOT_BYTES } from "../query/ports.ts";
import { type TcpParts, streamBlock } from "../query/listen/tcp-connection.ts";
import type { UdpParts } from "../query/listen/udp.ts";
import { Meter } from "../query/record/meter.ts";
import { sharePools } from "../query/client/shares.ts";
import { NameserverPool } from "../query/upstream/nameserver-pool.ts";
import { TurnBudget } from "../query/upstream/turn-budget.ts";
import { descriptorsMax } from "../kernel/descriptors.ts";
import { raiseInlineLimit } from "./inline-limit.ts";

export interface QuerySide {
  readonly meter: Meter;
  readonly readings: () => QueryReadings;
  readonly openEndpointFor: OpenEndpointFor;
  /** Who is asked has changed, or those who are asked ask others: what they said before may be wrong. */
  readonly onUpstreamsChanged: () => void;
  readonly reconfigure: (settings: RunSettings) => void;
  /** What containers asked lately. */
  readonly histories: QueryHistories;
  /** Who answers now; after another reconfiguration it may be somebody else. */
  readonly asking: () => QueryPipeline;
}

/** What settings exchange. */
interface Answering extends Pick<UdpParts & TcpParts, "answerer" | "forward" | "queryBytesMax" | "pipelinedMax"> {
  readonly pipeline: QueryPipeline;
}

/** Failures of servers and defects are told at most this often. */
const LOG_EVERY_MS = 10_000;

/** Told of each new client: its number, and its container. */
type OnClient = (client: number, containerId: string) => void;

export function composeQuerySide(
  settings: RunSettings,
  log: Log,
  repeats: RateLimitedLog = new RateLimitedLog(log),
  onClient: OnClient = () => undefined,
): QuerySide {
  raiseInlineLimit();
  const meter = new Meter();
  const parts: AnsweringParts = { block: new MessageBlock(LIMITS.udpBatch, SLOT_BYTES), log, repeats, meter };
  const slots = slotLimit(settings);
  const histories = new QueryHistories(settings.queries.names);
  const shares = sharePools(descriptorsMax());
  let current = settings;
  let answering = composeAnswering(settings, parts);
  const shared = { meter };
  const udp: UdpParts = { ...answering, ...shared, block: parts.block, isBatching: settings.isBatching };
  const tcp: TcpParts = { ...answering, ...shared, block: streamBlock() };
  return {
    meter,
    readings: () => answering.pipeline.readings(),
    openEndpointFor: (containerId) => (sockets, view, dial) => {
      const endpoint = new Endpoint(sockets, { containerId, view, dial }, { udp, tcp, slots, histories, shares });
      onClient(endpoint.client.number, containerId);
      return endpoint;
    },
    histories,
    asking: () => answering.pipeline,
    onUpstreamsChanged: () => answering.pipeline.forget(),
    reconfigure: (next) => {
      // What is remembered is kept where nobody wants it otherwise: a new route is no reason to ask everything anew.
      const isSame = isDeepStrictEqual([next.behaviour, next.upstream], [current.behaviour, current.upstream]);
      if (!isSame) {
        // Before anything else: it may find no room, and then nothing has changed.
        answering = composeAnswering(next, parts);
        Object.assign(slots, slotLimit(next));
        Object.assign(udp, answering);
        Object.assign(tcp, answering);
      }
      current = next;
      histories.setNames(next.queries.names);
    },
  };
}

/** What outlives a change of settings. */
interface AnsweringParts {
  readonly block: MessageBlock;
  readonly log: Log;
  readonly repeats: RateLimitedLog;
  readonly meter: Meter;
}

function composeAnswering(settings: RunSettings, parts: AnsweringParts): Answering {
  const { behaviour } = settings;
  const asking = behaviour.failsOver ? adaptive(settings, parts) : sequential(settings, parts);
  return {
    pipeline: asking,
    answerer: asking.answerer,
    forward: asking.forward,
    queryBytesMax: behaviour.readsLongQueries ? LIMITS.udpQueryBytes : LIMITS.udpQueryBytesStrict,
    pipelinedMax: behaviour.pipelines ? LIMITS.tcpPipelined : 1,
  };
}

interface QueryPipeline {
  readonly answerer: Answerer;
  readonly forward: Forward;
  readonly forget: () => void;
  readonly readings: () => QueryReadings;
  /** What is remembered of servers and of their replies; nothing where they are asked as Docker asks them. */
  readonly state?: PipelineState;
}

interface PipelineState {
  readonly forwarder: AdaptiveForwarder;
  readonly fleet: NameserverPool;
  readonly cache: ReplyCache;
  readonly isCaching: boolean;
  readonly now: () => number;
}

/** As Docker asks: one server after the other, nothing remembered. */
function sequential({ behaviour, upstream }: RunSettings, { log, meter }: AnsweringParts): QueryPipeline {
  const failures = new Throttle(LOG_EVERY_MS);
  const { forward } = new SequentialForwarder(
    behaviour,
    (server, reason) => {
      failures.run((heldBack) => log.warn({ server: serverText(server), reason, heldBack }, "nameserver failed"));
    },
    Math.min(LIMITS.forwardQueriesTotal, descriptorsMax() * LIMITS.forwardDescriptorShare),
    meter,
  );
  return {
    answerer: new Answerer(behaviour, { localOnly: upstream.localOnly }),
    forward,
    forget: () => undefined,
    readings: () => NOTHING,
  };
}

const NOTHING: QueryReadings = { entries: 0, bytes: 0, bytesMax: 0, nameservers: [] };

function adaptive({ behaviour, upstream }: RunSettings, { block, log, repeats, meter }: AnsweringParts): QueryPipeline {
  const now = (): number => performance.now();
  const ids = new RandomIds();
  const failures = new Throttle(LOG_EVERY_MS);
  const socketsMax = Math.min(LIMITS.upstreamSocketsTotal, descriptorsMax() * LIMITS.upstreamDescriptorShare);
  const fleet = new NameserverPool(
    {
      block,
      budget: new TurnBudget(LIMITS.upstreamBatch),
      ids,
      now,
      socketsMax,
      pools: new Set(),
      sockets: { open: 0 },
    },
    (server, isUp, reason) => logHealth(repeats, server, isUp, reason),
  );
  const cache = new ReplyCache(behaviour.caches ? upstream.cache.bytesMax : 0, meter.cache);
  const memory = new CacheReader({
    cache,
    pool: fleet,
    behaviour,
    policy: upstream.cache,
    now,
    onRefresh: (client, lane, entry) => forwarder.refresh(client, lane, entry),
  });
  const guard = new LoopGuard(now, (client, loop) => {
    const server = serverText(loop.nameserver.server);
    const text = "a nameserver leads back to dns11 through a container; that container's queries are kept from it";
    repeats.log("warn", server, { server, container: client.history.containerId }, text, "nameserver");
    forwarder.excludeLooping(client, loop);
  });
  const forwarder = new AdaptiveForwarder({
    behaviour,
    policy: upstream,
    pool: fleet,
    cache,
    reader: memory,
    loopGuard: guard,
    ids,
    now,
    onFailure: (reason) => {
      failures.run((heldBack) => log.warn({ reason, heldBack }, "no nameserver answered"));
    },
    queriesMax: LIMITS.forwardQueriesShared,
    meter,
  });
  return {
    answerer: new Answerer(behaviour, {
      loopGuard: guard,
      localOnly: upstream.localOnly,
      ...(behaviour.caches && { cache: memory }),
    }),
    forward: forwarder.forward,
    forget: () => forwarder.invalidate(),
    readings: () => ({
      entries: cache.size,
      bytes: cache.bytes,
      bytesMax: behaviour.caches ? upstream.cache.bytesMax : 0,
      nameservers: statesOf(fleet, now()),
    }),
    state: { forwarder, fleet, cache, isCaching: behaviour.caches, now },
  };
}

/** Each by its name, once: the same server may stand in several lists, in some of them as a backup. */
function statesOf({ hostNameservers: nameservers }: NameserverPool, nowMs: number): QueryReadings["nameservers"] {
  const states = new Map<string, boolean>();
  for (const { server, health } of nameservers) {
    const name = serverText(server);
    states.set(name, states.get(name) === true || !health.checkIsDown(nowMs));
  }
  return [...states].map(([server, isUp]) => ({ server, isUp }));
}

/** A server that comes and goes is one thing that happens, not many. */
function logHealth(repeats: RateLimitedLog, server: Server, isUp: boolean, reason: string): void {
  const name = serverText(server);
  const about = { server: name, reason };
  if (isUp) repeats.log("info", name, about, "nameserver is back", "nameserver");
  else repeats.log("warn", name, about, "nameserver is down; it is asked last", "nameserver");
}

function slotLimit({ behaviour, upstream }: RunSettings): SlotLimit {
  const waitMs = behaviour.failsOver ? LIMITS.forwardWaitShortMs : LIMITS.forwardWaitMs;
  return { max: upstream.forward.queriesMax, waitMs };
}
