/**
 * A small API server of Kubernetes on loopback: it lists and watches the objects that a test gives it, page by page, from a
 * version on, with bookmarks; a client may also create, replace and delete them. kubectl uses it, too: what kubectl does not understand, no real one says.
 */
import { once } from "node:events";
import { type IncomingMessage, type ServerResponse, createServer as createPlain } from "node:http";
import { createServer as createSecure } from "node:https";
import type { AddressInfo, Server } from "node:net";

export interface KubeObject {
  readonly kind: string;
  readonly metadata: Readonly<Record<string, unknown>> & { readonly namespace: string; readonly name: string };
  readonly [field: string]: unknown;
}

export interface KubeApiOptions {
  /** In PEM; without it, plain HTTP. */
  readonly tls?: { readonly cert: string; readonly key: string; readonly clientCa?: string };
  /** A client without it is refused. */
  readonly token?: string;
  readonly port?: number;
}

interface Change {
  readonly resource: string;
  readonly version: number;
  readonly type: "ADDED" | "MODIFIED" | "DELETED";
  readonly object: KubeObject;
}

interface Watcher {
  readonly resource: string;
  readonly namespace: string | undefined;
  readonly response: ServerResponse;
}

/** Where the objects of each resource are. */
const RESOURCES: Readonly<Record<string, { readonly group: string; readonly kind: string }>> = {
  services: { group: "v1", kind: "Service" },
  endpointslices: { group: "discovery.k8s.io/v1", kind: "EndpointSlice" },
};

const PATH = /^\/(?:api|apis)\/(v1|discovery\.k8s\.io\/v1)(?:\/namespaces\/([^/]+))?\/([a-z]+)(?:\/([^/]+))?$/;

export class KubeApi implements AsyncDisposable {
  /** Of each request. */
  readonly paths: string[] = [];
  readonly #options: KubeApiOptions;
  readonly #server: Server;
  readonly #objects = new Map<string, { readonly resource: string; readonly object: KubeObject }>();
  readonly #watchers = new Set<Watcher>();
  readonly #port: number;
  #changes: Change[] = [];
  #version = 1;
  /** Answers before anything else where it returns true. */
  intercept: (request: IncomingMessage, response: ServerResponse) => boolean = () => false;

  private constructor(options: KubeApiOptions) {
    this.#options = options;
    this.#port = options.port ?? 0;
    const answer = (request: IncomingMessage, response: ServerResponse): void => this.#answer(request, response);
    const { tls } = options;
    this.#server =
      tls === undefined
        ? createPlain(answer)
        : createSecure(
            {
              cert: tls.cert,
              key: tls.key,
              ...(tls.clientCa !== undefined && { ca: tls.clientCa, requestCert: true, rejectUnauthorized: true }),
            },
            answer,
          );
  }

  static async start(options: KubeApiOptions = {}): Promise<KubeApi> {
    const api = new KubeApi(options);
    await api.#listen();
    return api;
  }

