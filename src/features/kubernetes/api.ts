import http from "node:http";
import https from "node:https";

import { Fault, reasonOf } from "../../base/lib/fault.ts";
import { guard } from "../../base/lib/guard.ts";
import { JsonLines, ReplyBytes } from "../../base/lib/json-lines.ts";
import type { ClusterAccess } from "./kubeconfig.ts";
import { KUBERNETES_LIMITS } from "./limits.ts";

const HTTP_OK = 200;
const KEEP_ALIVE_MS = 10_000;
/** Each resource has one stream, and one list at a time. */
const CONNECTIONS = 4;

/** What becomes of a stream of messages. */
interface StreamReader {
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

/**
 * Requests to the API of a Kubernetes cluster, which only read. Each has a limit of time and bytes; no
 * redirection is followed.
 */
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
    const lines = new JsonLines(KUBERNETES_LIMITS.replyBytes, (message) => {
      if (typeof message !== "object" || message === null) throw strangerFault(server, HTTP_OK);
      onMessage(message);
    });
    const endMs = KUBERNETES_LIMITS.watchSeconds * 1000 + KUBERNETES_LIMITS.watchGraceMs;
    const onBytes = (chunk: Buffer): void => {
      const problem = lines.push(chunk);
      if (problem === "too long") throw tooLargeFault(server, KUBERNETES_LIMITS.replyBytes);
      if (problem === "no JSON") throw strangerFault(server, HTTP_OK);
    };
    await this.#exchange(path, signal, { endMs, onOpen, onBytes });
  }

  close(): void {
    this.#agent.destroy();
  }

  async #read(path: string, signal: AbortSignal): Promise<string> {
    const bytes = new ReplyBytes(KUBERNETES_LIMITS.replyBytes);
    const onBytes = (chunk: Buffer): void => {
      if (!bytes.push(chunk)) throw tooLargeFault(this.server, KUBERNETES_LIMITS.replyBytes);
    };
    await this.#exchange(path, signal, { endMs: KUBERNETES_LIMITS.callMs, onOpen: () => undefined, onBytes });
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
      let timer = endAfter(KUBERNETES_LIMITS.callMs);
      request.on("error", (error) => end(connectionFault(this.server, error)));
      // A path that drops all packets would otherwise keep a silent stream alive.
      request.on("socket", (socket) => socket.setKeepAlive(true, KEEP_ALIVE_MS));
      request.end();
    }).catch((error: NodeJS.ErrnoException) => {
      // OpenSSL cannot read the certificate or key: then there is no request.
      throw error instanceof Fault ? error : connectionFault(this.server, error);
    });
  }

  /** An error of the API is an object with a message. */
  #reported(response: http.IncomingMessage, status: number, end: (fault: Fault) => void): void {
    const bytes = new ReplyBytes(KUBERNETES_LIMITS.replyBytes);
    response.on("data", (chunk: Buffer) => {
      if (!bytes.push(chunk)) end(tooLargeFault(this.server, KUBERNETES_LIMITS.replyBytes));
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
    try {
      const text = tokenFile === undefined ? token : (await this.#readToken(tokenFile)).trim();
      if (text !== undefined) http.validateHeaderValue("authorization", text);
      return text;
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

const CLUSTER_UNREACHABLE = "CLUSTER_UNREACHABLE";
const CLUSTER_CERTIFICATE = "CLUSTER_CERTIFICATE";
const CLUSTER_CREDENTIALS = "CLUSTER_CREDENTIALS";
const CLUSTER_PERMISSION = "CLUSTER_PERMISSION";
const CLUSTER_EXPIRED = "CLUSTER_EXPIRED";
const CLUSTER_TOO_LARGE = "CLUSTER_TOO_LARGE";
const CLUSTER_FAILED = "CLUSTER_FAILED";

const UNAUTHORIZED = 401;
const FORBIDDEN = 403;
const GONE = 410;
const REASON_CHARS = 200;

/** Errors of OpenSSL and of Node's check of a certificate. */
const CERTIFICATE_CODES =
  /^(?:CERT_|ERR_TLS_|ERR_SSL_|ERR_OSSL_|DEPTH_ZERO_|SELF_SIGNED_|UNABLE_TO_(?:GET|VERIFY)|HOSTNAME_|INVALID_CA|EPROTO)/;

export function isTooLarge(error: unknown): boolean {
  return error instanceof Fault && error.code === CLUSTER_TOO_LARGE;
}

/** The API does not have the changes since then any more. */
export function isExpired(error: unknown): boolean {
  return error instanceof Fault && error.code === CLUSTER_EXPIRED;
}

function connectionFault(server: string, error: NodeJS.ErrnoException): Fault {
  const reason =
    error.code === undefined || error.message.includes(error.code) ? error.message : `${error.code}: ${error.message}`;
  return CERTIFICATE_CODES.test(error.code ?? "")
    ? new Fault(CLUSTER_CERTIFICATE, `the certificate of the API at ${server}, or ours, is not valid: ${reason}`, {
        remedy: "Check certificate-authority, tls-server-name and the client's certificate in the kubeconfig.",
      })
    : new Fault(CLUSTER_UNREACHABLE, `cannot reach the API at ${server}: ${reason}`, {
        remedy: "Check that the cluster runs and that this machine can connect to it.",
      });
}

function timeoutFault(server: string, ms: number): Fault {
  return new Fault(CLUSTER_UNREACHABLE, `the API at ${server} did not reply within ${ms} ms`, {
    remedy: "Check that the cluster runs and that this machine can connect to it.",
  });
}

function tooLargeFault(server: string, bytesMax: number): Fault {
  return new Fault(CLUSTER_TOO_LARGE, `a reply of the API at ${server} is longer than ${bytesMax} bytes`, {
    remedy: "Find the Service or EndpointSlice that is so large, and remove annotations from it.",
  });
}

function tokenFault(server: string, reason: string): Fault {
  return new Fault(CLUSTER_CREDENTIALS, `cannot use the token for the API at ${server}: ${reason}`, {
    remedy: "Check token or tokenFile in the kubeconfig, or the token that Kubernetes mounts into the pod.",
  });
}

/** Something else answers there. */
export function strangerFault(server: string, status: number): Fault {
  return new Fault(
    CLUSTER_FAILED,
    `the server at ${server} replied with HTTP status ${status}, and not as the API does`,
    {
      remedy: "Check the server in the kubeconfig: Kubernetes 1.21 or later has what dns11 reads.",
    },
  );
}

/** An error that the API reports, by its status of HTTP. */
export function reportedFault(server: string, status: number, message: string): Fault {
  const what = `the API at ${server} reports: ${message.slice(0, REASON_CHARS)}`;
  if (status === GONE) return new Fault(CLUSTER_EXPIRED, what);
  if (status === UNAUTHORIZED) {
    return new Fault(CLUSTER_CREDENTIALS, what, {
      remedy: "The token or certificate is not valid, or has expired: make another one.",
    });
  }
  if (status === FORBIDDEN) {
    return new Fault(CLUSTER_PERMISSION, what, {
      remedy: "Grant list and watch of services and endpointslices in all namespaces: see docs/kubernetes.md.",
    });
  }
  return new Fault(CLUSTER_FAILED, what, { remedy: "The log of the API server has the reason." });
}
