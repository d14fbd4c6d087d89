/**
 * LeaseConnection: a lease on the control socket, from the client's side: requests go out as lines, and each gets its answer by
 * the number of its line. Closing it, or the end of this process, takes back everything that was added.
 */
import { type ClientRequest, type IncomingMessage, request } from "node:http";

import { Fault } from "../base/lib/fault.ts";
import { linesOf } from "./lines.ts";
import type { LeaseReply, LeaseRequest, RecordedQuery } from "./lease.ts";
import type { PolicyLeaseReply, PolicyLeaseRequest } from "./policies.ts";

const OPEN = "Open another one.";

type Answered = Extract<LeaseReply | PolicyLeaseReply, { readonly line: number }>;

interface Waiting {
  readonly resolve: (reply: Answered) => void;
  readonly reject: (error: Error) => void;
}

export class LeaseConnection {
  readonly #outgoing: ClientRequest;
  readonly #waiting = new Map<number, Waiting>();
  #lastLine = 0;
  #end: Fault | undefined;
  readonly #ended: Promise<void>;
  /** Called with what is recorded, and how much was lost. */
  onRecorded: (queries: readonly RecordedQuery[], missed: number) => void = () => undefined;

  private constructor(outgoing: ClientRequest, incoming: IncomingMessage) {
    this.#outgoing = outgoing;
    this.#ended = this.#read(incoming);
    outgoing.on("error", () => incoming.destroy());
  }

  /** `failure` turns an error of the connection, or a refusal, into a Fault. */
  static async open(
    socketPath: string,
    failure: {
      readonly ofConnection: (error: Error) => Fault;
      readonly ofReply: (answer: IncomingMessage) => Promise<Fault>;
    },
    signal?: AbortSignal,
    path: "/v1/lease" | "/v1/policies" = "/v1/lease",
  ): Promise<LeaseConnection> {
    const options = { socketPath, path, method: "POST", agent: false, ...(signal && { signal }) };
    const outgoing = request(options);
    const incoming = await new Promise<IncomingMessage>((resolve, reject) => {
      outgoing.once("response", resolve);
      outgoing.once("error", (error) => reject(failure.ofConnection(error)));
      outgoing.flushHeaders();
    });
    if (incoming.statusCode === 200) return new LeaseConnection(outgoing, incoming);
    const fault = await failure.ofReply(incoming);
    outgoing.destroy();
    throw fault;
  }

  /** Resolves when the lease has ended, from either side. */
  get ended(): Promise<void> {
    return this.#ended;
  }

  /** Resolves when it is in force. */
  async send(message: LeaseRequest | PolicyLeaseRequest): Promise<Answered> {
    if (this.#end !== undefined) throw this.#end;
    const line = ++this.#lastLine;
    const reply = await new Promise<Answered>((resolve, reject) => {
      this.#waiting.set(line, { resolve, reject });
      this.#outgoing.write(`${JSON.stringify(message)}\n`);
    });
    if ("error" in reply) throw new Fault(reply.code, reply.error);
    return reply;
  }

  /** Resolves when everything has been taken back. */
  async close(): Promise<void> {
    this.#end ??= new Fault("LEASE_ENDED", "The lease has been closed", { remedy: OPEN });
    this.#outgoing.end();
    await this.#ended;
  }

  async #read(incoming: IncomingMessage): Promise<void> {
    try {
      for await (const line of linesOf(incoming)) this.#take(JSON.parse(line) as LeaseReply | PolicyLeaseReply);
    } catch {
      // A connection that breaks off has ended, too.
    }
    this.#end ??= new Fault("LEASE_ENDED", "dns11 was stopped or replaced, so the rules of the lease are gone", {
      remedy: OPEN,
    });
    for (const { reject } of this.#waiting.values()) reject(this.#end);
    this.#waiting.clear();
    this.#outgoing.destroy();
  }

  #take(reply: LeaseReply | PolicyLeaseReply): void {
    if ("recorded" in reply) return this.onRecorded(reply.recorded, reply.missed);
    this.#waiting.get(reply.line)?.resolve(reply);
    this.#waiting.delete(reply.line);
  }
}
