/**
 * ClusterApi: requests to the API of a Kubernetes cluster, which only read. Each has a limit of time and bytes; no
 * redirection is followed.
 */
import http from "node:http";
import https from "node:https";

import { Fault, reasonOf } from "../base/lib/fault.ts";
import { guard } from "../base/lib/guard.ts";
import { JsonLines } from "../base/lib/json-lines.ts";
import { ReplyBytes } from "../base/lib/reply-bytes.ts";
import { LIMITS } from "../base/limits.ts";
import type { ClusterAccess } from "../base/model/cluster-policy.ts";
import {
  connectionFault,
  reportedFault,
  strangerFault,
  timeoutFault,
  tokenFault,
  tooLargeFault,
} from "./cluster-fault.ts";

const HTTP_OK = 200;
const KEEP_ALIVE_MS = 10_000;
/** Each resource has one stream, and one list at a time. */
const CONNECTIONS = 4;

/** What becomes of a stream of messages. */
export interface StreamReader {
  readonly onOpen: () => void;
  /** It may throw a Fault, which ends the stream. */
  readonly onMessage: (message: object) => void;
}

interface Exchange {
  /** How long the reply may take, from its first byte on. */
  readonly endMs: number;
  readonly onOpen: () => void;
  readonly onBytes: (chunk: Buffer) => void;
}

export class ClusterApi {
  readonly server: string;
  /** The same as long as it is the same cluster: one that is made anew has another authority. */
  readonly cluster: string;
  readonly #access: ClusterAccess;
  readonly #readToken: (path: string) => Promise<string>;
  readonly #agent: http.Agent;
  readonly #request: typeof http.request;

  /** `readToken`: the content of a file with a token. */
  constructor(access: ClusterAccess, readToken: (path: string) => Promise<string>) {
    this.server = access.server;
    this.cluster = `${access.server} ${access.ca ?? ""}`;
    this.#access = access;
    this.#readToken = readToken;
    const options = { keepAlive: true, maxSockets: CONNECTIONS };
    const isSecure = access.server.startsWith("https:");
    this.#request = isSecure ? https.request : http.request;
    this.#agent = isSecure ? new https.Agent({ ...options, ...identityOf(access) }) : new http.Agent(options);
  }

  /** The JSON object at a path. Throws a Fault. */
  async get(path: string, signal: AbortSignal): Promise<object> {
    const text = await this.#read(path, signal);
    const json = objectIn(text);
    if (json === undefined) throw strangerFault(this.server, HTTP_OK);
    return json;
  }

  /** Reads a stream of JSON messages until it ends. Throws a Fault where it does not end as it should. */
  async stream(path: string, { onOpen, onMessage }: StreamReader, signal: AbortSignal): Promise<void> {
    const { server } = this;
    const lines = new JsonLines(LIMITS.clusterReplyBytes, (message) => {
      if (typeof message !== "object" || message === null) throw strangerFault(server, HTTP_OK);
      onMessage(message);
    });
    const endMs = LIMITS.clusterWatchSeconds * 1000 + LIMITS.clusterWatchGraceMs;
    const onBytes = (chunk: Buffer): void => {
      const problem = lines.push(chunk);
      if (problem === "too long") throw tooLargeFault(server, LIMITS.clusterReplyBytes);
      if (problem === "no JSON") throw strangerFault(server, HTTP_OK);
    };
    await this.#exchange(path, signal, { endMs, onOpen, onBytes });
  }

  close(): void {
    this.#agent.destroy();
  }

  async #read(path: string, signal: AbortSignal): Promise<string> {
    const bytes = new ReplyBytes(LIMITS.clusterReplyBytes);
    const onBytes = (chunk: Buffer): void => {
      if (!bytes.push(chunk)) throw tooLargeFault(this.server, LIMITS.clusterReplyBytes);
    };
    await this.#exchange(path, signal, { endMs: LIMITS.clusterCallMs, onOpen: () => undefined, onBytes });
    return bytes.take();
  }

  /** `onBytes` may throw a Fault, which ends the exchange. */
  async #exchange(path: string, signal: AbortSignal, { endMs, onOpen, onBytes }: Exchange): Promise<void> {
    const headers = await this.#headers();
    await new Promise<void>((resolve, reject) => {
      const end = (fault: Fault | undefined): void => {
        clearTimeout(timer);
        if (fault === undefined) resolve();
        else reject(fault);
        request.destroy();
      };
      const endAfter = (ms: number): NodeJS.Timeout => setTimeout(() => end(timeoutFault(this.server, ms)), ms);
      let timer = endAfter(LIMITS.clusterCallMs);
      const request = this.#request(`${this.server}${path}`, { agent: this.#agent, headers, signal }, (response) => {
        clearTimeout(timer);
        timer = endAfter(endMs);
        const status = response.statusCode ?? 0;
        if (status === HTTP_OK) {
          attempt(onOpen, end);
          response.on("data", (chunk: Buffer) => attempt(() => onBytes(chunk), end));
        } else this.#reported(response, status, end);
        response.on("end", () => status === HTTP_OK && end(undefined));
        response.on("error", (error) => end(connectionFault(this.server, error)));
      });
      request.on("error", (error) => end(connectionFault(this.server, error)));
      // A path that drops all packets would otherwise keep a silent stream alive.
      request.on("socket", (socket) => socket.setKeepAlive(true, KEEP_ALIVE_MS));
      request.end();
    });
  }

  /** An error of the API is an object with a message. */
  #reported(response: http.IncomingMessage, status: number, end: (fault: Fault) => void): void {
    const bytes = new ReplyBytes(LIMITS.clusterReplyBytes);
    response.on("data", (chunk: Buffer) => {
      if (!bytes.push(chunk)) end(tooLargeFault(this.server, LIMITS.clusterReplyBytes));
    });
    response.on("end", () => {
      const { message } = (objectIn(bytes.take()) ?? {}) as { readonly message?: unknown };
      end(
        typeof message === "string" ? reportedFault(this.server, status, message) : strangerFault(this.server, status),
      );
    });
  }

  async #headers(): Promise<http.OutgoingHttpHeaders> {
    const token = await this.#token();
    return { accept: "application/json", ...(token !== undefined && { authorization: `Bearer ${token}` }) };
  }

  async #token(): Promise<string | undefined> {
    const { token, tokenFile } = this.#access;
    if (tokenFile === undefined) return token;
    try {
      return (await this.#readToken(tokenFile)).trim();
    } catch (error) {
      throw tokenFault(this.server, reasonOf(error));
    }
  }
}

function identityOf({ ca, certificate, key, serverName }: ClusterAccess): https.AgentOptions {
  return {
    ...(ca !== undefined && { ca }),
    ...(certificate !== undefined && { cert: certificate }),
    ...(key !== undefined && { key }),
    ...(serverName !== undefined && { servername: serverName }),
  };
}

/** A mistake of our own costs this one exchange. */
function attempt(work: () => void, end: (fault: Fault) => void): void {
  try {
    work();
  } catch (error) {
    if (!(error instanceof Fault)) guard.report(error, "elsewhere");
    end(error instanceof Fault ? error : new Fault("INTERNAL", String(error)));
  }
}

function objectIn(text: string): object | undefined {
  try {
    const json: unknown = JSON.parse(text);
    return typeof json === "object" && json !== null ? json : undefined;
  } catch {
    return undefined;
  }
}
