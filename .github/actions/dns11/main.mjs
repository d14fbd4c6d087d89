// Written by scripts/action.mjs from src/action: change that, and run `make action`.

// src/action/record.ts
import { renameSync, writeFileSync } from "node:fs";
import { join as join5, resolve } from "node:path";

// src/action/place.ts
import { spawnSync } from "node:child_process";
import { existsSync as existsSync2, readFileSync as readFileSync2 } from "node:fs";
import { join as join4 } from "node:path";
import { setTimeout as sleep2 } from "node:timers/promises";

// src/api/state-paths.ts
import { join as join2 } from "node:path";

// src/api/engine-address.ts
import { createHash } from "node:crypto";
import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";

// src/base/lib/fault.ts
var Fault = class extends Error {
  name = "Fault";
  code;
  /** What the reader can do about it, as a separate sentence. */
  remedy;
  /** Retrying will not help. */
  isFinal;
  constructor(code2, message, options = {}) {
    super(message, options.cause === void 0 ? void 0 : { cause: options.cause });
    this.code = code2;
    this.remedy = options.remedy;
    this.isFinal = options.isFinal ?? false;
  }
};
function codeOf(thrown) {
  if (thrown instanceof Error && "code" in thrown && typeof thrown.code === "string") return thrown.code;
  return void 0;
}
function engineFault(error, socketPath) {
  const status = error instanceof Error && "statusCode" in error ? error.statusCode : void 0;
  if (status === 404) {
    return new Fault("ENGINE_NOT_FOUND", "Not found by the engine", {
      cause: error,
      remedy: "The container, image or network was removed in the meantime. Run the command again."
    });
  }
  switch (codeOf(error)) {
    case "ENOENT":
      return new Fault("ENGINE_NO_SOCKET", `No engine socket at "${socketPath}"`, {
        cause: error,
        remedy: "Check that Docker is installed and running, or set its socket with -H unix://PATH or DOCKER_HOST."
      });
    case "EACCES":
    case "EPERM":
      return new Fault("ENGINE_PERMISSION", `Permission denied at the engine socket "${socketPath}"`, {
        cause: error,
        remedy: "Run this command as root, for example with sudo."
      });
    case "ECONNREFUSED":
      return new Fault("ENGINE_AWAY", `Connection refused at the engine socket "${socketPath}"`, {
        cause: error,
        remedy: "Check that dockerd is running: systemctl status docker."
      });
    default:
      return new Fault("ENGINE_AWAY", `The engine at "${socketPath}" did not answer`, {
        cause: error,
        remedy: "Check that dockerd is running: systemctl status docker."
      });
  }
}

// src/api/engine-address.ts
var DEFAULT_SOCKET = "/var/run/docker.sock";
var BY_DEFAULT = "the default";
function engineAddress(flag, env, user = process.getuid?.() ?? 0) {
  if (flag !== void 0 && flag !== "") return parse(flag, "-H");
  const host = env["DOCKER_HOST"];
  if (host !== void 0 && host !== "") return parse(host, "DOCKER_HOST");
  const folder = env["DOCKER_CONFIG"] || join(env["HOME"] || "/root", ".docker");
  const context = env["DOCKER_CONTEXT"] || readJson(join(folder, "config.json"))?.["currentContext"];
  if (typeof context !== "string" || context === "" || context === "default") {
    return { socketPath: ownSocket(env, user) ?? DEFAULT_SOCKET, source: BY_DEFAULT };
  }
  return parse(contextHost(folder, context), `docker context "${context}"`);
}
function parse(text, source) {
  if (text.startsWith("unix://")) return { socketPath: text.slice("unix://".length) || DEFAULT_SOCKET, source };
  const scheme = /^([a-z]+):\/\//.exec(text)?.[1] ?? "tcp";
  if (scheme === "npipe" || scheme === "fd") {
    throw new Fault(
      "BAD_ENGINE",
      `Unsupported engine address "${text}" (from ${source}): ${scheme} is not a unix socket`,
      {
        remedy: "Use a unix socket, such as -H unix:///var/run/docker.sock"
      }
    );
  }
  throw new Fault(
    "ENGINE_ELSEWHERE",
    `Unsupported engine address "${text}" (from ${source}): the engine may be on another machine`,
    {
      remedy: `dns11 enters the containers' namespaces, so run it on that machine, with -H unix://${DEFAULT_SOCKET}`
    }
  );
}
function contextHost(folder, context) {
  const digest = createHash("sha256").update(context).digest("hex");
  const meta = readJson(join(folder, "contexts", "meta", digest, "meta.json"));
  const endpoints = meta?.["Endpoints"];
  const docker = isRecord(endpoints) ? endpoints["docker"] : void 0;
  const host = isRecord(docker) ? docker["Host"] : void 0;
  if (typeof host === "string") return host;
  throw new Fault("BAD_ENGINE", `The docker context "${context}" does not exist or has no engine address`, {
    remedy: "List the contexts with: docker context ls. Or set the socket with -H."
  });
}
function readJson(path) {
  try {
    const value = JSON.parse(readFileSync(path, "utf8"));
    return isRecord(value) ? value : void 0;
  } catch {
    return void 0;
  }
}
function isRecord(value) {
  return typeof value === "object" && value !== null;
}
var ROOT = 0;
function ownSocket(env, user) {
  const folder = runtimeFolder(env, user);
  const path = folder === void 0 ? void 0 : join(folder, "docker.sock");
  return path !== void 0 && ownerOf(path) === user ? path : void 0;
}
function isOwnEngine(socketPath, env, user) {
  if (user === ROOT) return false;
  const folder = runtimeFolder(env, user);
  const owner = ownerOf(socketPath);
  return owner === void 0 ? folder !== void 0 && socketPath.startsWith(`${folder}/`) : owner === user;
}
function ownerOf(path) {
  try {
    return statSync(path).uid;
  } catch {
    return void 0;
  }
}
function runtimeFolder(env, user) {
  const folder = env["XDG_RUNTIME_DIR"];
  return user === ROOT || folder === void 0 || !folder.startsWith("/") ? void 0 : folder;
}

// src/api/state-paths.ts
import { existsSync } from "node:fs";
var DEFAULT_STATE_DIR = "/run/dns11";
function defaultStateDir(host, env = process.env, user = process.getuid?.() ?? 0) {
  try {
    const { socketPath } = engineAddress(host, env, user);
    const folder = isOwnEngine(socketPath, env, user) ? runtimeFolder(env, user) : void 0;
    return folder === void 0 ? DEFAULT_STATE_DIR : join2(folder, "dns11");
  } catch {
    return DEFAULT_STATE_DIR;
  }
}
function instanceFolder(stateDir, engineId2) {
  return join2(stateDir, engineId2.replaceAll(/[^\w-]/g, "_") || "unknown");
}
function controlPath(folder) {
  return join2(folder, "control.sock");
}
var UNITS = ["/etc/systemd/system", "/usr/lib/systemd/system", "/lib/systemd/system"];
function startRemedy(otherwise, folders2 = UNITS) {
  const isInstalled = folders2.some((folder) => existsSync(`${folder}/dns11.service`));
  return isInstalled ? "Start it with: sudo systemctl start dns11. If it has ended: journalctl -u dns11" : `Start it with: ${otherwise}`;
}

// src/api/lines.ts
async function* linesOf(answer) {
  let rest = "";
  const decoder = new TextDecoder();
  for await (const chunk of answer) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split("\n");
    rest = lines.pop() ?? "";
    yield* lines;
  }
}

