/**
 * QuerySide: the half of a run that answers queries, built in the order in which a query passes its parts: listen,
 * answer (wire, policy, cache), forward, upstream. Changed settings build a new pipeline; queries in flight finish in
 * the old one.
 */
import { isDeepStrictEqual } from "node:util";

import { LIMITS } from "../base/limits.ts";
import type { Behaviour } from "../base/model/behaviour.ts";
import type { RunSettings } from "../config/settings.ts";
import type { OpenEndpointFor } from "../container/attach/attachment-parts.ts";
import type { OpenSharedEndpoint, OpenSubnetEndpoint } from "../container/host-address/endpoints.ts";
import { MessageBlock } from "../kernel/message-block.ts";
import { PacketBatch } from "../kernel/packet-batch.ts";
import { RandomIds } from "../base/lib/random-ids.ts";
import { serverText } from "../base/model/server-text.ts";
import type { Server, View } from "../base/model/view.ts";
import type { QueryReadings } from "../metrics/metrics.ts";
import type { RateLimitedLog } from "../base/log/rate-limited-log.ts";
import { Answerer } from "../query/answer.ts";
import { CacheReader } from "../query/cache/cache-reader.ts";
import { ReplyCache } from "../query/cache/reply-cache.ts";
import { Delayer, HeldAnswers } from "../query/forward/delayer.ts";
import { DockerForwarder } from "../query/forward/docker-forwarder.ts";
import { AdaptiveForwarder } from "../query/forward/adaptive.ts";
import { type Loop, LoopGuard } from "../query/upstream/loop-guard.ts";
import { SequentialForwarder } from "../query/forward/sequential.ts";
import type { Client, Dial } from "../query/client/client.ts";
import { Clients } from "../query/client/clients.ts";
import { type SlotLimit, sharePools } from "../query/client/slots.ts";
import { FailureTables } from "../query/failures/failure-table.ts";
import { QueryHistories } from "../query/history/query-histories.ts";
import { Endpoint } from "../query/listen/endpoint.ts";
import { SharedEndpoint } from "../query/listen/shared-endpoint.ts";
import { SubnetEndpoint } from "../query/listen/subnet-endpoint.ts";
import { type Forward, SLOT_BYTES } from "../query/ports.ts";
import { type TcpParts, streamBlock } from "../query/listen/tcp-connection.ts";
import { type UdpParts, TimeSlice } from "../query/listen/udp.ts";
import { AnswerEra } from "../query/query-policy.ts";
import { Meter } from "../query/record/meter.ts";
import type { ForwardingRules } from "../query/lookup/forwarding-rules.ts";
import type { OnHealthChange } from "../query/upstream/health.ts";
import { NameserverPool } from "../query/upstream/nameserver-pool.ts";
import { ReplyBudget } from "../query/upstream/udp-socket.ts";
import { descriptorsMax, SpareDescriptors } from "../kernel/descriptors.ts";
import { LookupLog } from "./lookup-log.ts";
import { tuneCompiler } from "./heap.ts";

export interface QuerySide {
  readonly meter: Meter;
  readonly readings: () => QueryReadings;
  readonly openEndpointFor: OpenEndpointFor;
  readonly openSharedEndpoint: OpenSharedEndpoint;
  readonly openSubnetEndpoint: OpenSubnetEndpoint;
  readonly clients: Clients;
  /** The upstreams have changed, or their own upstreams have: cached replies may be wrong. */
  readonly onUpstreamsChanged: () => void;
  readonly reconfigure: (settings: RunSettings) => void;
  /** Recent queries of each container. */
  readonly histories: QueryHistories;
  /** Failing names of each container. */
  readonly failures: FailureTables;
  readonly lookupLog: LookupLog;
  /** The current pipeline; a change of settings may replace it. */
  readonly pipeline: () => QueryPipeline;
}

/** What a change of settings replaces. */
interface Answering extends Pick<
  UdpParts & TcpParts,
  "answerer" | "forward" | "queryBytesMax" | "pipelinedMax" | "queriesMax"
> {
  readonly pipeline: QueryPipeline;
}

/** Called when a server goes down or comes back up. */
type OnServerChange = (server: string, isUp: boolean, reason: string) => void;

/** Called with the number and the container of each new client. */
type OnClient = (client: number, containerId: string) => void;

