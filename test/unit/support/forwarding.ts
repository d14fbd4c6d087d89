// Forwarder under test: a query as the answerer defers it, forwarded to these servers, and the reply.

import { DEFAULT_BEHAVIOUR, type Behaviour } from "../../../src/base/model/behaviour.ts";
import type { Server } from "../../../src/base/model/view.ts";
import type { Client } from "../../../src/query/client/client.ts";
import { SequentialForwarder } from "../../../src/query/forward/sequential.ts";
import type { Transport } from "../../../src/query/ports.ts";
import { type UpstreamParts, aQuery, aView, aClient, upstreams } from "../../support/scripted/builders.ts";
import { dialHere } from "./loopback.ts";
import { answerOnce } from "./reply.ts";

export type ForwardingParts = UpstreamParts & {
  readonly query?: Buffer;
  readonly transport?: Transport;
  readonly behaviour?: Behaviour;
  // The name is a local one without records of the queried type.
  readonly isLocalName?: boolean;
  // What delayed the query.
  readonly rule?: string;
  readonly client?: Client;
};

export class Forwarding {
  readonly client: Client;
  readonly forwarder: SequentialForwarder;
  readonly reply: Promise<Buffer>;
  // Number of replies; must be one.
  replies = 0;
  // Failed attempts: server and reason.
  readonly failures: { readonly server: Server; readonly reason: string }[] = [];
  // Failed lookups, as they are logged.
  readonly failedLookups: string[] = [];

  constructor(parts: ForwardingParts) {
    const {
      query = aQuery({ name: "example.org" }),
      transport = "udp",
      behaviour = DEFAULT_BEHAVIOUR,
      isLocalName = false,
      rule,
    } = parts;
    this.client = parts.client ?? aClient(aView([], upstreams(parts)), dialHere);
    this.forwarder = new SequentialForwarder(behaviour, {
      onFailedAttempt: (server, reason) => this.failures.push({ server, reason }),
      onFailure: (reason, _, { name }) => this.failedLookups.push(`${name}: ${reason}`),
    });
    const answered = answerOnce(query, {
      behaviour,
      client: aClient(aView([], this.client.view.upstreams)),
      isStream: transport === "tcp",
    });
    if (answered.kind !== "deferred") throw new Error("the query of a forwarder test must be deferred");
    const deferred = { ...answered.deferred, isLocalName, rule };
    this.reply = new Promise((resolve) => {
      this.forwarder.forward(this.client, deferred, transport, (reply) => {
        this.replies++;
        resolve(Buffer.from(reply));
      });
    });
  }

  get reasons(): string[] {
    return this.failures.map(({ reason }) => reason);
  }
}