  get url(): string {
    const { port } = this.#server.address() as AddressInfo;
    return `${this.#options.tls === undefined ? "http" : "https"}://127.0.0.1:${port}`;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** How many streams of changes are open. */
  get watches(): number {
    return this.#watchers.size;
  }

  /** Creates objects, or replaces them. */
  put(...objects: readonly KubeObject[]): void {
    for (const object of objects) this.#put(object);
  }

  remove(kind: string, namespace: string, name: string): void {
    const resource = resourceOf(kind);
    const key = `${resource}/${namespace}/${name}`;
    const known = this.#objects.get(key);
    if (known === undefined) return;
    this.#objects.delete(key);
    this.#note(resource, "DELETED", known.object);
  }

  /** Nobody can watch from before now on. */
  compact(): void {
    this.#version++;
    this.#changes = [];
  }

  /** Ends all streams, as the API does from time to time. */
  endWatches(): void {
    for (const { response } of this.#watchers) response.end();
    this.#watchers.clear();
  }

  /** A change that the server has not made. */
  send(text: string): void {
    for (const { response } of this.#watchers) response.write(text);
  }

  async close(): Promise<void> {
    this.#watchers.clear();
    if (!this.#server.listening) return;
    const closed = once(this.#server, "close");
    this.#server.close();
    (this.#server as unknown as { closeAllConnections: () => void }).closeAllConnections();
    await closed;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async #listen(): Promise<void> {
    const listening = once(this.#server, "listening");
    this.#server.listen(this.#port, "127.0.0.1");
    await listening;
  }

  #put(given: KubeObject): KubeObject {
    const { namespace, name } = given.metadata;
    const resource = resourceOf(given.kind);
    const key = `${resource}/${namespace}/${name}`;
    const type = this.#objects.has(key) ? "MODIFIED" : "ADDED";
    this.#version++;
    const metadata = { ...given.metadata, uid: key, resourceVersion: String(this.#version) };
    const object = { ...given, apiVersion: RESOURCES[resource]?.group, metadata };
    this.#objects.set(key, { resource, object });
    this.#note(resource, type, object);
    return object;
  }

  #note(resource: string, type: Change["type"], object: KubeObject): void {
    if (type === "DELETED") this.#version++;
    const metadata = { ...object.metadata, resourceVersion: String(this.#version) };
    const change = { resource, version: this.#version, type, object: { ...object, metadata } };
    this.#changes.push(change);
    for (const watcher of this.#watchers) tell(watcher, change);
  }

  #answer(request: IncomingMessage, response: ServerResponse): void {
    const url = new URL(request.url ?? "", "http://api");
    this.paths.push(`${url.pathname}${url.search}`);
    if (this.intercept(request, response)) return;
    const { token } = this.#options;
    if (token !== undefined && request.headers.authorization !== `Bearer ${token}`) {
      return reply(response, 401, status(401, "Unauthorized"));
    }
    const discovered = discovery(url.pathname);
    if (discovered !== undefined) return reply(response, 200, discovered);
    const [, , namespace, resource = "", name] = PATH.exec(url.pathname) ?? [];
    if (!Object.hasOwn(RESOURCES, resource)) return reply(response, 404, status(404, "not found"));
    const about = { resource, namespace, name: name && decodeURIComponent(name) };
    if (request.method === "GET") this.#read(about, url.searchParams, response);
    else void this.#change(request, about, response);
  }

  async #change(request: IncomingMessage, about: About, response: ServerResponse): Promise<void> {
    this.#write(request.method ?? "", about, await bodyOf(request), response);
  }

  #read(about: About, query: URLSearchParams, response: ServerResponse): void {
    const { resource, namespace, name } = about;
    const field = /^metadata\.name=(.+)$/.exec(query.get("fieldSelector") ?? "")?.[1];
    const all = [...this.#objects.values()]
      .filter((each) => each.resource === resource)
      .map(({ object }) => object)
      .filter(({ metadata }) => namespace === undefined || metadata.namespace === namespace)
      .filter(({ metadata }) => field === undefined || metadata.name === field)
      .toSorted((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1));
    if (name !== undefined) {
      const found = all.find(({ metadata }) => metadata.name === name);
      return found === undefined
        ? reply(response, 404, status(404, `${resource} "${name}" not found`, "NotFound"))
        : reply(response, 200, found);
    }
    if (query.get("watch") === "1" || query.get("watch") === "true") return this.#watch(about, query, response);
    const limit = Number(query.get("limit") ?? all.length);
    const from = Number(query.get("continue") ?? 0);
    const items = all.slice(from, from + limit);
    const hasMore = from + limit < all.length;
    const { group, kind } = RESOURCES[resource] as { group: string; kind: string };
    reply(response, 200, {
      kind: `${kind}List`,
      apiVersion: group,
      metadata: {
        resourceVersion: String(this.#version),
        ...(hasMore && { continue: String(from + limit), remainingItemCount: all.length - from - limit }),
      },
      items,
    });
  }

  #watch({ resource, namespace }: About, query: URLSearchParams, response: ServerResponse): void {
    const since = Number(query.get("resourceVersion") ?? 0);
    const first = this.#changes[0]?.version ?? this.#version + 1;
    response.writeHead(200, { "content-type": "application/json" });
    response.flushHeaders();
    if (since !== 0 && since + 1 < first && since < this.#version) {
      const object = status(410, `too old resource version: ${since} (${this.#version})`, "Expired");
      response.end(`${JSON.stringify({ type: "ERROR", object })}\n`);
      return;
    }
    const watcher = { resource, namespace, response };
    for (const change of this.#changes) if (change.version > since) tell(watcher, change);
    this.#watchers.add(watcher);
    response.on("close", () => this.#watchers.delete(watcher));
    if (query.get("allowWatchBookmarks") !== "true") return;
    const { group, kind } = RESOURCES[resource] as { group: string; kind: string };
    const object = { kind, apiVersion: group, metadata: { resourceVersion: String(this.#version) } };
    response.write(`${JSON.stringify({ type: "BOOKMARK", object })}\n`);
  }

  #write(
    method: string,
    { resource, namespace = "default", name }: About,
    body: string,
    response: ServerResponse,
  ): void {
    const { kind } = RESOURCES[resource] as { kind: string };
    if (method === "DELETE" && name !== undefined) {
      if (!this.#objects.has(`${resource}/${namespace}/${name}`)) {
        return reply(response, 404, status(404, `${resource} "${name}" not found`, "NotFound"));
      }
      this.remove(kind, namespace, name);
      return reply(response, 200, { kind: "Status", apiVersion: "v1", status: "Success" });
    }
    if (method !== "POST" && method !== "PUT") return reply(response, 405, status(405, "not supported"));
    const given = JSON.parse(body) as KubeObject;
    const object = this.#put({ ...given, kind, metadata: { ...given.metadata, namespace } });
    reply(response, method === "POST" ? 201 : 200, object);
  }
}

interface About {
  readonly resource: string;
  readonly namespace: string | undefined;
  readonly name: string | undefined;
}

function tell({ resource, namespace, response }: Watcher, change: Change): void {
  const isOther = namespace !== undefined && change.object.metadata.namespace !== namespace;
  if (change.resource !== resource || isOther) return;
  response.write(`${JSON.stringify({ type: change.type, object: change.object })}\n`);
}

function reply(response: ServerResponse, code: number, body: object): void {
  response.writeHead(code, { "content-type": "application/json" });
  response.end(JSON.stringify(body));
}

function status(code: number, message: string, reason = "Failure"): object {
  return { kind: "Status", apiVersion: "v1", status: "Failure", message, reason, code };
}

function resourceOf(kind: string): string {
  const found = Object.entries(RESOURCES).find(([, each]) => each.kind === kind);
  if (found === undefined) throw new Error(`no resource has the kind ${kind}`);
  return found[0];
}

function keyOf({ metadata }: KubeObject): string {
  return `${metadata.namespace}/${metadata.name}`;
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  let body = "";
  for await (const chunk of request) body += String(chunk);
  return body;
}

/** What a client asks first, to find out which resources there are. */
function discovery(path: string): object | undefined {
  if (path === "/version") return { major: "1", minor: "32", gitVersion: "v1.32.0" };
  if (path === "/api") return { kind: "APIVersions", versions: ["v1"] };
  if (path === "/apis") {
    const version = { groupVersion: "discovery.k8s.io/v1", version: "v1" };
    const groups = [{ name: "discovery.k8s.io", versions: [version], preferredVersion: version }];
    return { kind: "APIGroupList", apiVersion: "v1", groups };
  }
  const group = /^\/(?:api|apis)\/(v1|discovery\.k8s\.io\/v1)$/.exec(path)?.[1];
  if (group === undefined) return undefined;
  const verbs = ["create", "delete", "get", "list", "update", "watch"];
  const resources = Object.entries(RESOURCES)
    .filter(([, each]) => each.group === group)
    .map(([name, { kind }]) => ({ name, singularName: kind.toLowerCase(), namespaced: true, kind, verbs }));
  return { kind: "APIResourceList", apiVersion: "v1", groupVersion: group, resources };
}