export function composeQuerySide(
  settings: RunSettings,
  limitedLog: RateLimitedLog,
  onClient: OnClient = () => undefined,
  onServerChange: OnServerChange = () => undefined,
): QuerySide {
  tuneCompiler();
  const meter = new Meter();
  let current = settings;
  const lookupLog = new LookupLog(limitedLog, () => current.queries.names === "full");
  const block = new MessageBlock(LIMITS.udpBatch, SLOT_BYTES);
  const batch = new PacketBatch();
  const era = new AnswerEra();
  const slots = slotLimit(settings);
  const histories = new QueryHistories(settings.queries.names);
  const failures = new FailureTables(settings.queries.names);
  const shares = sharePools(descriptorsMax());
  const clients = new Clients({ slots, histories, failures, shares });
  const onForgotten = (): void => clients.forgetRepeated();
  const spare = new SpareDescriptors(LIMITS.upstreamDescriptorsKept);
  const parts: AnsweringParts = { block, batch, limitedLog, lookupLog, meter, onServerChange, onForgotten, era, spare };
  let answering = composeAnswering(settings, parts);
  const shared = { meter };
  const udp: UdpParts = { ...answering, ...shared, block, batch, slice: new TimeSlice(LIMITS.udpSliceMs) };
  const tcp: TcpParts = { ...answering, ...shared, block: streamBlock() };
  const openClient = (containerId: string, view: View, dial: Dial): Client => {
    const client = clients.open(containerId, view, dial);
    onClient(client.number, containerId);
    return client;
  };
  return {
    meter,
    readings: () => answering.pipeline.readings(),
    openEndpointFor: (containerId) => (view, dial) => new Endpoint(openClient(containerId, view, dial), { udp, tcp }),
    openSharedEndpoint: (sockets, waiting, { viewOf, isLasting, dial }) =>
      new SharedEndpoint(sockets, waiting, {
        udp,
        tcp,
        viewOf,
        isLasting,
        clientOf: (containerId) => clients.of(containerId),
        openClient: (containerId, view) =>
          openClient(containerId, view, (server, type) => dial(containerId, server, type)),
      }),
    openSubnetEndpoint: (sockets, { id, allow, view, dial }) =>
      new SubnetEndpoint(sockets, openClient(id, view, dial), allow, { udp, tcp }),
    clients,
    histories,
    failures,
    lookupLog,
    pipeline: () => answering.pipeline,
    onUpstreamsChanged: () => answering.pipeline.forget(),
    reconfigure: (next) => {
      // The cache survives where nothing that concerns it has changed: a new route is no reason to query everything
      // again.
      const isSame = isDeepStrictEqual([next.behaviour, next.upstream], [current.behaviour, current.upstream]);
      if (!isSame) {
        // First, because it may fail for want of memory: then nothing has changed.
        answering = composeAnswering(next, parts);
        Object.assign(slots, slotLimit(next));
        Object.assign(udp, answering);
        Object.assign(tcp, answering);
        onForgotten();
      }
      current = next;
      histories.setNames(next.queries.names);
      failures.setNames(next.queries.names);
    },
  };
}

/** What outlives a change of settings. */
interface AnsweringParts {
  readonly block: MessageBlock;
  readonly batch: PacketBatch;
  readonly limitedLog: RateLimitedLog;
  readonly lookupLog: LookupLog;
  readonly meter: Meter;
  readonly onServerChange: OnServerChange;
  /** Replies of the cache are no longer valid, also where the kernel repeats them. */
  readonly onForgotten: () => void;
  readonly era: AnswerEra;
  readonly spare: SpareDescriptors;
}

function composeAnswering(settings: RunSettings, parts: AnsweringParts): Answering {
  const { behaviour } = settings;
  const pipeline = behaviour.failsOver ? adaptive(settings, parts) : sequential(settings, parts);
  return {
    pipeline,
    answerer: pipeline.answerer,
    forward: pipeline.forward,
    queryBytesMax: behaviour.readsLongQueries ? LIMITS.udpQueryBytes : LIMITS.udpQueryBytesStrict,
    pipelinedMax: behaviour.pipelines ? LIMITS.tcpPipelined : 1,
    queriesMax: behaviour.pipelines ? Number.POSITIVE_INFINITY : LIMITS.tcpQueriesStrict,
  };
}

interface QueryPipeline {
  readonly answerer: Answerer;
  readonly forward: Forward;
  readonly behaviour: Behaviour;
  readonly rules: ForwardingRules;
  readonly forget: () => void;
  readonly readings: () => QueryReadings;
  /** State of upstreams and their replies; undefined where queries are forwarded as Docker does. */
  readonly upstreamState: PipelineState | undefined;
}

interface PipelineState {
  readonly forwarder: AdaptiveForwarder;
  readonly pool: NameserverPool;
  readonly cache: ReplyCache;
  readonly isCaching: boolean;
  readonly now: () => number;
  /** Counts what the kernel has answered from the cache meanwhile. */
  readonly collect: () => void;
}

/** Forwards as Docker does: one server after the other, without state. */
function sequential({ behaviour, upstream }: RunSettings, parts: AnsweringParts): QueryPipeline {
  const { limitedLog, lookupLog, meter, era } = parts;
  const queriesMax = Math.min(LIMITS.forwardQueriesTotal, descriptorsMax() * LIMITS.forwardDescriptorShare);
  const { forward } = new SequentialForwarder(
    behaviour,
    {
      onFailedAttempt: (server, reason) => {
        const name = serverText(server);
        limitedLog.log("warn", name, { server: name, reason }, "upstream failed", { repeatMs: LIMITS.logServerMs });
      },
      onFailure: (reason, client, { name, type }) => lookupLog.failed({ client, name, type, reason }),
    },
    queriesMax,
    meter,
    era,
  );
  const answerer = new Answerer(behaviour, { localOnly: upstream.localOnly, era });
  const now = (): number => performance.now();
  return {
    answerer,
    forward: waitingFirst({ behaviour, answerer, forward, ids: new RandomIds(), now, queriesMax }),
    behaviour,
    rules: answerer.rules,
    forget: () => era.end(),
    readings: () => NO_READINGS,
    upstreamState: undefined,
  };
}

