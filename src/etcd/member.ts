/**
 * Member: one etcd server and the requests to its HTTP gateway. Every request has a limit of time and bytes; no
 * redirection is followed.
 */
import http from "node:http";
import https from "node:https";

import { Fault } from "../base/lib/fault.ts";
import { LIMITS } from "../base/limits.ts";
import { connectionFault, reportedFault, strangerFault, timeoutFault, tooLargeFault } from "./etcd-fault.ts";
import { JsonLines } from "../base/lib/json-lines.ts";
import { ReplyBytes } from "../base/lib/reply-bytes.ts";

export interface Call {
  /** It is below the endpoint, such as /v3/kv/range. */
  readonly path: string;
  readonly body: object;
  readonly token?: string | undefined;
  readonly signal?: AbortSignal | undefined;
}

const HTTP_OK = 200;

/** The messages of a stream, until it ends or fails. */
export interface MessageStream {
  readonly member: Member;
  /** The next message waits until this one is taken, and the member with it. */
  onMessage: (message: unknown) => Promise<void>;
  /** Called once; without a fault where the member ended it. */
  onEnd: (fault: Fault | undefined) => void;
  close(): void;
}

export class Member {
  readonly endpoint: string;
  /** Why the last request to it failed. */
  fault: Fault | undefined;
  /** This machine's, in the last connection. */
  localAddress: string | undefined;
  readonly #url: URL;
  readonly #agent: http.Agent;
  readonly #request: typeof http.request;

  /** `ca`: the authority's certificates, in PEM; undefined for those that Node knows. */
  constructor(endpoint: string, ca: string | undefined) {
    this.endpoint = endpoint;
    this.#url = new URL(endpoint);
    const options = { keepAlive: true, maxSockets: LIMITS.etcdConnections };
    const isSecure = this.#url.protocol === "https:";
    this.#agent = isSecure ? new https.Agent({ ...options, ...(ca !== undefined && { ca }) }) : new http.Agent(options);
    this.#request = isSecure ? https.request : http.request;
  }

  /** Sends one request and returns the JSON of the reply. Throws a Fault. */
  async call(call: Call): Promise<unknown> {
    return await new Promise((resolve, reject) => {
      const bytes = new ReplyBytes(LIMITS.etcdReplyBytes);
      const request = this.#send(call, (response) => {
        response.on("data", (chunk: Buffer) => {
          if (!bytes.push(chunk)) fail(tooLargeFault(this.endpoint, LIMITS.etcdReplyBytes));
        });
        response.on("end", () => {
          clearTimeout(timer);
          const reply = this.#parsed(response.statusCode ?? 0, bytes.take());
          if (reply instanceof Fault) reject(reply);
          else resolve(reply);
        });
        response.on("error", (error) => fail(connectionFault(this.endpoint, error)));
      });
      const fail = (fault: Fault): void => {
        clearTimeout(timer);
        reject(fault);
        request.destroy();
      };
      const timer = setTimeout(() => fail(timeoutFault(this.endpoint, LIMITS.etcdCallMs)), LIMITS.etcdCallMs);
      request.on("error", (error) => fail(connectionFault(this.endpoint, error)));
    });
  }

  /** Opens a stream of messages. Its first message has to come as soon as a reply. */
  stream(call: Call): MessageStream {
    let isEnded = false;
    const end = (fault: Fault | undefined): void => {
      if (isEnded) return;
      isEnded = true;
      clearTimeout(timer);
      request.destroy();
      stream.onEnd(fault);
    };
    const stream: MessageStream = {
      member: this,
      onMessage: async () => {},
      onEnd: () => {},
      close: () => end(undefined),
    };
    const messages: unknown[] = [];
    const lines = new JsonLines(LIMITS.etcdReplyBytes, (message) => messages.push(message));
    const read = async (response: http.IncomingMessage): Promise<Fault | undefined> => {
      for await (const chunk of response as AsyncIterable<Buffer>) {
        const problem = lines.push(chunk);
        if (messages.length > 0) clearTimeout(timer);
        for (const message of messages.splice(0)) {
          if (isEnded) return undefined;
          await stream.onMessage(message);
        }
        if (problem === "too long") return tooLargeFault(this.endpoint, LIMITS.etcdReplyBytes);
        if (problem === "no JSON") return strangerFault(this.endpoint, response.statusCode ?? 0);
      }
      return undefined;
    };
    const request = this.#send(call, (response) => {
      read(response).then(end, (error: Error) => end(connectionFault(this.endpoint, error)));
    });
    const timer = setTimeout(() => end(timeoutFault(this.endpoint, LIMITS.etcdCallMs)), LIMITS.etcdCallMs);
    request.on("error", (error) => end(connectionFault(this.endpoint, error)));
    return stream;
  }

  close(): void {
    this.#agent.destroy();
  }

  #send({ path, body, token, signal }: Call, onResponse: (response: http.IncomingMessage) => void): http.ClientRequest {
    const text = JSON.stringify(body);
    const request = this.#request(
      this.#url,
      {
        agent: this.#agent,
        method: "POST",
        path,
        headers: {
          "content-type": "application/json",
          "content-length": Buffer.byteLength(text),
          ...(token !== undefined && { authorization: token }),
        },
        ...(signal !== undefined && { signal }),
      },
      (response) => {
        this.localAddress = response.socket.localAddress;
        onResponse(response);
      },
    );
    // A path that drops all packets would otherwise keep a silent stream alive.
    request.on("socket", (socket) => socket.setKeepAlive(true, LIMITS.etcdKeepAliveMs));
    request.end(text);
    return request;
  }

  /** A Fault where it is no success. */
  #parsed(status: number, text: string): object {
    let json: unknown;
    try {
      json = JSON.parse(text);
    } catch {
      return strangerFault(this.endpoint, status);
    }
    if (typeof json !== "object" || json === null) return strangerFault(this.endpoint, status);
    if (status === HTTP_OK) return json;
    const { code, message } = json as { readonly code?: unknown; readonly message?: unknown };
    if (typeof code !== "number" || typeof message !== "string") return strangerFault(this.endpoint, status);
    return reportedFault(this.endpoint, code, message);
  }
}
