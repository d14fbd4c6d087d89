// Builder of query outcomes: the reply is at an offset, so that a missing addition of the offset shows.

import { QUERY_RESULT, type QueryResult } from "../../../src/base/model/query-record.ts";
import type { Server } from "../../../src/base/model/view.ts";
import { Outcome, STAGE } from "../../../src/query/record/outcome.ts";
import { OFFSET } from "./reply.ts";

type OutcomeParts = {
  readonly reply: Buffer;
  // End of the name in the reply; 0 if it has no readable name.
  readonly nameEnd: number;
  readonly type?: number;
  readonly result?: QueryResult;
  readonly stage?: number;
  readonly isStream?: boolean;
};

export function anOutcome({
  reply,
  nameEnd,
  type = 1,
  result: how = "local",
  stage,
  isStream = false,
}: OutcomeParts): Outcome {
  const outcome = new Outcome();
  const block = Buffer.concat([Buffer.alloc(OFFSET, 0xee), reply, Buffer.alloc(OFFSET, 0xee)]);
  outcome.begin(block, OFFSET, isStream);
  outcome.stage = stage ?? STAGE.local;
  outcome.result = QUERY_RESULT[how];
  outcome.type = type;
  outcome.nameEnd = nameEnd === 0 ? 0 : OFFSET + nameEnd;
  outcome.end(reply.length);
  return outcome;
}

type DeliveredParts = {
  readonly query: Buffer;
  readonly type?: number;
  readonly reply: Buffer;
  readonly result?: QueryResult;
  readonly server?: Server;
  readonly isStream?: boolean;
  readonly arrivedMs?: number;
  readonly nowMs?: number;
};

export function aDelivered(parts: DeliveredParts): Outcome {
  const {
    query,
    reply,
    type = 1,
    result: how = "forwarded",
    server,
    isStream = false,
    arrivedMs = 0,
    nowMs = arrivedMs,
  } = parts;
  const outcome = new Outcome();
  outcome.complete({ query, questionEnd: query.length, type }, reply, how, server);
  outcome.setTimes(isStream, arrivedMs, nowMs);
  return outcome;
}
