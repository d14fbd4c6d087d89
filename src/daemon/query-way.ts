/**
 * The query's way, built from its parts in the order in which a query meets them: listen, answer (wire, policy, cache),
 * forward, upstream. Settings that change have it built anew; queries that are on their way end where they began.
 */
import { isDeepStrictEqual } from "node:util";

import { LIMITS } from "../config/limits.ts";
import type { RunSettings } from "../config/settings.ts";
import type { OpenEndpointFor } from "../container/attach/ports.ts";
import { MessageBlock } from "../kernel/message-block.ts";
import { RandomIds } from "../lib/random-ids.ts";
import { serverText } from "../model/server-text.ts";
import type { Server } from "../model/view.ts";
import { type Log, Throttle } from "../observe/log.ts";
import { Answerer, SLOT_BYTES } from "../query/answer.ts";
import { Memory } from "../query/cache/memory.ts";
import { ReplyCache } from "../query/cache/reply-cache.ts";
import { AdaptiveForwarder } from "../query/forward/adaptive.ts";
import { LoopGuard } from "../query/upstream/loop-guard.ts";
import { SequentialForwarder } from "../query/forward/sequential.ts";
import type { SlotLimit } from "../query/forward/slots.ts";
import { Book } from "../query/ledger/book.ts";
import { Endpoint } from "../query/listen/endpoint.ts";
import { type TcpParts, streamBlock } from "../query/listen/tcp-connection.ts";
import type { UdpParts } from "../query/listen/udp.ts";
import { Fleet } from "../query/upstream/fleet.ts";
import { TurnBudget } from "../query/upstream/turn-budget.ts";
import { descriptorsMax } from "./descriptors.ts";

export interface QueryWay {
  readonly openEndpointFor: OpenEndpointFor;
  /** Who is asked has changed, or those who are asked ask others: what they said before may be wrong. */
  readonly onUpstreamsChanged: () => void;
  readonly reconfigure: (settings: RunSettings) => void;
  /** What containers asked lately. */
  readonly book: Book;
}

/** What settings exchange. */
interface Answering extends Pick<UdpParts & TcpParts, "answerer" | "forward" | "queryBytesMax" | "pipelinedMax"> {
  readonly forget: () => void;
}

/** Failures of servers and defects are told at most this often. */
const LOG_EVERY_MS = 10_000;

export function composeQueryWay(settings: RunSettings, log: Log): QueryWay {
  const defects = new Throttle(LOG_EVERY_MS);
  const onDefect = (error: unknown): void => {
    defects.run((heldBack) => log.error({ err: error, heldBack }, "a query laid bare a defect of dns11"));
  };
  const block = new MessageBlock(LIMITS.udpBatch, SLOT_BYTES);
  const slots = slotLimit(settings);
  const book = new Book(settings.queries.names);
  let current = settings;
  let answering = composeAnswering(settings, block, log);
  const udp: UdpParts = { ...answering, onDefect, block, isBatching: settings.isBatching };
  const tcp: TcpParts = { ...answering, onDefect, block: streamBlock() };
  return {
    openEndpointFor: (containerId) => (sockets, view, dial) =>
      new Endpoint(sockets, { containerId, view, dial }, { udp, tcp, slots, book }),
    book,
    onUpstreamsChanged: () => answering.forget(),
    reconfigure: (next) => {
      // What is remembered is kept where nobody wants it otherwise: a new route is no reason to ask everything anew.
      const isSame = isDeepStrictEqual([next.behaviour, next.upstream], [current.behaviour, current.upstream]);
      current = next;
      book.setNames(next.queries.names);
      if (isSame) return;
      answering = composeAnswering(next, block, log);
      Object.assign(slots, slotLimit(next));
      Object.assign(udp, answering);
      Object.assign(tcp, answering);
    },
  };
}

function composeAnswering(settings: RunSettings, block: MessageBlock, log: Log): Answering {
  const { behaviour } = settings;
  return {
    ...(behaviour.failsOver ? adaptive(settings, block, log) : sequential(settings, log)),
    queryBytesMax: behaviour.readsLongQueries ? LIMITS.udpQueryBytes : LIMITS.udpQueryBytesStrict,
    pipelinedMax: behaviour.pipelines ? LIMITS.tcpPipelined : 1,
  };
}

type Asking = Pick<Answering, "answerer" | "forward" | "forget">;

/** As Docker asks: one server after the other, nothing remembered. */
function sequential({ behaviour, upstream }: RunSettings, log: Log): Asking {
  const failures = new Throttle(LOG_EVERY_MS);
  const { forward } = new SequentialForwarder(
    behaviour,
    (server, reason) => {
      failures.run((heldBack) => log.warn({ server: serverText(server), reason, heldBack }, "nameserver failed"));
    },
    Math.min(LIMITS.forwardQueriesWhole, descriptorsMax() * LIMITS.forwardShareOfDescriptors),
  );
  return { answerer: new Answerer(behaviour, { leave: upstream.leave }), forward, forget: () => undefined };
}

function adaptive({ behaviour, upstream }: RunSettings, block: MessageBlock, log: Log): Asking {
  const now = (): number => performance.now();
  const ids = new RandomIds();
  const failures = new Throttle(LOG_EVERY_MS);
  const socketsMax = Math.min(LIMITS.upstreamSocketsWhole, descriptorsMax() * LIMITS.upstreamShareOfDescriptors);
  const fleet = new Fleet(
    {
      block,
      budget: new TurnBudget(LIMITS.upstreamBatch),
      ids,
      now,
      socketsMax,
      pools: new Set(),
      sockets: { open: 0 },
    },
    (server, isUp, reason) => logHealth(log, server, isUp, reason),
  );
  const cache = new ReplyCache(upstream.cache.bytesMax);
  const memory = new Memory({
    cache,
    fleet,
    behaviour,
    policy: upstream.cache,
    now,
    onRefresh: (asker, lane, entry) => forwarder.refresh(asker, lane, entry),
  });
  const guard = new LoopGuard(now, (nameserver) => {
    log.warn({ server: serverText(nameserver.server) }, "nameserver leads back to dns11; it is not asked for a while");
    forwarder.leaveOut(nameserver);
  });
  const forwarder = new AdaptiveForwarder({
    behaviour,
    policy: upstream,
    fleet,
    cache,
    memory,
    guard,
    ids,
    now,
    onFailure: (reason) => {
      failures.run((heldBack) => log.warn({ reason, heldBack }, "no nameserver answered"));
    },
    queriesMax: LIMITS.forwardQueriesShared,
  });
  return {
    answerer: new Answerer(behaviour, {
      guard,
      leave: upstream.leave,
      ...(behaviour.caches && { memory }),
    }),
    forward: forwarder.forward,
    forget: () => forwarder.forget(),
  };
}

function logHealth(log: Log, server: Server, isUp: boolean, reason: string): void {
  const about = { server: serverText(server), reason };
  if (isUp) log.info(about, "nameserver is back");
  else log.warn(about, "nameserver is down; it is asked last");
}

function slotLimit({ behaviour, upstream }: RunSettings): SlotLimit {
  const waitMs = behaviour.failsOver ? LIMITS.forwardWaitShortMs : LIMITS.forwardWaitMs;
  return { max: upstream.ask.queriesMax, waitMs };
}