const NO_READINGS: QueryReadings = { entries: 0, bytes: 0, bytesMax: 0, nameservers: [] };

function adaptive(
  { behaviour, upstream }: RunSettings,
  { block, batch, limitedLog, lookupLog, meter, onServerChange, onForgotten, era, spare }: AnsweringParts,
): QueryPipeline {
  const now = (): number => performance.now();
  const ids = new RandomIds();
  const socketsMax = Math.min(LIMITS.upstreamSocketsTotal, descriptorsMax() * LIMITS.upstreamDescriptorShare);
  const pool = new NameserverPool(
    {
      block,
      batch,
      budget: new ReplyBudget(LIMITS.upstreamBatch),
      ids,
      now,
      socketsMax,
      pools: new Set(),
      sockets: { open: 0 },
      spare,
    },
    (server, ...change) => {
      logHealth(limitedLog, server, ...change);
      const [isUp, reason] = change;
      onServerChange(serverText(server), isUp, reason);
    },
    upstream.forward.tlsAuthorities,
  );
  const cache = new ReplyCache(behaviour.caches ? upstream.cache.bytesMax : 0, meter.cache, onForgotten);
  const cacheReader = new CacheReader({
    cache,
    pool,
    behaviour,
    policy: upstream.cache,
    now,
    onRefresh: (client, lane, entry) => forwarder.refresh(client, lane, entry),
  });
  const onLoop = (client: Client, loop: Loop): void => {
    const server = serverText(loop.nameserver.server);
    const text = "forwarding loop detected, skipping the upstream for this container";
    const { containerId: container } = client.history;
    limitedLog.log("warn", container, { server, container }, text);
    forwarder.excludeLooping(client, loop);
    client.repeater?.forget();
  };
  const loopGuard = new LoopGuard(now, onLoop, (client, nameserver) => pool.streamsTo(client, nameserver));
  const queriesMax = LIMITS.forwardQueriesShared;
  const forwarder = new AdaptiveForwarder({
    behaviour,
    policy: upstream,
    pool,
    cache,
    reader: cacheReader,
    loopGuard,
    ids,
    now,
    onFailure: (reason, client, { name, type }) => lookupLog.failed({ client, name, type, reason }),
    queriesMax,
    meter,
    era,
  });
  const answerer = new Answerer(behaviour, {
    loopGuard,
    localOnly: upstream.localOnly,
    era,
    ...(behaviour.caches && { cache: cacheReader }),
  });
  return {
    answerer,
    forward: waitingFirst({ behaviour, answerer, forward: forwarder.forward, ids, now, queriesMax }),
    behaviour,
    rules: answerer.rules,
    forget: () => forwarder.invalidate(),
    readings: () => ({
      entries: cache.size,
      bytes: cache.bytes,
      bytesMax: behaviour.caches ? upstream.cache.bytesMax : 0,
      nameservers: statesOf(pool, now()),
    }),
    upstreamState: {
      forwarder,
      pool,
      cache,
      isCaching: behaviour.caches,
      now,
      collect: () => meter.collect(),
    },
  };
}

/** A query may wait before it is forwarded: for its delay, for what Docker's resolver says, or until its answer may be given. */
function waitingFirst(parts: ConstructorParameters<typeof DockerForwarder>[0]): Forward {
  const held = new HeldAnswers(parts);
  const toDocker = new DockerForwarder({ ...parts, forward: held.forward });
  return new Delayer({ ...parts, forward: toDocker.forward }).forward;
}

/** Each server once: it may be in several lists, in some of them as a backup. */
function statesOf({ hostNameservers: nameservers }: NameserverPool, nowMs: number): QueryReadings["nameservers"] {
  const states = new Map<string, boolean>();
  for (const { server, health } of nameservers) {
    const name = serverText(server);
    states.set(name, states.get(name) === true || !health.checkIsDown(nowMs));
  }
  return [...states].map(([server, isUp]) => ({ server, isUp }));
}

/**
 * A server that goes up and down repeatedly is one subject of the log. That it cannot be reached is another one, with room of
 * its own: what containers query must not hide it.
 */
function logHealth(limitedLog: RateLimitedLog, server: Server, ...change: Parameters<OnHealthChange>): void {
  const [isUp, reason, isByTransport] = change;
  const name = serverText(server);
  const fields = { server: name, reason };
  const topic = isByTransport ? { topic: "transport", repeatMs: LIMITS.logServerMs } : { topic: "upstream" };
  if (isUp) limitedLog.log("info", name, fields, "upstream is up", topic);
  else limitedLog.log("warn", name, fields, "upstream is down", topic);
}

function slotLimit({ behaviour, upstream }: RunSettings): SlotLimit {
  const waitMs = behaviour.failsOver ? LIMITS.forwardWaitShortMs : LIMITS.forwardWaitMs;
  return { max: upstream.forward.queriesMax, waitMs };
}
