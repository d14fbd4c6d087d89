// The query path of a container with a policy, in both modes, to one server on loopback that notes what leaves the machine. Its clock
// stands still until a test moves it.

import { DEFAULT_BEHAVIOUR, STRICT_BEHAVIOUR } from "../../../src/base/model/behaviour.ts";
import { CompiledPolicy } from "../../../src/features/policy/judge/compiled-policy.ts";
import { NamespacePolicy } from "../../../src/features/policy/judge/namespace-policy.ts";
import type { Refusal } from "../../../src/features/policy/judge/refusal.ts";
import { Answerer } from "../../../src/query/answer.ts";
import type { Client } from "../../../src/query/client/client.ts";
import { SequentialForwarder } from "../../../src/query/forward/sequential.ts";
import { PolicyGate } from "../../../src/features/policy/gate/policy-gate.ts";
import { AnswerGate } from "../../../src/features/policy/gate/answer-gate.ts";
import { AnswerEra } from "../../../src/query/query-policy.ts";
import { DEFERRED, SLOT_BYTES, type Transport } from "../../../src/query/ports.ts";
import { type WrittenPolicy, policyOf } from "./policies.ts";
import { QueryPath, type QueryPathParts, clientOf } from "../../unit/support/query-path.ts";
import { type UdpScript, UdpUpstream } from "../../unit/support/upstreams.ts";

export type Mode = "default" | "strict";
export const MODES: readonly Mode[] = ["default", "strict"];

type Ask = (client: Client, query: Buffer, transport: Transport) => Promise<Buffer>;

export class PolicedPath implements AsyncDisposable {
  nowMs = 1_000;
  readonly upstream: UdpUpstream;
  readonly client: Client;
  /** Of the last client. */
  policy!: NamespacePolicy;
  readonly refusals: Refusal[] = [];
  /** What was answered lately is forgotten, as by a flush. */
  readonly forget: () => void;
  readonly #ask: Ask;
  readonly #compiled: CompiledPolicy;

  constructor(mode: Mode, written: WrittenPolicy, script: UdpScript, parts: QueryPathParts = {}) {
    this.upstream = new UdpUpstream(script);
    this.#compiled = new CompiledPolicy(policyOf(written));
    this.client = this.another();
    if (mode === "strict") {
      const era = new AnswerEra();
      this.#ask = strictPath(era);
      this.forget = () => era.end();
    } else {
      const path = new QueryPath({ behaviour: DEFAULT_BEHAVIOUR, now: () => this.nowMs, ...parts });
      this.#ask = async (...asked) => await path.raw(...asked);
      this.forget = () => void path.forwarder.flush(undefined);
    }
  }

  // A container, with the same policy; `before` is what it was before it was started again.
  another(before?: NamespacePolicy): Client {
    const client = clientOf(this.upstream.server);
    const policy = new NamespacePolicy(
      "id",
      [this.#compiled],
      { now: () => this.nowMs, onRefusal: (_, refusal) => void this.refusals.push(refusal) },
      before,
    );
    this.policy = policy;
    client.policy = new PolicyGate(policy, new AnswerGate());
    return client;
  }

  async ask(query: Buffer, transport: Transport = "udp", client: Client = this.client): Promise<Buffer> {
    return await this.#ask(client, query, transport);
  }

  // The queries that have left since the last call.
  left(): Buffer[] {
    return this.upstream.queries.splice(0);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.upstream[Symbol.asyncDispose]();
  }
}

function strictPath(era: AnswerEra): Ask {
  const nothing = (): void => undefined;
  const events = { onFailedAttempt: nothing, onFailure: nothing };
  const forwarder = new SequentialForwarder(STRICT_BEHAVIOUR, events, undefined, undefined, era);
  const answerer = new Answerer(STRICT_BEHAVIOUR, { era, seed: 1 });
  const block = Buffer.alloc(SLOT_BYTES);
  return async (client, query, transport) => {
    client.history.tick();
    query.copy(block);
    const length = answerer.answer(client, block, 0, query.length, transport === "tcp");
    if (length !== DEFERRED) return Buffer.from(block.subarray(0, length));
    const deferred = answerer.takeDeferred(block);
    return await new Promise((resolve) => {
      forwarder.forward(client, deferred, transport, (reply) => resolve(Buffer.from(reply)));
    });
  };
}