// src/api/lease-connection.ts
import { request } from "node:http";
var OPEN = "Open another one.";
var LeaseConnection = class _LeaseConnection {
  #outgoing;
  #waiting = /* @__PURE__ */ new Map();
  #lastLine = 0;
  #end;
  #ended;
  /** Called with what is recorded, and how much was lost. */
  onRecorded = () => void 0;
  constructor(outgoing, incoming) {
    this.#outgoing = outgoing;
    this.#ended = this.#read(incoming);
    outgoing.on("error", () => incoming.destroy());
  }
  /** `failure` turns an error of the connection, or a refusal, into a Fault. */
  static async open(socketPath, failure, signal, path = "/v1/lease") {
    const options = { socketPath, path, method: "POST", agent: false, ...signal && { signal } };
    const outgoing = request(options);
    const incoming = await new Promise((resolve3, reject) => {
      outgoing.once("response", resolve3);
      outgoing.once("error", (error) => reject(failure.ofConnection(error)));
      outgoing.flushHeaders();
    });
    if (incoming.statusCode === 200) return new _LeaseConnection(outgoing, incoming);
    const fault = await failure.ofReply(incoming);
    outgoing.destroy();
    throw fault;
  }
  /** Resolves when the lease has ended, from either side. */
  get ended() {
    return this.#ended;
  }
  /** Resolves when it is in force. */
  async send(message) {
    if (this.#end !== void 0) throw this.#end;
    const line = ++this.#lastLine;
    const reply = await new Promise((resolve3, reject) => {
      this.#waiting.set(line, { resolve: resolve3, reject });
      this.#outgoing.write(`${JSON.stringify(message)}
`);
    });
    if ("error" in reply) throw new Fault(reply.code, reply.error);
    return reply;
  }
  /** Resolves when everything has been taken back. */
  async close() {
    this.#end ??= new Fault("LEASE_ENDED", "The lease has been closed", { remedy: OPEN });
    this.#outgoing.end();
    await this.#ended;
  }
  async #read(incoming) {
    try {
      for await (const line of linesOf(incoming)) this.#take(JSON.parse(line));
    } catch {
    }
    this.#end ??= new Fault("LEASE_ENDED", "dns11 was stopped or replaced, so the rules of the lease are gone", {
      remedy: OPEN
    });
    for (const { reject } of this.#waiting.values()) reject(this.#end);
    this.#waiting.clear();
    this.#outgoing.destroy();
  }
  #take(reply) {
    if ("recorded" in reply) return this.onRecorded(reply.recorded, reply.missed);
    this.#waiting.get(reply.line)?.resolve(reply);
    this.#waiting.delete(reply.line);
  }
};

// src/api/unix-http.ts
import { request as request2 } from "node:http";
async function openUnix(socketPath, path, { method = "GET", body, timeoutMs: timeout, signal }) {
  return await new Promise((resolve3, reject) => {
    const headers = { host: "localhost" };
    const options = { socketPath, path, method, headers, timeout, agent: false, ...signal && { signal } };
    const outgoing = request2(options, resolve3);
    outgoing.on("timeout", () => outgoing.destroy(new Error("no response in time")));
    outgoing.on("error", reject);
    outgoing.end(body === void 0 ? void 0 : JSON.stringify(body));
  });
}
async function textOf(answer) {
  const chunks = [];
  for await (const chunk of answer) chunks.push(chunk);
  return Buffer.concat(chunks).toString("utf8");
}

// src/api/control-client.ts
var TIMEOUT_MS = 5e3;
var QUERY_TIMEOUT_MS = 12e4;
var ControlClient = class {
  #path;
  #closed;
  /** `path` is the path of the control socket; `closed` ends all requests. */
  constructor(path, closed) {
    this.#path = path;
    this.#closed = closed;
  }
  async status() {
    return await this.#call("GET", "/v1/status");
  }
  /** Restores a KIND node; returns its name. */
  async detachNode(node) {
    return await this.#call("POST", "/v1/kind/detach", { node });
  }
  /** Serves a detached node again. */
  async attachNode(node) {
    return await this.#call("POST", "/v1/kind/attach", { node });
  }
  /** Verifies a container, by its name or ID, and attaches it again if needed. */
  async repair(container) {
    return await this.#call("POST", "/v1/repair", { container });
  }
  /** Announces test queries from a container's namespace, which then count nowhere. */
  async announceProbes(probes) {
    return await this.#call("POST", "/v1/probes", probes);
  }
  /** Query counters of all containers. */
  async counters(filter = {}) {
    return await this.#call("GET", `/v1/counters?${parametersOf(filter)}`);
  }
  /** Past queries, oldest first. */
  async queries(filter = {}) {
    return await this.#call("GET", `/v1/queries?${parametersOf(filter)}`);
  }
  /** Queries as they arrive, until `signal` or until dns11 stops. */
  async *follow(filter = {}, signal) {
    yield* this.#stream("/v1/queries", { ...filter, follow: true }, signal);
  }
  /** The same with at most so many queries a second, after the last past ones. */
  async *followSome({ perSecond, last }, signal) {
    yield* this.#stream(
      "/v1/queries",
      { perSecond, last, follow: true },
      signal
    );
  }
  /** Names that fail, of some containers or of all. */
  async failures(filter = {}) {
    return await this.#call("GET", `/v1/failures?${parametersOf(filter)}`);
  }
  /** Where containers connected to, of some containers or of all. */
  async egress(filter = {}) {
    return await this.#call("GET", `/v1/egress?${parametersOf(filter)}`);
  }
  /** The names of this engine's containers: all, or as one container resolves them. */
  async names(filter = {}) {
    return await this.#call("GET", `/v1/names?${parametersOf(filter)}`);
  }
  /** The present failures, then each again whenever it happens again, until `signal` or until dns11 stops. */
  async *followFailures(filter = {}, signal) {
    yield* this.#stream("/v1/failures", { ...filter, follow: true }, signal);
  }
  async *#stream(path, filter, signal) {
    const answer = await this.#open("GET", `${path}?${parametersOf(filter)}`);
    answer.socket.setTimeout(0);
    const stop = () => void answer.destroy();
    signal?.addEventListener("abort", stop, { once: true });
    if (signal?.aborted === true) stop();
    try {
      if (answer.statusCode !== 200) throw this.#errorOf(answer, await this.#bodyOf(answer));
      for await (const line of linesOf(answer)) yield JSON.parse(line);
    } catch (error) {
      if (error instanceof Fault) throw error;
    } finally {
      signal?.removeEventListener("abort", stop);
      answer.destroy();
    }
  }
  /** Resolves a name from inside a container, as a program in it would; `rcode` is null if there was no reply. */
  async lookup(lookupRequest, timeoutMs = QUERY_TIMEOUT_MS) {
    return await this.#call("POST", "/v1/lookup", lookupRequest, timeoutMs);
  }
  /** How dns11 resolves a name for a container. */
  async explain(nameRequest, timeoutMs = QUERY_TIMEOUT_MS) {
    return await this.#call("POST", "/v1/explain", nameRequest, timeoutMs);
  }
  /** A lease: its rules are in force until it is closed, or until this process ends. */
  async openLease() {
    return await this.#openLines("/v1/lease");
  }
  /** The same for policies. */
  async openPolicyLease() {
    return await this.#openLines("/v1/policies");
  }
  async #openLines(path) {
    const failure = {
      ofConnection: (error) => this.#fault(error),
      ofReply: async (answer) => this.#errorOf(answer, await this.#bodyOf(answer))
    };
    return await LeaseConnection.open(this.#path, failure, this.#closed, path);
  }
  /** Containers with a policy, and how far each is confined. */
  async policies() {
    return await this.#call("GET", "/v1/policies");
  }
  /** What the policies of a container say of a name. */
  async checkPolicy(request3) {
    return await this.#call("GET", `/v1/policies/check?${parametersOf({ ...request3 })}`);
  }
  /** Allows a container a name for a while. */
  async allowName(request3) {
    return await this.#call("POST", "/v1/policies/allow", request3);
  }
  /** The last refusals, oldest first. */
  async policyLog(filter = {}) {
    return await this.#call("GET", `/v1/policies/log?${parametersOf(filter)}`);
  }
  /** The last refusals, then each as it happens, until `signal` or until dns11 stops. */
  async *followPolicyLog(filter, signal) {
    yield* this.#stream("/v1/policies/log", { ...filter, follow: true }, signal);
  }
  /** The leases that are open, and what their rules have done. */
  async leases() {
    return await this.#call("GET", "/v1/leases");
  }
  /** Every upstream server with its state. */
  async upstreams() {
    return await this.#call("GET", "/v1/upstreams");
  }
  async cache() {
    return await this.#call("GET", "/v1/cache");
  }
  /** Cached replies, of names that match the pattern if there is one. */
  async cacheEntries(last, name) {
    return await this.#call("GET", `/v1/cache/entries?${parametersOf({ last, name })}`);
  }
  /** The containers of the engine, also those that are not running. */
  async containers() {
    return await this.#call("GET", "/v1/containers?all=true");
  }
  async networks() {
    return await this.#call("GET", "/v1/networks");
  }
  /** Which containers can resolve which services. */
  async matrix() {
    return await this.#call("GET", "/v1/matrix");
  }
  /** The last events, oldest first. */
  async events(last) {
    return await this.#call("GET", `/v1/events?last=${last}`);
  }
  /** Rates and servers of the last minutes. */
  async history() {
    return await this.#call("GET", "/v1/history");
  }
  /** Removes the cache entries of one name, or of all. */
  async flushCache(name) {
    return await this.#call("POST", "/v1/cache/flush", { name });
  }
  /** Reloads the settings file; returns what changed. */
  async reload() {
    return await this.#call("POST", "/v1/reload", void 0, QUERY_TIMEOUT_MS);
  }
  async #call(method, path, body, timeoutMs = TIMEOUT_MS) {
    const answer = await this.#open(method, path, body, timeoutMs);
    const value = await this.#bodyOf(answer);
    if (answer.statusCode === 200) return value;
    throw this.#errorOf(answer, value);
  }
  /** The parsed body; null if it is empty. */
  async #bodyOf(answer) {
    let text;
    try {
      text = await textOf(answer);
    } catch (cause) {
      if (this.#closed?.aborted === true) throw closedFault();
      throw new Fault("CONTROL", `dns11 at "${this.#path}" stopped before it responded`, { cause });
    }
    try {
      return JSON.parse(text || "null");
    } catch (cause) {
      throw new Fault("CONTROL", `Invalid response from "${this.#path}": not dns11, or an incompatible version`, {
        cause
      });
    }
  }
  async #open(method, path, body, timeoutMs = TIMEOUT_MS) {
    try {
      return await openUnix(this.#path, path, { method, body, timeoutMs, signal: this.#closed });
    } catch (error) {
      throw this.#fault(error);
    }
  }
  #errorOf({ statusCode }, value) {
    const { error, code: code2, remedy } = value ?? {};
    const message = error ?? `dns11 at "${this.#path}" responded with status ${statusCode}`;
    return new Fault(code2 ?? "CONTROL", message, remedy === void 0 ? {} : { remedy });
  }
  #fault(cause) {
    if (this.#closed?.aborted === true) return closedFault();
    const code2 = codeOf(cause);
    if (code2 === "ENOENT" || code2 === "ECONNREFUSED") {
      return new Fault("NOT_RUNNING", `dns11 is not running for this engine (nothing listens at "${this.#path}")`, {
        remedy: startRemedy("dns11 run")
      });
    }
    const isDenied = code2 === "EACCES";
    return new Fault(isDenied ? "CONTROL_PERMISSION" : "CONTROL", `Cannot connect to dns11 at "${this.#path}"`, {
      cause,
      ...isDenied && { remedy: "Run the command as root or as a member of the group docker." }
    });
  }
};
function closedFault() {
  return new Fault("CLOSED", "The client is closed");
}
function parametersOf(filter) {
  const parameters = Object.entries(filter).filter(([, value]) => value !== void 0);
  return new URLSearchParams(parameters.map(([key, value]) => [key, String(value)])).toString();
}

// src/api/locate.ts
import { readdirSync, realpathSync } from "node:fs";
import { dirname, basename, join as join3 } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

// src/base/limits.ts
var DECLARED_LIMITS = {
  /**
   * Declared names in all files, records of each, and CNAMEs followed from one name to the next. A file with more is
   * refused, and the names of the file before it stay. A name takes 1 KB.
   */
  declaredNames: 1e5,
  declaredRecords: 100,
  declaredAliases: 8,
  /**
   * Files in the folder of records, and bytes of each; a folder with more, or a larger file, is refused. Of its mistakes
   * the first are logged and shown.
   */
  recordsFiles: 256,
  recordsProblems: 20,
  recordsFileBytes: 8 * 1024 * 1024,
  /**
   * Domains with servers of their own in a dnsmasq folder, and in a ConfigMap of kube-dns: every forwarded query is
   * matched with them. A folder with more is refused.
   */
  dnsmasqDomains: 256,
  /**
   * Domains, servers and characters in the label io.dns11.dns of one container. Each container has its own routing
   * table, which every forwarded query is matched with. The rest of a longer label is ignored and reported.
   */
  labelDomains: 64,
  labelServers: 16,
  /** Names in the label io.dns11.names, and wildcards among the aliases of an endpoint; the rest is ignored and reported. */
  labelNames: 64,
  /** Ports in the label io.dns11.ports, published ports, and exposed ports of one container; the rest is ignored. */
  labelPorts: 32,
  labelChars: 4096,
  /**
   * Containers in one answer from a zone, more than a bridge has room for names in a UDP reply. Wildcards would
   * otherwise make every query as expensive as there are containers.
   */
  zoneAnswerMembers: 256,
  /** Services, and containers in them, that are visited for a query of a zone; the rest is left out. */
  zoneVisits: 2048,
  /** Members of one other machine in an answer, so that no machine fills it alone. */
  machineAnswerMembers: 64,
  /** Entries of one other machine that are visited for an answer about a service: five for each of its members in the answer. */
  machineVisits: 320,
  /** Containers with one address: of those that other machines publish, any number may claim it. */
  zoneAddressMembers: 16,
  /**
   * Containers that are not running and are known, and whose names stay local. Of more those that ended first are forgotten, and their
   * names are forwarded, as in Docker.
   */
  stoppedContainers: 256,
  /** Objects of a store that are left out and whose problem is known; all are counted. */
  keyProblems: 1024,
  /** Characters shown of a label; and of its problems. */
  labelCharsShown: 80,
  labelProblemChars: 240
};
var ASKED_LIMITS = {
  /**
   * How long an answer of Docker's resolver is repeated, and for how long clients may keep it: two seconds together. It
   * knows of a change on another machine as soon as gossip does; nothing else would tell dns11.
   */
  askedFreshMs: 1e3,
  askedTtlSeconds: 1,
  /**
   * While Docker's resolver does not answer, its last answers are used for so long: longer than a restart or an upgrade
   * of dockerd takes. Services keep their addresses meanwhile, tasks may not. After that their names fail.
   */
  askedLastKnownMs: 6e5,
  /** How long one question waits for Docker's resolver; then it counts as away, for all questions of the next second. */
  askedWaitMs: 2e3,
  askedAwayMs: 1e3,
  /** Names of one container whose last answers are kept; the oldest gives way. */
  askedNamesKept: 512,
  /** Addresses of one answer; the rest is left out. */
  askedAddresses: 1024,
  /** Questions that one query may need: a declared name can lead to several. */
  askedPasses: 10,
  /**
   * Names of one container that Docker's resolver does not know, each of which it logs. A container that asks for more
   * gets SERVFAIL for them, unless they were unknown within `askedFreshMs`.
   */
  askedUnknown: { burst: 40, perSecond: 20 }
};
var LOG_LIMITS = {
  /** A line with the same subject and text is logged once in this time, with the number of those held back. */
  logRepeatMs: 6e5,
  /** Different lines about one container or server in that time. */
  logLinesPerSubject: 4,
  /** How many subjects are tracked. */
  logSubjects: 4096,
  /**
   * Lines with one text in so much time: the first line of each container or server, and beyond these so many of all and of
   * each. So none uses up the room of another.
   */
  logKindMs: 6e4,
  logOwnersPerKind: 400,
  logLinesPerKind: 100,
  logLinesPerOwner: 8,
  /** A server that goes down or comes back is logged so much sooner again: it concerns everybody. */
  logServerMs: 6e4,
  /** Names of failed lookups that are logged for one container, within `logRepeatMs`; and how much of a name. */
  logNames: 16,
  logNameChars: 300
};
var LIMITS = {
  /** Packets answered in one batch. Beyond 64 a larger batch gains nothing and delays other sockets; the rest waits. */
  udpBatch: 64,
  /** Packets of a batch in which most queries are forwarded, each of which costs as much as several local answers. */
  udpBatchDeferred: 16,
  /**
   * After so long the rest of a batch waits for the next turn of the event loop; on a busy machine, after as much CPU time of this
   * thread again. Usual answers take microseconds.
   */
  udpSliceMs: 1,
  /**
   * Receive buffer for queries of one namespace that arrive while others are served, in the kernel's accounting (768
   * bytes and more for a short query; the kernel doubles this value): some 2,700 queries instead of 270. What does not
   * fit is lost, and the client retries after seconds.
   */
  udpReceiveBytes: 1024 * 1024,
  /** The longest UDP query that is read; a longer one is truncated, cannot be parsed, and gets FORMERR. */
  udpQueryBytes: 4096,
  /** What Docker reads of a UDP query, for the strict mode. */
  udpQueryBytesStrict: 512,
  /**
   * Steps, from label to label and along compression pointers, that parsing the names of a message may take for each of
   * its bytes; a message that takes more is malformed. Two bytes can point through 127 labels, so 64 KB would otherwise
   * block the event loop for 11 ms. Names as servers compress them take one or two steps a byte.
   */
  nameStepsPerByte: 8,
  /** CNAMEs followed from the query name to an answer; a reply with more is rejected. */
  scrubAliases: 16,
  /**
   * Records of a reply checked again before it is copied, in case nothing has to be dropped; valid replies have few.
   */
  scrubPlainRecords: 64,
  /** Replies shorter than this count as this long where the length limits the size of expanded names. */
  scrubOctetsMin: 1024,
  /**
   * TCP connections of clients: in total, of one container, and what each container always gets. A new connection
   * beyond that replaces the one that has been idle longest.
   */
  clientStreams: { whole: 16384, each: 128, always: 8 },
  /**
   * Buffered bytes of a container's TCP connections, with clients and with upstreams: incomplete messages, and data not
   * sent yet. A connection that needs more is closed.
   */
  streamBytes: { whole: 128 * 1024 * 1024, each: 8 * 1024 * 1024, always: 256 * 1024 },
  /** Queries on one connection in strict mode, as in Docker; then it is closed, and what else has arrived gets no answer. */
  tcpQueriesStrict: 128,
  /** Concurrent queries of one connection; further ones stay in the socket. */
  tcpPipelined: 32,
  /** Time from connecting to the first complete query; then the connection is closed. */
  tcpFirstQueryMs: 2e3,
  /** Time for each further complete query, and for reading the answers; sending byte by byte extends neither. */
  tcpIdleMs: 8e3,
  /** Unsent answers of a connection, in bytes; beyond this its queries are no longer read. */
  tcpUnreadBytes: 256 * 1024,
  /**
   * Bytes of queries and replies on a container's connections in one turn of the event loop: 64 KB take up to a millisecond to
   * parse. Each message counts as so many more, one that is forwarded as many as several local answers, and a connection that
   * is accepted or read again as many as copying 64 KB takes.
   */
  streamBudget: { bytes: 64 * 1024, each: 512, deferred: 4096, read: 8192 },
  /** Bytes that arrive at once from a connection before others of the container are read; queries are shorter. */
  streamReadBytes: 4096,
  /** Connections in the kernel's accept queue. */
  tcpBacklog: 128,
  /** Forwarded queries of one container in flight, as in Docker; further ones wait. */
  forwardSlots: 1024,
  /** Forwarded queries of all containers in flight or waiting. One more is refused, unless its container has few. */
  forwardQueriesTotal: 8192,
  forwardQueriesAlways: 32,
  /** Their bytes: in total, of one container, and what each container always gets. One query may have 64 KB. */
  forwardBytes: { whole: 64 * 1024 * 1024, each: 4 * 1024 * 1024, always: 128 * 1024 },
  /** The limit of all containers where queries share sockets and cost only memory. */
  forwardQueriesShared: 32768,
  /** The share of the process's descriptors for forwarded queries; the rest is for serving. */
  forwardDescriptorShare: 0.5,
  /** Queries of one container waiting for a slot; one more is refused at once. */
  forwardWaiting: 1024,
  /** How long a query waits for a slot, as in Docker, and with a time budget; then it is refused. */
  forwardWaitMs: 4e3,
  forwardWaitShortMs: 2e3,
  /** The time budget of a query in a KIND node: the forwarder of its pods (CoreDNS) times out after 2 s. */
  nodeBudgetMs: 1900,
  /** Upstreams tried for one query, as in Docker. */
  forwardServers: 3,
  /** Time for one upstream to answer before the next one is tried. */
  forwardServerMs: 4e3,
  /** Time for Docker's own resolver, which tries up to three upstreams itself. */
  forwardDockerMs: 13e3,
  /**
   * Sockets to one upstream. Each query uses a random one, so that forging a reply takes guessing the port as well as
   * the id. More would not make that harder, but each is drained once in a turn of the event loop, and the replies from
   * all of them delay everything else.
   */
  upstreamSockets: 4,
  /** Packets that leave together when a callback of the event loop returns. */
  packetBatch: 64,
  /** Replies processed in one turn of the event loop; further ones wait in their sockets. */
  upstreamBatch: 64,
  /** A longer reply over UDP counts as several: one of 64 KB, which takes 7 ms at worst, as all replies of a turn. */
  upstreamReplyBytes: 1024,
  /** Bytes that are sent in one turn of the event loop, of a reply that many queries wait for. */
  joinedReplyBytes: 64 * 1024,
  /** Sockets to upstreams in total; beyond this a query shares an existing one. */
  upstreamSocketsTotal: 4096,
  /** The share of the process's descriptors for sockets to upstreams. */
  upstreamDescriptorShare: 0.25,
  /**
   * Descriptors kept back for a server without a socket when all others are in use: three of the host, as many as a resolv.conf has,
   * and one of a container's own. Without them served containers would resolve nothing that is neither local nor cached.
   */
  upstreamDescriptorsKept: 4,
  /** The share reserved for TCP connections of clients when the number of containers that fit is computed. */
  connectionDescriptorShare: 0.25,
  /**
   * Descriptors that attaching leaves free, for the control socket, probes and files: without them no state is
   * reported.
   */
  descriptorsReserved: 32,
  /**
   * Descriptors that the kernel's table has room for from the start, 128 KB of it: three thousand containers. Beyond
   * that, or where the process may not have so many, a full table grows, and everything waits for 10 to 20 ms.
   */
  descriptorsPreallocated: 16384,
  /** A machine with room for fewer containers gets a warning at startup. */
  containersExpected: 1e3,
  /** After so many queries, or so long, a socket is replaced by one on another port. */
  upstreamSocketQueries: 256,
  upstreamSocketMs: 1e4,
  /** Wrong replies on one socket before its queries are retried over TCP: they may be forged. */
  upstreamWrongReplies: 3,
  /**
   * TCP connections to upstreams, in total, of one container, and what each always gets; then existing ones are shared.
   */
  upstreamStreams: { whole: 1024, each: 32, always: 2 },
  /** Per container and upstream, and queries in flight on each: as many as servers accept on one connection. */
  upstreamStreamsPerServer: 4,
  upstreamPipelined: 64,
  /** Connections that a query is tried on, one after the other, where the upstream closes each after some reply. */
  upstreamStreamTries: 16,
  /** How long such a connection stays open after the last query or reply on it. */
  upstreamStreamIdleMs: 5e3,
  /**
   * New ones a second, for one container's queries and for all that use the host's upstreams. Each leaves a port in
   * TIME_WAIT for a minute on one side, and from 14,000 of those on the kernel takes milliseconds to find a free one.
   */
  upstreamConnects: { burst: 100, perSecond: 50 },
  upstreamConnectsOfHost: { burst: 400, perSecond: 150 },
  /**
   * Connections over TLS, which also count as TCP connections. A handshake costs the answering thread a millisecond: new ones a
   * second, as above, and how long one may take. Queries in flight on one connection before there is a second one, and how long it
   * may be silent until new queries go elsewhere, and until it is given up. An idle one is closed. Bytes of a handshake, and after
   * that beside answers (a record of 16 KB arrives as a whole). What is kept to resume, and for how long: a certificate counts for
   * so long after it was verified. How often the file of authorities is looked at, and its size.
   */
  tls: {
    connects: { burst: 16, perSecond: 8 },
    connectsOfHost: { burst: 100, perSecond: 50 },
    handshakeMs: 3e3,
    busy: 8,
    silentMs: 250,
    stuckMs: 5e3,
    idleMs: 1e4,
    greetingBytes: 64 * 1024,
    besideBytes: 20 * 1024,
    sessionBytes: 16 * 1024,
    sessionMs: 36e5,
    authoritiesMs: 6e4,
    authorityBytes: 4 * 1024 * 1024
  },
  /** UDP sockets to a container's own upstreams; beyond that it shares those that it has. */
  upstreamSocketsOwn: { whole: 4096, each: 64, always: 8 },
  /** How often one upstream is tried for one query: packets get lost. */
  upstreamAttemptsPerServer: 3,
  /**
   * Queries of one container that one upstream has at the same time: at first, at least and at most; further ones wait
   * here. Answers within `quickMs` delay nobody, so the number grows. Otherwise a smaller one is tried as soon as answers take
   * longer than they need to, and every `tryEveryMs` in any case: half of the container's throughput for one answer's time. A query
   * that is late, by `lateMs` at least, does not count any more.
   */
  serverWindow: { first: 64, least: 8, most: 16384, quickMs: 10, tryEveryMs: 2e3, lateMs: 100 },
  /** The most containers that metrics may be configured to list: beyond that there are too many series to store. */
  meteredContainersMax: 2e3,
  /** Upstreams that metrics list; all others are counted together. */
  meteredServers: 32,
  /** Upstreams of containers come and go, so they get this part: those of the machine always find room. */
  meteredContainersServers: 16,
  /** Upstreams used of one list; the rest of a longer list is ignored. */
  upstreamServers: 8,
  /** Containers that are followed from one whose servers are containers; a longer chain counts as a cycle. */
  upstreamChain: 32,
  /** Time from a truncated reply to the complete one over TCP; then the truncated one is passed on. */
  tcpFallbackMs: 1500,
  /** When a second upstream is tried in parallel with a slow one: never earlier or later than these. */
  hedgeMsMin: 40,
  hedgeMsMax: 1e3,
  /** When a second upstream is tried beside one without measurements. */
  hedgeMsFirst: 300,
  /** Time from trying the last upstream of the list to retrying the first; then it doubles. */
  retransmitMs: 700,
  /** Consecutive timeouts, and the time they must span, before an upstream is down. */
  downAfterQueries: 3,
  downAfterMs: 1e3,
  /** That time, at most, for an upstream that usually takes longer. */
  downAfterMsSlow: 3e3,
  /**
   * Consecutive errors of sockets, each opened after the error before, until an upstream counts as unreachable and a query
   * goes on to the next one. An attacker who can send packets to the host can forge one, for ports that it guesses.
   */
  downAfterSocketErrors: 3,
  /**
   * The reply of a lower upstream waits for those before it in the list: until this time before the end of the time budget, when
   * the client still waits for it. How often it is checked whether one of them is down by now. And how long such a reply is
   * cached, at most, if one of them has not answered.
   */
  heldUntilMs: 400,
  heldCheckMs: 100,
  lowerReplySeconds: 30,
  /** How long until an upstream that is down gets a trial query, in addition to the one that another upstream gets. */
  trialMsFirst: 500,
  trialMsLast: 3e4,
  /** How long an upstream that rejects EDNS is queried without it. */
  withoutEdnsMs: 15 * 6e4,
  /** How long an upstream counts as silent to queries with EDNS, with AD or over UDP; and how many silences in a row show that. */
  silentMs: 15 * 6e4,
  silencesInRow: 3,
  /** How long an upstream that was silent over TCP is tried there only if no other one has the whole reply. */
  tcpBlockedMs: 6e4,
  /** How long an upstream with a forwarding loop is skipped, and how often loops are probed for. */
  loopMs: 6e4,
  loopProbeEveryMs: 3e4,
  /** Loops remembered for one container; a new one replaces the oldest. */
  loopsEach: 16,
  /** Time after which a stale reply is sent if there is no fresh one yet (RFC 8767, 5). */
  staleAfterMs: 1800,
  /** The TTL of a stale reply, and how long after a failure it is sent at once. */
  staleTtlSeconds: 30,
  staleForMs: 3e4,
  /** How long a failure is cached after a timeout or while there is a stale answer, and after an error reply (RFC 9520). */
  failureTimeoutMs: 1e3,
  failureReplyMs: 5e3,
  /** Entries with this share of their TTL left and this many hits are prefetched, and how many at once. */
  prefetchShare: 0.1,
  prefetchHits: 2,
  prefetchesAtOnce: 256,
  /** How long `dns11 lookup` waits for each nameserver of a container, and how many it tries: as the C library does. */
  lookupMs: 5e3,
  lookupServers: 3,
  /**
   * Names of a search list that a lookup tries: as many as the C library once did, whatever the container configures.
   */
  lookupNames: 7,
  /** Time from sending a probe to its arrival; after that the rules do not work. */
  probeMs: 1e3,
  /** How often rules are verified without a reported change. */
  verifyEveryMs: 6e4,
  /**
   * How long a change in a namespace may wait for a lock there. After the first time the next container is served; after
   * the second the delay is reported, and charged to the container. Unlocked, a change takes 0.2 ms; a
   * blocklist of 200,000 addresses holds the lock for half a second.
   */
  jobSlowMs: 50,
  jobLateMs: 2e3,
  /** After so many late changes within this time the container is quarantined. */
  lateUntilQuarantine: 3,
  lateWindowMs: 6e5,
  /** Time limit for nft, which lists rules for a bug report; most of it waiting for another program's lock. */
  nftListMs: 3e3,
  /**
   * Foreign rules changed in a namespace: the probe waits for this quiet time, which is also the shortest time between
   * two probes.
   */
  verifyQuietMs: 50,
  verifyAtMostEveryMs: 1e3,
  /**
   * How long each of a repair's two steps waits for a verification: the client of the control socket waits 5 seconds.
   */
  repairMs: 2200,
  /** Backoff of retries: starts at the first value and doubles up to the second. */
  retryFirstMs: 500,
  retryLastMs: 6e4,
  /** Namespaces verified at the same time; further ones wait. */
  verifyAtOnce: 64,
  /**
   * Size and CPU time limit of one netlink dump; a longer one is aborted. A container decides how long most of them are,
   * and no query is answered during that time: 20,000 rules take 68 ms.
   */
  dumpBytes: 4 * 1024 * 1024,
  dumpMs: 100,
  /** The size of a dump that is read in parts, between which queries are answered. */
  dumpBytesInParts: 64 * 1024 * 1024,
  /**
   * How often the links of containers on the host are read again: the kernel may drop reports of changes while there are
   * very many.
   */
  linksReadEveryMs: 6e4,
  /** Links of one container that are looked up. A process with NET_ADMIN there, without a user namespace, can make any number. */
  linksOfContainer: 256,
  /** So many rules are read for redirects of a port at once, which takes a millisecond; more in parts. */
  redirectRulesAtOnce: 100,
  /** The part of a dump that is read even on the busiest machine, however long it takes. */
  dumpBytesAtLeast: 256 * 1024,
  /** Time for finding rules that block queries; the result is only reported. */
  culpritMs: 1,
  culpritRulesAtLeast: 50,
  /**
   * Namespaces with more TCP sockets than this are not searched for connections to Docker's resolver: the kernel
   * compares every socket, which takes 5 ms for 20,000.
   */
  sparingSockets: 1e4,
  /** Such connections that the rules exempt: each is a rule or two that every query passes. */
  sparedConversations: 64,
  /** Rules and chains searched for what may block queries. The rest is skipped, which is reported. */
  culpritRules: 2e3,
  /** Chains that are named as what may block them. */
  culpritsNamed: 8,
  /**
   * The longest iptables-legacy table that is parsed, some 25,000 rules. A longer one is reported as skipped, and
   * counts as foreign. Reading this much takes 30 ms, its own program 80 ms.
   */
  xtableBytes: 4 * 1024 * 1024,
  /** How long tables of iptables-legacy may take to be read, most of it waiting for another program's lock. */
  xtablesMs: 500,
  /** How often a table that changes while it is read is read again. */
  xtableReads: 3,
  /**
   * The longest file read under /proc. The kernel generates them on each read, and a container may make them grow: each
   * socket adds 150 bytes and 1.4 us.
   */
  procBytes: 256 * 1024,
  /** Nameservers used of the host's resolv.conf, including those behind a stub resolver; the C library uses three. */
  hostServers: 8,
  /** Servers of a container's own resolv.conf that are captured and queried: C libraries read three. */
  capturedServers: 3,
  /** After a change of the host's resolv.conf: quiet time before it is read, and the longest wait for it. */
  hostFileQuietMs: 50,
  hostFileBusyMs: 300,
  /** How long a file without nameservers may be an incomplete write; then it is used as it is. */
  hostFileMissingMs: 500,
  /** How often it is read without a reported change; and how often where the kernel has no watch for it. */
  hostFilePollMs: 1e4,
  hostFileUnwatchedMs: 500,
  /** When files that were under a lease are read again; one inspect each, however often the lease is renewed. */
  unreadRetryMs: 1e4,
  /**
   * Memory for the query history of one container, from its first query on: 170 queries with names of usual length. A
   * new query replaces the oldest.
   */
  historyBytes: 8192,
  /** Histories retained after their container is gone, and for how long; then the oldest is dropped. */
  historiesLingering: 256,
  historyLingerMs: 6e4,
  /** A failure over TCP explains failures of names for so long. */
  tcpFailureMs: 1e4,
  /** Addresses that containers have given up, and for how long they are known: programs may still use them. */
  formerAddresses: 256,
  formerAddressMs: 6e5,
  /** Names that containers had until they were renamed. */
  formerNames: 256,
  /** Memory for the failing names of one container: some 40 like a container's and 18 others, which never evict those. */
  failureBytes: { local: 2304, external: 1152 },
  /** Containers with failing names, 4 MB together, and how long they are listed after their container is gone. */
  failureTables: 1024,
  failureLingerMs: 6e5,
  /** Causes of failures, of all containers and of each. */
  recordedCauses: 4096,
  causesPerContainer: 64,
  /**
   * One search for causes is limited to so many failures of a container, and to this time; the next search goes on. How often causes
   * are searched for, and again for the same failure.
   */
  causesAtOnce: 8,
  causesMs: 10,
  causesEveryMs: 500,
  causeAgainMs: 2e3,
  /** A name that has not failed for so long no longer counts as one that fails. */
  failureIdleMs: 3e5,
  /** How often followers of queries are sent new ones; those that were overwritten in between are counted. */
  tailEveryMs: 50,
  /** Queries sent to a follower at a time, shared among the containers; the rest is counted. */
  tailQueriesAtOnce: 512,
  /** Each container in a batch gets at least so many; the remaining containers come in the next batch. */
  tailQueriesEach: 8,
  /** Queries in one API response: the most recent. */
  queriesReturned: 1e4,
  ...DECLARED_LIMITS,
  ...ASKED_LIMITS,
  /**
   * Queries that wait because their link is not known to be a container's yet, and for how long. A container is known some 20 ms
   * after its start, on a busy machine later; its C library asks again after 2.5 s at the earliest.
   */
  listenerWaiting: 64,
  listenerWaitingMs: 2e3,
  /** Until an address of the host is tried again after a failure: its port may be free by then. */
  listenerRetryMs: 1e4,
  /** Bytes of an answer over UDP to another machine; longer ones need TCP, where a client's address cannot be forged. */
  lanUdpBytes: 512,
  /** TCP connections of one source; one more is closed at once. All sources of an entry have those of one container. */
  lanSourceStreams: 16,
  /** Nodes whose DNS servers are known, and how often a node is asked that has none yet. */
  clusterNodes: 256,
  clusterDnsPollMs: 2e3,
  /** Images whose labels are cached, so that each is inspected once; the least recently used one is dropped. */
  imagesCached: 256,
  /** Labels of one image, in characters; with more, all labels of its containers count as the image's. */
  imageLabelChars: 64 * 1024,
  /**
   * How long a new container waits for its image's labels before it is attached; then its labels count as the image's
   * until they are known. Its names resolve meanwhile. Engines take 0.5 ms, 8 ms with the containerd image store.
   */
  imageWaitMs: 1e3,
  /**
   * Bytes that are kept of what the engine says of one container, network or image: a name, of 10,000 aliases, takes 20. Of
   * one text: twice as long as a label may be. Of a whole list. What the author of an image writes has less.
   */
  engineValueBytes: 2 * 1024 * 1024,
  engineTextBytes: 8192,
  engineReplyBytes: 64 * 1024 * 1024,
  /** Labels that are read of each container: those that dns11 knows, and those by which people have chosen containers. */
  labelKeys: 256,
  /** Ports that an image exposes, and that a container publishes: what is beyond is passed over. */
  exposedPorts: 1024,
  /** A reply that goes on arriving may take so many times as long as the engine may be silent. */
  engineReadTimes: 6,
  /**
   * How long a container may be unknown before it is held, where it might have an enforced policy: the engine describes one
   * that starts after 11 to 40 ms.
   */
  factsLateMs: 250,
  /** Concurrent inspects: the engine works on one container at a time, and more only queue there. */
  inspectsAtOnce: 8,
  /** How long the engine may be silent in an inspect; it is retried later. */
  inspectMs: 1e4,
  /** How long the engine may be silent in a list, for which it visits every container. */
  listMs: 3e4,
  /** Zones of which a server remembers how it failed them. */
  failedZones: 64,
  /** How long a reply that came too late shows that a server is slow, and not away. */
  lateReplyMs: 6e4,
  /** How long the engine may be silent to requests that it usually answers at once, until dns11 goes on with what it knows without it. */
  engineSilentMs: 1e3,
  /**
   * How often the whole list is compared with the known state, in case an event was lost or the stream is dead; a reply
   * also shows that the engine is alive.
   */
  resyncEveryMs: 6e4,
  /** Names of probes that are remembered: one may arrive late. */
  sentProbes: 256,
  /** Containers that do not run and are kept as they were inspected, for their next start; each takes as much as a running one. */
  startingContainers: 64,
  /** How long a created container may take to start before its names are known as those of a stopped one. */
  startAfterCreateMs: 250,
  /** Backoff of reconnections to the engine. */
  engineRetryFirstMs: 100,
  engineRetryLastMs: 5e3,
  /**
   * How long the follower may be silent before it is considered dead: it compares lists every minute, and each of its calls
   * ends within half a minute.
   */
  followerSilentMs: 15e4,
  /** While there is no engine, the supervisor's start timeout is extended by this, each time before it expires. */
  startExtendMs: 3e4,
  /** How long after its start the process reports to its supervisor that it has started, even if it still waits for the engine. */
  engineStartWaitMs: 6e4,
  ...LOG_LIMITS,
  /** Queries of dns11's own that are announced in one container, and how long each is expected. */
  ownQueries: 64,
  ownQueryMs: 1e4,
  /**
   * Consecutive crashes of dns11 while it worked for one container, each so soon after the one before, until that
   * container is attached last and alone, and until it is quarantined.
   */
  crashWindowMs: 6e4,
  crashesUntilSuspect: 2,
  crashesUntilQuarantine: 3,
  crashesKept: 16,
  /** A quarantine lasts so long the first time and at most; and so many containers can be in one. */
  quarantineMs: 36e5,
  quarantineMsMax: 24 * 36e5,
  quarantinesKept: 256,
  /** How often a container that is attached last checks whether all others are. */
  suspectCheckMs: 50,
  /** Internal errors logged with their stacks; others are only counted. */
  internalErrorsLogged: 64,
  /** How long SIGTERM waits for queries in flight. */
  drainMs: 2e3,
  /**
   * How long descriptors of nf_tables outlive their table. Closing one at once waits until the kernel is done with what
   * was deleted, a grace period of 10 ms and more in which no query is answered; later it does not.
   */
  nftLingerMs: 1e3,
  /**
   * At the end, new queries no longer come to dns11; a namespace without a query for this long has been answered. A packet that has
   * passed the rules waits for the kernel where all processors are busy: after 10 ms two of 8,000 queries were still on
   * their way, and with 36 processes that wanted two processors one was lost after 50 ms.
   */
  drainQuietMs: 100,
  /** Garbage in the heap, in percent of what is in use, before it is collected. */
  heapGrowthPercent: 50,
  /** How much free memory the C library keeps. */
  freeMemoryBytes: 131072,
  /**
   * Bytecode of functions that V8 inlines into one function. With 920, the default of V8, the answer to a name took 198
   * to 229 ns in 2026; with 4,000, 171 to 188; more changed nothing.
   */
  inlinedBytecode: 4e3,
  /**
   * Bytes of bytecode that a function runs before V8 optimizes it, while dns11 starts and then, which is V8's default. With that
   * from the start, attaching 1,000 containers at once took 1.17 times as long on two processors (2026-11-27): a quarter of all
   * processor time went into code that did not pay for its compilation. With 1,000,000 it took the same.
   */
  bytecodeUntilOptimized: { starting: 4e5, running: 67584 },
  /** How often to check whether startup has finished: V8 optimizes sooner then, and what only startup needed can be given back. */
  startCheckMs: 500,
  /** How long after the end of startup that is done: the thread that attaches the kernel's programs has ended then. */
  giveBackAfterMs: 1e4,
  /** The heap that is collected then: nothing else is done for a millisecond for each megabyte. A larger one has been collected meanwhile. */
  collectedHeapBytes: 48 * 2 ** 20,
  /** Connections to the control socket: those of leases, and more than people use at once. */
  controlConnections: 96,
  /** Events that are kept: some 150 KB. Then the container or server with the most loses its oldest one. */
  events: 500,
  /** Samples of rates and servers: five minutes; and servers with samples. */
  historySamples: 60,
  historyEveryMs: 5e3,
  historyServers: 64,
  /** Minutes with how many queries there were: a day, some 25 KB. */
  historyMinutes: 1440,
  /** Containers, networks and cache entries in one list, and rows and columns of the matrix; the rest is counted. */
  containersListed: 2e3,
  networksListed: 1e3,
  cacheEntriesListed: 500,
  matrixSide: 256,
  /** Names in one list: more than people read, some 2 MB of JSON. The rest is counted. */
  namesListed: 5e3,
  /** Connections to the HTTP listener, which any process on the machine can open; a new one replaces an idle one. */
  pageConnections: 32,
  /** The shortest time between two renderings of a page such as /metrics: with a thousand containers one takes 30 ms, in slices. */
  pageEveryMs: 100,
  /** Pages of probes; the shortest time between two queries of one, and how long one may take. */
  healthProbes: 32,
  healthProbeEveryMs: 1e3,
  healthProbeMs: 1e4,
  /** An event loop that is blocked for this long hangs, and the process is killed: where no keeper watches it, and where one does. */
  hangSeconds: 8,
  watchedHangSeconds: 60,
  /** Addresses of answers of which is kept whether they are the machine's: some 400 KB. With one more, all are looked up again. */
  hostAddresses: 4096,
  /** The size of one message of a channel: the kernel passes up to 253 descriptors at once. */
  channelBytes: 16 * 1024,
  channelDescriptors: 240
};

// src/api/locate.ts
var ABSENT = /* @__PURE__ */ new Set(["ENGINE_NO_SOCKET", "ENGINE_AWAY"]);
async function locateControl(stateDir, host, onSilent = () => void 0) {
  const { socketPath, source } = engineAddress(host, process.env);
  const isDefault = source === BY_DEFAULT;
  const id = engineId(socketPath);
  try {
    const found = await Promise.race([id, servingWhileSilent(id, stateDir, socketPath, onSilent)]);
    return controlPath(instanceFolder(stateDir, found));
  } catch (error) {
    const paths = controlPaths(stateDir);
    const [only, ...others] = paths;
    if (isDefault && only !== void 0 && others.length === 0) return only;
    const instances = await Promise.all(paths.map(instanceAt));
    const found = servingAt(socketPath, instances);
    if (found !== void 0) return found.path;
    throw isDefault || !ABSENT.has(codeOf(error) ?? "") ? error : noInstance(socketPath, instances);
  }
}
async function servingWhileSilent(id, stateDir, socketPath, onSilent) {
  const isOver = await Promise.race([
    id.then(
      () => true,
      () => true
    ),
    sleep(LIMITS.engineSilentMs, false)
  ]);
  if (isOver) return await id;
  const found = servingAt(socketPath, await Promise.all(controlPaths(stateDir).map(instanceAt)));
  onSilent({ socketPath, isFound: found !== void 0 });
  return found?.id ?? await id;
}
function servingAt(socketPath, instances) {
  return instances.find(({ engine }) => engine !== void 0 && isSamePath(engine, socketPath));
}
function controlPaths(stateDir) {
  return folders(stateDir).map((folder) => controlPath(join3(stateDir, folder)));
}
async function instanceAt(path) {
  try {
    const { engine, pid } = await new ControlClient(path).status();
    return { path, engine: engine?.address, id: engine?.id, pid };
  } catch {
    return { path, engine: void 0, id: void 0, pid: void 0 };
  }
}
function noInstance(socketPath, instances) {
  const served = instances.flatMap(({ engine }) => engine ?? []);
  const which = served.length === 0 ? "" : ` (one serves ${served.join(", another ")})`;
  return new Fault("NO_INSTANCE", `No engine at ${socketPath}, and no dns11 that serves it${which}`, {
    remedy: "Check the address given with -H, DOCKER_HOST, the docker context or `engine`."
  });
}
function isSamePath(a, b) {
  return a === b || realPath(a) === realPath(b);
}
function realPath(path) {
  try {
    return join3(realpathSync(dirname(path)), basename(path));
  } catch {
    return path;
  }
}
function folders(stateDir) {
  try {
    return readdirSync(stateDir, { withFileTypes: true }).filter((entry) => entry.isDirectory()).map(({ name }) => name);
  } catch {
    return [];
  }
}
async function engineId(socketPath) {
  try {
    const signal = AbortSignal.timeout(LIMITS.listMs);
    const answer = await openUnix(socketPath, "/info", { timeoutMs: LIMITS.listMs, signal });
    const text = await textOf(answer);
    if (answer.statusCode !== 200) throw new Error(`it responded with status ${answer.statusCode}`);
    const { ID: id } = JSON.parse(text);
    return id ?? "";
  } catch (error) {
    throw engineFault(error, socketPath);
  }
}

// src/action/place.ts
var FILES = {
  /** What dns11 prints. */
  log: "dns11.log",
  /** The process that records, as a number. */
  recorder: "recorder.pid",
  /** The process of dns11; until that is known, the command that has started it. */
  daemon: "dns11.pid",
  /** The policies of the job, where their modes are not those of its file. */
  policy: "policy.yaml",
  /** Written by the recorder at its end. */
  record: "record.json"
};
var ROOT2 = 0;
var END_MS = 3e4;
var POLL_MS = 50;
function asRoot(user = process.getuid?.() ?? ROOT2) {
  return user === ROOT2 ? [] : ["sudo", "-n"];
}
function stateDirOf(env) {
  return env["DNS11_STATE_DIR"] ?? defaultStateDir(void 0, env, ROOT2);
}
async function clientOf(env) {
  return new ControlClient(await locateControl(stateDirOf(env), void 0));
}
function pidIn(folder, name) {
  const path = join4(folder, name);
  if (!existsSync2(path)) return void 0;
  const pid = Number(readFileSync2(path, "utf8"));
  return Number.isSafeInteger(pid) && pid > 1 ? pid : void 0;
}
async function end(pid, prefix) {
  if (!isRunning(pid)) return true;
  const [command, ...args] = [...prefix, "sh", "-c", `kill -TERM ${pid}`];
  spawnSync(command, args, { stdio: "ignore" });
  const endMs = performance.now() + END_MS;
  while (isRunning(pid)) {
    if (performance.now() > endMs) return false;
    await sleep2(POLL_MS);
  }
  return true;
}
function isStartedBy(pid, ancestor) {
  for (let each = pid; each !== ancestor; ) {
    const parent = /^PPid:\s+(\d+)$/m.exec(statusOf(each))?.[1];
    if (parent === void 0) return isRunning(ancestor);
    if (Number(parent) <= 1) return false;
    each = Number(parent);
  }
  return true;
}
function isRunning(pid) {
  return existsSync2(`/proc/${pid}`) && !/^State:\s+Z/m.test(statusOf(pid));
}
function statusOf(pid) {
  try {
    return readFileSync2(`/proc/${pid}/status`, "utf8");
  } catch {
    return "";
  }
}

// src/action/runner.ts
import { appendFileSync } from "node:fs";

// src/base/lib/text.ts
var CONTROL_CHARACTERS = /[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}]/gu;
function printable(text) {
  return text.replaceAll(CONTROL_CHARACTERS, escaped);
}
function escaped(character) {
  const code2 = character.charCodeAt(0).toString(16);
  return code2.length > 2 ? unicodeEscape(character) : `\\x${code2.padStart(2, "0")}`;
}
function unicodeEscape(character) {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
}

// src/action/runner.ts
var FOLDER = "folder";
var InputError = class extends Error {
  name = "InputError";
};
var POLICY_MODES = ["", "audit", "enforce"];
function readInputs(env) {
  const read = (name) => (env[`INPUT_${name}`] ?? "").trim();
  const version = read("VERSION").replace(/^v(?=\d)/, "");
  if (!/^[0-9A-Za-z.~+-]*$/.test(version)) {
    throw new InputError(`version: "${version}" is no version; an example is 0.1.0`);
  }
  const program = read("PROGRAM");
  if (program !== "" && !program.startsWith("/")) throw new InputError(`program: "${program}" is no absolute path`);
  const url = read("URL");
  if (program !== "" && (version !== "" || url !== "")) {
    throw new InputError("program excludes version and url: it is used as it is");
  }
  const lines = read("ARGS").split("\n");
  const args = lines.map((line) => line.trim()).filter((line) => line !== "");
  return { version, url, program, args, ...policyInputs(env, read, args) };
}
function policyInputs(env, read, args) {
  const policy = read("POLICY");
  const written = read("POLICY-MODE");
  const policyMode = POLICY_MODES.find((each) => each === written);
  if (policyMode === void 0) throw new InputError(`policy-mode: "${written}" is neither audit nor enforce`);
  if (policy === "" && policyMode !== "") throw new InputError("policy-mode needs policy, the path of a file");
  const isConfigured = args.some((each) => /^--config(?:=|$)/.test(each)) || (env["DNS11_CONFIG"] ?? "") !== "";
  if (policy !== "" && isConfigured)
    throw new InputError(
      "policy excludes another settings file (--config, DNS11_CONFIG): write the policies into that"
    );
  return { policy, policyMode };
}
function isPoliced(env) {
  return (env["INPUT_POLICY"] ?? "").trim() !== "";
}
function variable(env, name) {
  const value = env[name] ?? "";
  if (value === "") throw new InputError(`${name} is not set: this program is a step of GitHub Actions`);
  return value;
}
function withVariables(env) {
  const set = Object.entries(env).filter(([name, value]) => /^DNS11_[A-Z0-9_]+$/.test(name) && value !== void 0);
  return set.length === 0 ? [] : ["env", ...set.map(([name, value]) => `${name}=${value ?? ""}`)];
}
function saveFolder(env, folder) {
  appendFileSync(variable(env, "GITHUB_STATE"), `${FOLDER}=${folder}
`);
}
function savedFolder(env) {
  return env[`STATE_${FOLDER}`];
}
function annotation(level, title, text) {
  return `::${level} title=${property(title)}::${data(text)}
`;
}
function quoted(text, token) {
  const lines = text.split("\n").map(printable).join("\n");
  return `::stop-commands::${token}
${lines.trimEnd()}
::${token}::
`;
}
function data(text) {
  return printable(text).replaceAll("%", "%25");
}
function property(text) {
  return data(text).replaceAll(":", "%3A").replaceAll(",", "%2C");
}

// src/action/tally.ts
var CONTAINERS_MAX = 200;
var NAMES_MAX = 200;
var FAILURES_MAX = 500;
var REFUSALS_MAX = 2e3;
var REFUSALS_OF_ONE_MAX = 200;
var PROBLEMS_MAX = 20;
var OMITTED_MAX = 1e4;
var NAME_LENGTH_MAX = 1020;
var Tally = class {
  #containers = /* @__PURE__ */ new Map();
  #failures = /* @__PURE__ */ new Map();
  #refusals = /* @__PURE__ */ new Map();
  #refusalsOf = /* @__PURE__ */ new Map();
  #names = /* @__PURE__ */ new Map();
  #problems = [];
  #isPoliced = false;
  #omittedRefusals = /* @__PURE__ */ new Set();
  #omittedFailures = /* @__PURE__ */ new Set();
  #ofOtherContainers = 0;
  #missed = 0;
  addMissed(count) {
    this.#missed += count;
  }
  addQuery(query) {
    const container = this.#container(query.container);
    if (container === void 0) {
      this.#ofOtherContainers += 1;
      return;
    }
    container.lastSeq = query.seq;
    const name = query.name === null ? null : query.name.slice(0, NAME_LENGTH_MAX);
    let asked = container.names.get(name);
    if (asked === void 0) {
      if (container.names.size >= NAMES_MAX) {
        container.others += 1;
        return;
      }
      asked = { queries: 0, failed: 0, answer: "" };
      container.names.set(name, asked);
    }
    asked.queries += 1;
    if (query.rcode !== "NOERROR") asked.failed += 1;
    asked.answer = answerOf(query);
  }
  /** A query that was recorded, and that a reader of the stream has not seen yet. */
  addRecorded(query) {
    const seen = this.#containers.get(query.container)?.lastSeq ?? 0;
    if (query.seq > seen) this.addQuery(query);
  }
  /** The same failure again has a higher count. */
  addFailure(failure) {
    const key = JSON.stringify([failure.containerId, failure.name, failure.type, failure.result]);
    const known = this.#failures.get(key);
    if (this.#names.size < FAILURES_MAX) this.#names.set(failure.containerId, failure.container);
    if (known === void 0 && this.#failures.size >= FAILURES_MAX) omit(this.#omittedFailures, key);
    else this.#failures.set(key, { ...failure, cause: failure.cause ?? known?.cause ?? null });
  }
  /** The same entry again has a higher count. */
  addRefusal(entry) {
    const { container, containerId, policy, reason, because, verdict, number, count } = entry;
    const name = entry.name?.slice(0, NAME_LENGTH_MAX) ?? null;
    const known = this.#refusal(JSON.stringify([containerId, name, entry.type, because]), containerId, () => {
      return { container, name, isConnection: false, policy, isEnforced: verdict === "refused", reason, because };
    });
    if (known === void 0 || number < known.number) return;
    if (number > known.number) known.before += known.latest ?? 0;
    known.number = number;
    known.latest = count;
  }
  /** Of the containers that run at the end: what no log has. */
  addPolicies(containers) {
    this.#isPoliced = true;
    for (const { container, containerId, addresses, mode, policies } of containers) {
      const policy = policies.map(({ name }) => name).join(", ");
      for (const name of addresses?.refused ?? [])
        this.#refusal(JSON.stringify([containerId, name]), containerId, () => {
          const isEnforced = mode === "enforce";
          return { container, name, isConnection: true, policy, isEnforced, reason: "not-allowed", because: "" };
        });
    }
    const all = containers.flatMap(({ container, problems }) => problems.map((problem) => ({ container, problem })));
    this.#problems = all.slice(0, PROBLEMS_MAX);
  }
  record(endedEarly) {
    return {
      isPoliced: this.#isPoliced,
      refused: [...this.#refusals.values()].map(({ containerId, refusal, before, latest }) => ({
        ...refusal,
        // Of a container that is gone, the log of policies has its ID.
        container: this.#names.get(containerId) ?? refusal.container,
        count: latest === null ? null : before + latest
      })),
      omittedRefusals: this.#omittedRefusals.size,
      problems: this.#problems,
      failures: [...this.#failures.values()],
      omittedFailures: this.#omittedFailures.size,
      asked: [...this.#containers].map(([container, { names, others }]) => ({
        container,
        names: [...names].map(([name, asked]) => ({ name, ...asked })),
        others
      })),
      ofOtherContainers: this.#ofOtherContainers,
      missed: this.#missed,
      endedEarly
    };
  }
  /** Undefined if it is one too many. */
  #refusal(key, containerId, make) {
    const known = this.#refusals.get(key);
    if (known !== void 0) return known;
    const own = this.#refusalsOf.get(containerId) ?? 0;
    if (this.#refusals.size >= REFUSALS_MAX || own >= REFUSALS_OF_ONE_MAX) {
      omit(this.#omittedRefusals, key);
      return void 0;
    }
    const made = { containerId, refusal: make(), number: 0, before: 0, latest: null };
    this.#refusals.set(key, made);
    this.#refusalsOf.set(containerId, own + 1);
    return made;
  }
  #container(name) {
    const known = this.#containers.get(name);
    if (known !== void 0 || this.#containers.size >= CONTAINERS_MAX) return known;
    const made = { names: /* @__PURE__ */ new Map(), others: 0, lastSeq: 0 };
    this.#containers.set(name, made);
    return made;
  }
};
function omit(omitted, key) {
  if (omitted.size < OMITTED_MAX) omitted.add(key);
}
function answerOf({ rcode, owners = [], addresses, upstream, answers }) {
  if (rcode !== "NOERROR") return rcode;
  const containers = [...new Set(owners.map(({ container }) => container))];
  if (containers.length > 0) return containers.join(", ");
  if (answers === 0) return "no records";
  const from = upstream === null ? "" : ` from ${upstream}`;
  return `${addresses.join(", ") || "records"}${from}`;
}

// src/action/record.ts
var QUERIES_PER_SECOND = 1e3;
var LAST_REFUSALS = 2e3;
var LAST_QUERIES = 1e3;
var STOPPED = "dns11 stopped";
async function record(folder) {
  const tally = new Tally();
  const stopped = new AbortController();
  process.on("SIGTERM", () => stopped.abort());
  writeWhole(folder, FILES.recorder, String(process.pid));
  const endedEarly = await follow(tally, stopped.signal);
  writeWhole(folder, FILES.record, withPathOf(folder, process.env, JSON.stringify(tally.record(endedEarly))));
  process.exit(0);
}
async function follow(tally, signal) {
  try {
    const client = await clientOf(process.env);
    await Promise.all([
      followQueries(client, tally, signal),
      followFailures(client, tally, signal),
      followRefusals(client, tally, signal)
    ]);
    if (!signal.aborted) return STOPPED;
    await readRest(client, tally);
    return null;
  } catch (error) {
    const { code: code2, message } = error;
    return code2 === "NOT_RUNNING" || code2 === "CONTROL" ? STOPPED : message;
  }
}
async function followQueries(client, tally, signal) {
  for await (const each of client.followSome({ perSecond: QUERIES_PER_SECOND, last: LAST_QUERIES }, signal)) {
    if ("skipped" in each) tally.addMissed(each.skipped);
    else if ("missed" in each) tally.addMissed(each.missed);
    else tally.addQuery(each);
  }
}
async function followFailures(client, tally, signal) {
  for await (const each of client.followFailures({}, signal)) tally.addFailure(each);
}
async function followRefusals(client, tally, signal) {
  for await (const each of client.followPolicyLog({ last: LAST_REFUSALS }, signal)) tally.addRefusal(each);
}
function withPathOf(folder, env, text) {
  const { policy } = readInputs(env);
  if (policy === "") return text;
  const inText = (path) => JSON.stringify(path).slice(1, -1);
  const paths = [join5(folder, FILES.policy), resolve(env["GITHUB_WORKSPACE"] ?? "", policy)];
  return paths.reduce((each, path) => each.replaceAll(`${inText(path)}:`, `${inText(policy)}:`), text);
}
async function readRest(client, tally) {
  const { queries } = await client.queries({ last: LAST_QUERIES });
  for (const each of queries) tally.addRecorded(each);
  const { failures } = await client.failures();
  for (const each of failures) tally.addFailure(each);
  const { refusals } = await client.policyLog({ last: LAST_REFUSALS });
  for (const each of refusals) tally.addRefusal(each);
  const { policies, containers } = await client.policies();
  if (policies.length > 0) tally.addPolicies(containers);
}
function writeWhole(folder, name, text) {
  const path = join5(folder, name);
  writeFileSync(`${path}.new`, text);
  renameSync(`${path}.new`, path);
}

// src/action/report.ts
import { spawnSync as spawnSync2 } from "node:child_process";
import { appendFileSync as appendFileSync2, existsSync as existsSync3, readFileSync as readFileSync3, rmSync } from "node:fs";
import { join as join6 } from "node:path";

// src/api/causes.ts
var TLS = ["tls-blocked", "tls-absent", "tls-name", "tls-untrusted", "tls-time", "tls-authorities"];
var OF_SERVERS = /* @__PURE__ */ new Set([
  ...["upstreams-down", "upstream-error", "upstream-refused", "upstream-slow", "tcp-blocked"],
  ...TLS
]);
var PASSING = /* @__PURE__ */ new Set([
  ...["upstreams-down", "tcp-blocked", "no-upstream", "internal-network", "crash-loop"],
  ...["no-healthy-task", "swarm-alone"],
  ...TLS
]);
function fixesOf({ fix, advice, lastingFix }) {
  return { fixes: fix === null ? [] : [fix], advice, lastingFixes: lastingFix === null ? [] : [lastingFix] };
}
function remediesOf({ fixes, advice, lastingFixes }) {
  return [
    ...fixes.map((text) => ({ label: "fix", text, isCommand: true })),
    ...advice === void 0 ? [] : [{ label: fixes.length === 0 ? "fix" : "and", text: advice, isCommand: false }],
    ...lastingFixes.flatMap((each) => [
      { label: "for good", text: lastingText(each), isCommand: false },
      ...each.command === void 0 ? [] : [{ label: "", text: each.command, isCommand: true }]
    ])
  ];
}
function lastingText({ file, key, change }) {
  return `${file ?? "the Compose file"}: ${key}: ${change}`;
}

// src/api/failures.ts
var MEANT = /* @__PURE__ */ new Set(["policy-denied", "one-family"]);
function isFailing({ isContainerName, result, cause, earlier }) {
  if (earlier !== void 0 || cause?.code === "resolves-now") return false;
  const isDenied = result === "NXDOMAIN" || result === "NODATA";
  return isContainerName || !isDenied || cause?.isBreaking === true || cause !== null && MEANT.has(cause.code);
}

// src/api/problems.ts
var HALF = /* @__PURE__ */ new Set(["no-ipv4", "one-family"]);
var RANK = { bad: 0, warn: 1, info: 2 };
function failingName(failure) {
  const severity = HALF.has(failure.cause?.code) ? "warn" : isFailing(failure) ? "bad" : "info";
  return { ...failure, severity };
}
function namesOf(failures) {
  const symptoms = failures.map((each) => failingName(each));
  return grouped(symptoms, ({ containerId, name, cause }) => JSON.stringify([containerId, name, cause?.sentence]));
}
function grouped(symptoms, keyOf) {
  const groups = /* @__PURE__ */ new Map();
  for (const each of symptoms) {
    const key = keyOf(each);
    const group = groups.get(key);
    if (group === void 0) groups.set(key, [each]);
    else group.push(each);
  }
  return [...groups].map(([key, group]) => problemOf(key, group));
}
function problemOf(key, unsorted) {
  const symptoms = unsorted.toSorted(latestFirst);
  const distinct = (pick) => [...new Set(symptoms.map(pick))];
  const causes = symptoms.map(({ cause }) => cause).filter((cause) => cause !== null);
  const fixes = new Map(causes.map(({ lastingFix }) => [JSON.stringify(lastingFix), lastingFix]));
  const times = symptoms.map(({ first }) => first).filter((time) => time !== null);
  return {
    key,
    severity: symptoms.reduce(
      (worst, each) => RANK[each.severity] < RANK[worst] ? each.severity : worst,
      "info"
    ),
    cause: causes[0] ?? null,
    symptoms,
    containers: distinct(({ container }) => container).filter((each) => each !== ""),
    names: distinct(({ name }) => name).filter((each) => each !== ""),
    types: distinct(({ type = "" }) => type).toSorted(),
    results: distinct(({ result }) => result),
    sentences: [...new Set(causes.map(({ sentence }) => sentence))],
    fixes: [...new Set(causes.flatMap(({ fix }) => fix ?? []))],
    lastingFixes: [...fixes.values()].filter((fix) => fix !== null),
    count: symptoms.reduce((sum, { count }) => sum + count, 0),
    perMinute: symptoms.reduce((sum, { perMinute }) => sum + perMinute, 0),
    first: times.toSorted()[0] ?? null,
    last: symptoms.find(({ last }) => last !== null)?.last ?? null
  };
}
function latestFirst({ last: a }, { last: b }) {
  if (a === b) return 0;
  return b === null || a !== null && a < b ? 1 : -1;
}

// src/base/dns/name.ts
var FOLD = Uint8Array.from(
  { length: 256 },
  (_, byte) => byte >= 65 && byte <= 90 ? byte + 32 : byte
);

// src/base/model/label-table.ts
import { randomBytes, randomInt } from "node:crypto";
var HASH_BASIS = randomInt(2147483647);
var WORDS = Int32Array.from({ length: 256 }, () => randomBytes(4).readInt32LE());

// src/base/model/name-pattern.ts
var NOTHING = new Uint8Array(0);
var LITERAL_NAME = /^(?=.{1,253}$)(?:[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?)(?:\.[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?)*$/;
function isLiteralName(name) {
  return LITERAL_NAME.test(name);
}

// src/action/summary.ts
var SUMMARY_BYTES_MAX = 9e5;
var REST_BYTES = 100;
var FAILURES_SHOWN = 100;
var REFUSALS_SHOWN = 100;
var CONTAINERS_SHOWN = 50;
var NAMES_SHOWN = 50;
var CELL_LENGTH_MAX = 500;
var ALLOWED_BY_RULE = /* @__PURE__ */ new Set(["not-allowed", "type"]);
var NOT_A_NAME = /(?:^|\.)\d+$|\.arpa$/;
var NOT_A_PORT = /^\[?([^\]]*?)\]?:\d+\/(?!tcp$|udp$)\w+$/;
function failingNames(record2) {
  return merged(record2.failures.filter((each) => isLasting(each))).map(({ containers, names, results, cause }) => ({
    container: containers[0] ?? "",
    name: names[0] ?? "(hidden)",
    sentence: cause?.sentence ?? `it got ${results.join(", ")}`
  }));
}
function summaryOf(record2) {
  const lasting = merged(record2.failures.filter((each) => isLasting(each)));
  const late = merged(record2.failures.filter((each) => each.isContainerName && !isLasting(each)));
  const others = merged(record2.failures.filter((each) => !each.isContainerName));
  const parts = [
    "## Names in this job\n",
    lasting.length === 0 ? "No name of a container failed.\n" : `${counted(lasting.length, "name")} of containers did not resolve.
`,
    ...lasting.length === 0 ? [] : [`${failureTable(lasting)}
`],
    ...refusedParts(record2),
    ...folded2("Failed at first, and resolved later", late),
    ...folded2("Other names that failed", others),
    ...askedParts(record2.asked),
    ...remarks(record2).map((line) => `<p>${line}</p>
`)
  ];
  let text = "";
  for (const part of parts) {
    if (Buffer.byteLength(text) + Buffer.byteLength(part) > SUMMARY_BYTES_MAX - REST_BYTES)
      return `${text}The rest is too long for this page.
`;
    text += `${part}
`;
  }
  return `${text.trimEnd()}
`;
}
function refusedNames(record2) {
  return mergedRefusals(record2.refused.filter(({ isEnforced }) => isEnforced)).map((each) => ({
    container: each.container,
    name: each.name ?? "(hidden)",
    sentence: ruleOf(each) ?? each.because
  }));
}
function refusedParts({ isPoliced: isPoliced2, refused, omittedRefusals }) {
  if (!isPoliced2 && refused.length === 0) return [];
  const all = mergedRefusals(refused);
  const [enforced, recorded] = [true, false].map((is) => all.filter(({ isEnforced }) => isEnforced === is));
  return [
    ...all.length === 0 ? ["No policy refused anything.\n"] : [],
    ...refusalTable("refused by policies", enforced ?? []),
    ...refusalTable("that policies would refuse if they were enforced", recorded ?? []),
    ...omittedRefusals === 0 ? [] : [`<p>${counted(omittedRefusals, "more refusal")} not listed.</p>
`]
  ];
}
function refusalTable(what, refusals) {
  if (refusals.length === 0) return [];
  const rows = refusals.slice(0, REFUSALS_SHOWN).map((each) => {
    const { container, policy, name, count } = each;
    const rule = ruleOf(each);
    const remedy = rule === void 0 ? code(each.because) : `<code>allow</code>: ${code(rule)}`;
    return row([code(container), code(policy), code(name ?? "(hidden)"), count === null ? "" : String(count), remedy]);
  });
  const rest = refusals.length - REFUSALS_SHOWN;
  if (rest > 0) rows.push(row([`${counted(rest, "more name")} not shown`]));
  const body = table(["Container", "Policy", "Name", "Queries", "Rule to add, or why"], rows);
  return [`${counted(refusals.length, "name")} ${what}:
`, `${body}
`];
}
function mergedRefusals(refused) {
  const groups = /* @__PURE__ */ new Map();
  const ofContainer = /* @__PURE__ */ new Map();
  for (const each of refused) {
    const { container, name, policy, because, isEnforced, count } = each;
    const key = JSON.stringify([container, name, policy, because, isEnforced]);
    const group = groups.get(key);
    groups.set(key, group === void 0 ? each : { ...each, count: (group.count ?? 0) + (count ?? 0) });
    ofContainer.set(container, (ofContainer.get(container) ?? 0) + (count ?? 0));
  }
  const queries = ({ container }) => ofContainer.get(container) ?? 0;
  return [...groups.values()].toSorted(
    (a, b) => queries(b) - queries(a) || a.container.localeCompare(b.container) || (b.count ?? 0) - (a.count ?? 0) || Number(a.isConnection) - Number(b.isConnection)
  );
}
function ruleOf({ name, reason, isConnection, container }) {
  if (name === null || !ALLOWED_BY_RULE.has(reason)) return void 0;
  if (isConnection) return `- "${name.replace(NOT_A_PORT, "$1")}"  # connected to by ${container}`;
  return isLiteralName(name) && !NOT_A_NAME.test(name) ? `- "${name}"  # asked by ${container}` : void 0;
}
function isLasting({ isContainerName, last, lastSuccess }) {
  return isContainerName && (lastSuccess === null || lastSuccess < last);
}
function merged(failures) {
  return namesOf(failures).toSorted((a, b) => b.count - a.count);
}
function failureTable(failures) {
  const rows = failures.slice(0, FAILURES_SHOWN).map(
    ({ containers, names: [name = null], results, count, cause }) => row([code(containers[0] ?? ""), code(name ?? "(hidden)"), code(results.join(", ")), String(count), why(cause)])
  );
  const rest = failures.length - FAILURES_SHOWN;
  return table(
    ["Container", "Name", "Result", "Queries", "Why, and what helps"],
    rest > 0 ? [...rows, row([`${counted(rest, "more name")} not shown`])] : rows
  );
}
function why(cause) {
  if (cause === null) return "";
  const remedies = remediesOf(fixesOf(cause)).map(
    ({ label, text }) => `${label === "" ? "" : `${label}: `}${code(text)}`
  );
  return [code(cause.sentence), ...remedies].join("<br>");
}
function folded2(title, failures) {
  if (failures.length === 0) return [];
  return [`${details(`${title} (${failures.length})`, failureTable(failures))}
`];
}
function askedParts(asked) {
  if (asked.length === 0) return [];
  const shown = asked.toSorted((a, b) => queriesOf(b) - queriesOf(a)).slice(0, CONTAINERS_SHOWN);
  const rows = shown.flatMap((each) => {
    const names = each.names.toSorted((a, b) => b.queries - a.queries);
    const hidden = names.slice(NAMES_SHOWN).reduce((sum, { queries }) => sum + queries, each.others);
    return [
      ...names.slice(0, NAMES_SHOWN).map(
        ({ name, queries, failed, answer }) => row([code(each.container), code(name ?? "(hidden)"), String(queries), String(failed), code(answer)])
      ),
      ...hidden === 0 ? [] : [row([code(each.container), "other names", String(hidden), "", ""])]
    ];
  });
  const rest = asked.length - shown.length;
  if (rest > 0) rows.push(row([`${counted(rest, "more container")} not shown`]));
  const body = table(["Container", "Name", "Queries", "Failed", "Last answer"], rows);
  return [`${details(`Who asked what (${counted(asked.length, "container")})`, body)}
`];
}
function remarks({ endedEarly, missed, ofOtherContainers, omittedFailures, problems }) {
  return [
    ...problems.map(({ container, problem }) => `The policy of ${code(container)}: ${code(problem)}`),
    ...endedEarly === null ? [] : [`The record ends before the job: ${code(endedEarly)}`],
    ...missed === 0 ? [] : [`${counted(missed, "query", "queries")} came too fast to be recorded.`],
    ...ofOtherContainers === 0 ? [] : [`${counted(ofOtherContainers, "query", "queries")} of further containers are not listed.`],
    ...omittedFailures === 0 ? [] : [`${counted(omittedFailures, "more failure")} not listed.`]
  ];
}
function queriesOf({ names, others }) {
  return names.reduce((sum, { queries }) => sum + queries, others);
}
function counted(count, one, many = `${one}s`) {
  return `${count} ${count === 1 ? one : many}`;
}
function table(heads, rows) {
  return `<table>
<tr>${heads.map((head) => `<th>${head}</th>`).join("")}</tr>
${rows.join("\n")}
</table>`;
}
function row(cells) {
  return `<tr>${cells.map((cell) => `<td>${cell}</td>`).join("")}</tr>`;
}
function details(title, body) {
  return `<details><summary>${title}</summary>
${body}
</details>`;
}
function code(text) {
  if (text === "") return "";
  const cut = text.length > CELL_LENGTH_MAX ? `${text.slice(0, CELL_LENGTH_MAX)}...` : text;
  return `<code>${html(printable(cut))}</code>`;
}
function html(text) {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;").replaceAll("'", "&#39;");
}

// src/action/report.ts
var ANNOTATIONS_MAX = 10;
var OPEN_MS = 6e4;
async function report() {
  try {
    await reportAll();
  } catch (error) {
    process.stdout.write(annotation("warning", "dns11", error.message));
  }
}
async function reportAll() {
  const folder = savedFolder(process.env);
  if (folder === void 0 || !existsSync3(folder)) return;
  await endAsOf(folder, FILES.recorder, []);
  await endAsOf(folder, FILES.daemon, asRoot());
  if (isPoliced(process.env) && pidIn(folder, FILES.daemon) !== void 0) openContainers();
  const path = join6(folder, FILES.record);
  const record2 = existsSync3(path) ? JSON.parse(readFileSync3(path, "utf8")) : void 0;
  rmSync(folder, { recursive: true, force: true });
  if (record2 === void 0) {
    process.stdout.write(annotation("warning", "dns11", "there is no record of this job"));
    return;
  }
  appendFileSync2(variable(process.env, "GITHUB_STEP_SUMMARY"), summaryOf(record2));
  const warnings = [
    ...failingNames(record2).map((each) => ({ ...each, what: "does not resolve in" })),
    ...refusedNames(record2).map((each) => ({ ...each, what: "is refused by a policy in" }))
  ];
  for (const { container, name, sentence, what } of warnings.slice(0, ANNOTATIONS_MAX)) {
    process.stdout.write(annotation("warning", `"${name}" ${what} ${container}`, sentence));
  }
}
function openContainers() {
  const { program } = readInputs(process.env);
  const engine = process.env["DOCKER_HOST"] ?? "";
  const [command = "", ...args] = [
    ...asRoot(),
    ...program === "" ? ["dns11"] : [program],
    ...["cleanup", "--policies", "--state-dir", stateDirOf(process.env)],
    ...engine === "" ? [] : ["--host", engine]
  ];
  const { status, stderr, error } = spawnSync2(command, args, { encoding: "utf8", timeout: OPEN_MS });
  if (status !== 0)
    process.stdout.write(
      annotation("warning", "dns11", `containers may still be held to policies: ${error?.message ?? stderr}`)
    );
}
async function endAsOf(folder, file, prefix) {
  const pid = pidIn(folder, file);
  if (pid !== void 0 && !await end(pid, prefix))
    process.stdout.write(annotation("warning", "dns11", `process ${pid} (${file}) did not end in time`));
}

// src/action/start.ts
import { spawn, spawnSync as spawnSync3 } from "node:child_process";
import { randomUUID } from "node:crypto";
import { existsSync as existsSync4, mkdtempSync, openSync, readFileSync as readFileSync4, writeFileSync as writeFileSync2, accessSync, constants } from "node:fs";
import { join as join7, resolve as resolve2 } from "node:path";
import { setTimeout as sleep3 } from "node:timers/promises";
import { fileURLToPath } from "node:url";
var READY_MS = 6e4;
var POLL_MS2 = 100;
var LOG_BYTES_SHOWN = 8e3;
var StartError = class extends Error {
  name = "StartError";
};
async function start() {
  try {
    await startAll();
  } catch (error) {
    process.stdout.write(annotation("error", "dns11", error.message));
    process.exitCode = 1;
  }
}
async function startAll() {
  const inputs = readInputs(process.env);
  const policies = policyPath(process.env, inputs);
  const folder = mkdtempSync(join7(variable(process.env, "RUNNER_TEMP"), "dns11-"));
  saveFolder(process.env, folder);
  await mustBeFree();
  const program = inputs.program === "" ? install(inputs) : inputs.program;
  const file = policies === void 0 ? void 0 : policyFileOf(program, policies, inputs.policyMode, folder);
  await serve(program, file === void 0 ? inputs.args : ["--config", file, ...inputs.args], folder);
  await startRecorder(folder);
}
async function mustBeFree() {
  const serving = await clientOf(process.env).then(async (client) => await client.status()).catch((error) => {
    if (codeOf(error) === "ENGINE_PERMISSION")
      throw new StartError(`${error.message}: the user of the runner must be root or in the group docker`);
  });
  if (serving !== void 0)
    throw new StartError(
      `another dns11 serves this engine already (process ${serving.pid}): stop it, or leave this step out`
    );
}
function install({ version: wanted, url }) {
  const checkout = fileURLToPath(new URL("../../..", import.meta.url));
  const { version } = JSON.parse(readFileSync4(join7(checkout, "package.json"), "utf8"));
  const from = url === "" ? [] : ["--url", url];
  const words = [...asRoot(), "sh", join7(checkout, "scripts/install.sh"), "--version", wanted || version, ...from];
  const { status, error } = run(words);
  if (status !== 0)
    throw new StartError(`dns11 could not be installed${error === void 0 ? "" : `: ${error.message}`}`);
  return "dns11";
}
function run([command = "", ...args]) {
  return spawnSync3(command, args, { stdio: ["ignore", "inherit", "inherit"] });
}
async function serve(program, args, folder) {
  const log = openSync(join7(folder, FILES.log), "w");
  const engine = process.env["DOCKER_HOST"];
  const root = asRoot();
  const words = [
    ...root,
    ...root.length === 0 ? [] : withVariables(process.env),
    program,
    "run",
    ...engine === void 0 || engine === "" ? [] : ["--host", engine],
    ...["--state-dir", stateDirOf(process.env)],
    ...args
  ];
  const [command = "", ...rest] = words;
  const child = spawn(command, rest, { detached: true, stdio: ["ignore", log, log] });
  let ended;
  child.on("error", ({ message }) => ended = message);
  child.on("exit", (code2, signal) => ended = `it ended with ${code2 ?? signal}`);
  if (child.pid !== void 0) writeFileSync2(join7(folder, FILES.daemon), String(child.pid));
  const endMs = performance.now() + READY_MS;
  for (; ; ) {
    const status = await clientOf(process.env).then(async (client) => await client.status()).catch(() => void 0);
    if (ended !== void 0) throw notStarted(ended, folder);
    const isOurs = status !== void 0 && child.pid !== void 0 && isStartedBy(status.pid, child.pid);
    if (status?.isReady === true && isOurs) {
      child.unref();
      writeFileSync2(join7(folder, FILES.daemon), String(status.pid));
      return;
    }
    if (performance.now() > endMs) {
      if (child.pid !== void 0) await end(child.pid, asRoot());
      throw notStarted(`it was not ready after ${READY_MS / 1e3} seconds`, folder);
    }
    await sleep3(POLL_MS2);
  }
}
function notStarted(reason, folder) {
  const log = readFileSync4(join7(folder, FILES.log), "utf8").slice(-LOG_BYTES_SHOWN);
  process.stdout.write(quoted(log, randomUUID()));
  return new StartError(`dns11 did not start: ${reason}; its log is above`);
}
async function startRecorder(folder) {
  const recorder = fileURLToPath(new URL("./record.mjs", import.meta.url));
  const child = spawn(process.execPath, [recorder, folder], { detached: true, stdio: "ignore" });
  const endMs = performance.now() + READY_MS;
  while (!existsSync4(join7(folder, FILES.recorder))) {
    if (child.exitCode !== null || performance.now() > endMs) throw new StartError("the recorder did not start");
    await sleep3(POLL_MS2);
  }
  child.unref();
}
var MODE_LINE = /^([ \t]+mode:[ \t]*)["']?(?:audit|learn|enforce)["']?(?=[ \t]*(?:#.*)?\r?$)/gm;
var OUTPUT_BYTES_MAX = 2 ** 24;
var SHOWN_MAX = 8e3;
function policyPath(env, { policy }) {
  if (policy === "") return void 0;
  const path = resolve2(env["GITHUB_WORKSPACE"] ?? "", policy);
  try {
    accessSync(path, constants.R_OK);
    return path;
  } catch (error) {
    throw new InputError(`policy: "${policy}" cannot be read: ${error.message}`);
  }
}
function policyFileOf(program, path, mode, folder) {
  const policies = checked(program, path);
  if (Object.keys(policies).length === 0) throw new InputError(`policy: "${path}" has no policies`);
  if (mode === "") return path;
  const copy = join7(folder, FILES.policy);
  writeFileSync2(copy, withMode(readFileSync4(path, "utf8"), mode));
  const others = Object.entries(checked(program, copy)).filter(([, each]) => each.mode !== mode);
  if (others.length > 0)
    throw new InputError(
      `policy-mode: "${path}" must have the mode of each policy in a line of its own (mode: audit), but ${others[0]?.[0]} has not`
    );
  return copy;
}
function withMode(text, mode) {
  return text.replaceAll(MODE_LINE, `$1${mode}`);
}
function checked(program, path) {
  const { status, stdout, stderr, error } = spawnSync3(program, ["check-config", "--json", path], {
    encoding: "utf8",
    maxBuffer: OUTPUT_BYTES_MAX
  });
  if (error !== void 0) throw new InputError(`policy: "${path}" could not be checked: ${error.message}`);
  process.stdout.write(stderr === "" ? "" : quoted(stderr.slice(0, SHOWN_MAX), randomUUID()));
  if (status !== 0) throw new InputError(`policy: "${path}" is no valid settings file; its mistakes are above`);
  const { settings } = JSON.parse(stdout);
  return settings.policies?.value ?? {};
}
export {
  record,
  report,
  start
};
