import http from "node:http";
import https from "node:https";

import { Fault } from "../../../base/lib/fault.ts";
import { JsonLines, ReplyBytes } from "../../../base/lib/json-lines.ts";
import { ETCD_LIMITS } from "../limits.ts";
import {
  connectionFault,
  ETCD_TOKEN,
  isEtcdFault,
  isMemberFault,
  reportedFault,
  strangerFault,
  timeoutFault,
  tooLargeFault,
} from "./faults.ts";

interface Call {
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

/**
 * One etcd server and the requests to its HTTP gateway. Every request has a limit of time and bytes; no
 * redirection is followed.
 */
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
    const options = { keepAlive: true, maxSockets: ETCD_LIMITS.connections };
    const isSecure = this.#url.protocol === "https:";
    this.#agent = isSecure ? new https.Agent({ ...options, ...(ca !== undefined && { ca }) }) : new http.Agent(options);
    this.#request = isSecure ? https.request : http.request;
  }

  /** Sends one request and returns the JSON of the reply. Throws a Fault. */
  async call(call: Call): Promise<unknown> {
    return await new Promise((resolve, reject) => {
      const bytes = new ReplyBytes(ETCD_LIMITS.replyBytes);
      const request = this.#send(call, (response) => {
        response.on("data", (chunk: Buffer) => {
          if (!bytes.push(chunk)) fail(tooLargeFault(this.endpoint, ETCD_LIMITS.replyBytes));
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
      const timer = setTimeout(() => fail(timeoutFault(this.endpoint, ETCD_LIMITS.callMs)), ETCD_LIMITS.callMs);
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
    const lines = new JsonLines(ETCD_LIMITS.replyBytes, (message) => messages.push(message));
    const read = async (response: http.IncomingMessage): Promise<Fault | undefined> => {
      for await (const chunk of response as AsyncIterable<Buffer>) {
        const problem = lines.push(chunk);
        if (messages.length > 0) clearTimeout(timer);
        for (const message of messages.splice(0)) {
          if (isEnded) return undefined;
          await stream.onMessage(message);
        }
        if (problem === "too long") return tooLargeFault(this.endpoint, ETCD_LIMITS.replyBytes);
        if (problem === "no JSON") return strangerFault(this.endpoint, response.statusCode ?? 0);
      }
      return undefined;
    };
    const request = this.#send(call, (response) => {
      read(response).then(end, (error: Error) => end(connectionFault(this.endpoint, error)));
    });
    const timer = setTimeout(() => end(timeoutFault(this.endpoint, ETCD_LIMITS.callMs)), ETCD_LIMITS.callMs);
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
    request.on("socket", (socket) => socket.setKeepAlive(true, ETCD_LIMITS.keepAliveMs));
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

/** What sends one request and returns the reply. */
export interface Calls {
  call(path: string, body: object, signal?: AbortSignal): Promise<unknown>;
}

export interface GatewayOptions {
  readonly endpoints: readonly string[];
  /** The authority's certificates, in PEM. */
  readonly ca: string | undefined;
  readonly user: { readonly name: string; readonly password: string } | undefined;
}

/**
 * The members of a cluster as one server. A request goes to the member that replied last, and to the next one
 * where that fails. It has the token of the user, which is renewed when etcd refuses it.
 */
export class Gateway implements Calls {
  readonly members: readonly Member[];
  readonly #user: GatewayOptions["user"];
  #current = 0;
  #token: string | undefined;
  #renewal: Promise<void> | undefined;

  constructor({ endpoints, ca, user }: GatewayOptions) {
    this.members = endpoints.map((endpoint) => new Member(endpoint, ca));
    this.#user = user;
  }

  /** The member that requests go to. */
  get current(): Member {
    return this.members[this.#current] as Member;
  }

  /** This machine's address in the last connection to a member; undefined before the first. */
  get localAddress(): string | undefined {
    return this.current.localAddress;
  }

  /** Throws a Fault: the first one that is no reason to try another member, or that of the last member. */
  async call(path: string, body: object, signal?: AbortSignal): Promise<unknown> {
    return await this.#withMembers(async () => await this.#onMember(path, body, signal), signal);
  }

  /** Sends a request to this member only. */
  async callOn(member: Member, path: string, body: object, signal?: AbortSignal): Promise<unknown> {
    return await this.#renewing(async () => await member.call({ path, body, token: this.#token, signal }), signal);
  }

  /** Opens a stream on the current member; whoever reads it notices whether that works. */
  stream(path: string, body: object): MessageStream {
    return this.current.stream({ path, body, token: this.#token });
  }

  /** Gets a token, where there is a user; a stream needs it before it is opened. */
  async authenticate(signal?: AbortSignal): Promise<void> {
    if (this.#user !== undefined && this.#token === undefined)
      await this.#withMembers(async () => await this.#renew(), signal);
  }

  /** Asks the members that failed again, with a request that fails as long as they do: what is over is no fault. */
  async recheck(ask: (member: Member) => Promise<unknown>): Promise<void> {
    const failed = this.members.filter((member) => member !== this.current && member.fault !== undefined);
    await Promise.all(
      failed.map(async (member) => {
        try {
          await ask(member);
          member.fault = undefined;
        } catch (error) {
          if (error instanceof Fault) member.fault = error;
        }
      }),
    );
  }

  /** The token is not accepted any more. */
  dropToken(): void {
    this.#token = undefined;
  }

  /** Further requests go to the member after this one. */
  leave(member: Member): void {
    if (this.current === member) this.#current = (this.#current + 1) % this.members.length;
  }

  close(): void {
    for (const member of this.members) member.close();
  }

  async #withMembers<T>(act: () => Promise<T>, signal: AbortSignal | undefined): Promise<T> {
    for (let tried = 1; ; tried++) {
      const member = this.current;
      try {
        const result = await act();
        member.fault = undefined;
        return result;
      } catch (error) {
        if (error instanceof Fault && signal?.aborted !== true) member.fault = error;
        if (!isMemberFault(error) || signal?.aborted === true || tried >= this.members.length) throw error;
        this.leave(member);
      }
    }
  }

  async #onMember(path: string, body: object, signal: AbortSignal | undefined): Promise<unknown> {
    return await this.callOn(this.current, path, body, signal);
  }

  async #renewing<T>(act: () => Promise<T>, signal: AbortSignal | undefined): Promise<T> {
    if (this.#user !== undefined && this.#token === undefined) await this.#renew();
    try {
      return await act();
    } catch (error) {
      if (!isEtcdFault(error, ETCD_TOKEN) || this.#user === undefined || signal?.aborted === true) throw error;
      await this.#renew();
      return await act();
    }
  }

  /** Many requests may find the token refused at once. */
  async #renew(): Promise<void> {
    this.#renewal ??= this.#authenticate().finally(() => (this.#renewal = undefined));
    await this.#renewal;
  }

  async #authenticate(): Promise<void> {
    this.#token = undefined;
    const body = { name: this.#user?.name, password: this.#user?.password };
    try {
      const reply = (await this.current.call({ path: "/v3/auth/authenticate", body })) as { readonly token?: unknown };
      if (typeof reply.token === "string") this.#token = reply.token;
    } catch (error) {
      // Users may be configured here before they are required there.
      if (!(error instanceof Fault) || !error.message.includes("authentication is not enabled")) throw error;
    }
  }
}
