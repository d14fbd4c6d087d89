// The client against a scripted gateway on loopback, which does what a real etcd does not do on demand: it is slow,
// ends streams, compacts between two pages, restores older data, and sends more than anybody should read.

import assert from "node:assert/strict";
import { type IncomingMessage, type ServerResponse, createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";

import { Fault } from "../../../src/base/lib/fault.ts";
import { ETCD_LIMITS } from "../../../src/features/etcd/limits.ts";
import { type StoredKeys, nextKey } from "../../../src/features/etcd/client/keys.ts";
import type { StoredKey } from "../../../src/features/etcd/client/messages.ts";
import { StoredNames } from "../../../src/features/etcd/names.ts";
import { RemoteMembers } from "../../../src/features/etcd/machines.ts";
import { ETCD_DEFAULTS } from "./defaults.ts";
import { EtcdKeys } from "../../../src/features/etcd/connection.ts";
import { Gateway } from "../../../src/features/etcd/client/gateway.ts";
import { JsonLines } from "../../../src/base/lib/json-lines.ts";
import { Mirror } from "../../../src/features/etcd/client/mirror.ts";
import { pause, waitFor } from "../../support/rig/wait.ts";

const PREFIX = "/skydns/";

type Handler = (body: Readonly<Record<string, unknown>>, response: ServerResponse, request: IncomingMessage) => void;

// A gateway whose paths do what the test says.
class FakeGateway implements AsyncDisposable {
  readonly paths: string[] = [];
  readonly bodies: Readonly<Record<string, unknown>>[] = [];
  readonly #handlers: Record<string, Handler>;
  readonly #server = createServer((request, response) => this.#answer(request, response));

  constructor(handlers: Record<string, Handler>) {
    this.#handlers = handlers;
  }

  async listen(): Promise<string> {
    await new Promise<void>((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  count(path: string): number {
    return this.paths.filter((each) => each === path).length;
  }

  #answer(request: IncomingMessage, response: ServerResponse): void {
    let text = "";
    request.on("data", (chunk: Buffer) => (text += chunk.toString()));
    request.on("end", () => {
      const path = request.url ?? "";
      const body = JSON.parse(text) as Readonly<Record<string, unknown>>;
      this.paths.push(path);
      this.bodies.push(body);
      const handler = this.#handlers[path];
      if (handler === undefined) response.end("{}");
      else handler(body, response, request);
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}

// What a mirror has told.
class Sink implements StoredKeys {
  isFull = false;
  keys = new Map<string, string | undefined>();
  #listed: Map<string, string | undefined> | undefined;
  readonly leases = new Map<string, number>();
  readonly states: (string | undefined)[] = [];

  after(key: string): string | undefined {
    return this.isFull ? undefined : nextKey(key);
  }

  begin(): void {
    this.#listed = new Map();
  }

  commit(): void {
    this.keys = this.#listed ?? this.keys;
    this.#listed = undefined;
  }

  put({ key, value }: StoredKey): void {
    (this.#listed ?? this.keys).set(key, value?.toString());
  }

  remove(key: string): void {
    (this.#listed ?? this.keys).delete(key);
  }

  setLease(lease: string, ttlSeconds: number): void {
    this.leases.set(lease, ttlSeconds);
  }
}

interface Running extends AsyncDisposable {
  readonly sink: Sink;
  readonly mirror: Mirror;
  readonly gateway: Gateway;
}

function startMirror(endpoints: readonly string[], user?: { name: string; password: string }): Running {
  const gateway = new Gateway({ endpoints, ca: undefined, user });
  const sink = new Sink();
  const mirror = new Mirror({ gateway, prefix: PREFIX, keys: sink, onState: (why) => sink.states.push(why?.code) });
  const stop = new AbortController();
  const done = mirror.run(stop.signal);
  return {
    sink,
    mirror,
    gateway,
    [Symbol.asyncDispose]: async () => {
      stop.abort();
      gateway.close();
      await done;
    },
  };
}

function base64(text: string): string {
  return Buffer.from(text).toString("base64");
}

function kv(name: string, value = "v"): object {
  return { key: base64(PREFIX + name), value: base64(value) };
}

function header(revision: number): object {
  return { header: { revision: String(revision) } };
}

function json(response: ServerResponse, body: object): void {
  response.end(JSON.stringify(body));
}

function message(response: ServerResponse, result: object): void {
  response.write(`${JSON.stringify({ result })}\n`);
}

function fault(response: ServerResponse, status: number, code: number, text: string): void {
  response.writeHead(status);
  json(response, { error: text, message: text, code });
}

test("a list in pages of one revision, then the changes after it", async () => {
  const all = ["a", "b", "c"];
  let stream: ServerResponse | undefined;
  await using fake = new FakeGateway({
    "/v3/kv/range": (body, response) => {
      const from = Buffer.from(String(body["key"]), "base64").toString().slice(PREFIX.length);
      const rest = all.filter((name) => name >= from);
      const page = rest.slice(0, 2);
      json(response, { ...header(7), kvs: page.map((name) => kv(name)), more: rest.length > page.length });
    },
    "/v3/watch": (_, response) => {
      stream = response;
      message(response, { ...header(7), created: true });
    },
    "/v3/lease/timetolive": (_, response) => json(response, { ...header(7), grantedTTL: "90" }),
  });
  await using running = startMirror([await fake.listen()]);
  const { sink } = running;
  await waitFor("the list", () => (sink.states.at(-1) === undefined && sink.states.length > 0 ? true : undefined));
  assert.deepEqual(
    [...sink.keys.keys()],
    all.map((name) => PREFIX + name),
  );
  const [first, second] = fake.bodies;
  assert.deepEqual([first?.["revision"], second?.["revision"]], [undefined, "7"]);
  const create = fake.bodies[fake.paths.indexOf("/v3/watch")]?.["create_request"] as Record<string, unknown>;
  assert.equal(create["start_revision"], "8");
  const events = [{ kv: { ...kv("d"), lease: "5" } }, { type: "DELETE", kv: kv("a") }];
  message(stream as ServerResponse, { ...header(8), events });
  await waitFor("the change", () => (sink.keys.has(`${PREFIX}d`) && !sink.keys.has(`${PREFIX}a`) ? true : undefined));
  await waitFor("the lease", () => (sink.leases.get("5") === 90 ? true : undefined));
  await waitFor("the revision", () => (running.mirror.revision === 8 ? true : undefined));
});

test("a page that is too large shrinks; a key that is too large on its own is reported without its value", async () => {
  const limits: number[] = [];
  await using fake = new FakeGateway({
    "/v3/kv/range": (body, response) => {
      const from = Buffer.from(String(body["key"]), "base64").toString();
      if (body["count_only"] === true) return json(response, header(3));
      limits.push(Number(body["limit"]));
      if (from !== PREFIX) return json(response, { ...header(3), kvs: [kv("small")] });
      if (body["keys_only"] === true)
        return json(response, { ...header(3), kvs: [{ key: base64(`${PREFIX}huge`) }], more: true });
      return response.end("x".repeat(ETCD_LIMITS.replyBytes + 1));
    },
    "/v3/watch": (_, response) => message(response, { ...header(3), created: true }),
  });
  await using running = startMirror([await fake.listen()]);
  const { sink } = running;
  await waitFor("the list", () => (sink.keys.size === 2 ? true : undefined));
  assert.equal(sink.keys.get(`${PREFIX}huge`), undefined);
  assert.equal(sink.keys.get(`${PREFIX}small`), "v");
  assert.deepEqual(limits.slice(0, 5), [ETCD_LIMITS.pageKeys, 32, 4, 1, 1]);
});

test("a million keys: the list ends where there is no room", async () => {
  let pages = 0;
  let running: Running | undefined;
  await using fake = new FakeGateway({
    "/v3/kv/range": (body, response) => {
      if (body["count_only"] === true) return json(response, header(3));
      pages++;
      if (pages === 3 && running !== undefined) running.sink.isFull = true;
      return json(response, { ...header(3), kvs: [kv(`k${String(pages).padStart(7, "0")}`)], more: true });
    },
    "/v3/watch": (_, response) => message(response, { ...header(3), created: true }),
  });
  running = startMirror([await fake.listen()]);
  await using started = running;
  await waitFor("the watch", () => (fake.count("/v3/watch") > 0 ? true : undefined));
  assert.deepEqual([pages, started.sink.keys.size], [3, 3]);
});

test("a million keys below one machine's name: its share is read, the others' keys as well, and it is named", async () => {
  const machines = "/skydns/test/cluster/machine/";
  const value = JSON.stringify({
    host: "10.0.0.9",
    reach: "container",
    addresses: ["10.0.0.9"],
    hosts: ["1"],
    ports: [],
  });
  const member = (at: number): string => `svc/dev/web/${at.toString(16).padStart(12, "0")}`;
  const keyAfter = (from: string): string | undefined => {
    const flood = `${machines}m2/`;
    if (from <= flood) return flood + member(0);
    const at = Number.parseInt(from.slice(-13).replace("\0", ""), 16) + 1;
    if (from.startsWith(flood) && at < 1_000_000) return flood + member(at);
    return from <= `${machines}m3/` ? `${machines}m3/${member(1)}` : undefined;
  };
  let read = 0;
  await using fake = new FakeGateway({
    "/v3/kv/range": (body, response) => {
      const kvs: object[] = [];
      let key = keyAfter(Buffer.from(String(body["key"]), "base64").toString());
      for (; key !== undefined && kvs.length < Number(body["limit"]); key = keyAfter(`${key}\0`))
        kvs.push({ key: base64(key), value: base64(value) });
      read += kvs.length;
      json(response, { ...header(3), kvs, more: key !== undefined });
    },
    "/v3/watch": (_, response) => message(response, { ...header(3), created: true }),
  });
  const options = {
    prefix: "/skydns",
    zone: "cluster.test",
    machine: "m1",
    isNearestFirst: false,
    staleSecondsMax: 60,
  };
  const remote = new RemoteMembers(options);
  const keys = new EtcdKeys(new StoredNames(ETCD_DEFAULTS), remote);
  const gateway = new Gateway({ endpoints: [await fake.listen()], ca: undefined, user: undefined });
  const mirror = new Mirror({ gateway, prefix: machines, keys, onState: () => undefined });
  const stop = new AbortController();
  const done = mirror.run(stop.signal);
  await waitFor("the watch", () => (fake.count("/v3/watch") > 0 ? true : undefined));
  const { machines: count, members, cut } = remote.report;
  assert.deepEqual([count, members, cut], [2, ETCD_LIMITS.machineMembers + 1, ["m2"]]);
  assert.ok(read <= ETCD_LIMITS.machineMembers + 2 * ETCD_LIMITS.pageKeys, `${read} keys were read`);
  stop.abort();
  gateway.close();
  await done;
});

test("a member whose replies are all too long, no store's, or never end is left for the next one", async () => {
  const flood: Handler = (_, response) => void response.end("x".repeat(ETCD_LIMITS.replyBytes + 1));
  const stranger: Handler = (_, response) => json(response, { message: "hello" });
  await using long = new FakeGateway({ "/v3/kv/range": flood });
  const circle: Handler = (_, response) => json(response, { ...header(3), kvs: [kv("a"), kv("b")], more: true });
  await using other = new FakeGateway({ "/v3/kv/range": stranger });
  await using endless = new FakeGateway({ "/v3/kv/range": circle });
  await using good = new FakeGateway({
    "/v3/kv/range": (_, response) => json(response, { ...header(3), kvs: [kv("a")] }),
    "/v3/watch": (_, response) => message(response, { ...header(3), created: true }),
  });
  const members = [long, other, endless, good];
  await using running = startMirror(await Promise.all(members.map(async (each) => await each.listen())));
  await waitFor("the names", () =>
    running.sink.states.at(-1) === undefined && running.sink.keys.size === 1 ? true : undefined,
  );
  assert.ok(running.sink.states.includes("ETCD_TOO_LARGE"));
  // An object without a revision is no empty list, and a page that repeats itself is no next one.
  assert.equal(running.sink.states.filter((code) => code === "ETCD_FAILED").length, 2);
});

test("compacted before the watch, restored from a copy: all is listed again", async () => {
  let watches = 0;
  let revision = 10;
  await using fake = new FakeGateway({
    "/v3/kv/range": (body, response) =>
      body["count_only"] === true
        ? json(response, header(revision))
        : json(response, { ...header(revision), kvs: [kv(`at${revision}`)] }),
    "/v3/watch": (_, response) => {
      watches++;
      message(response, { ...header(revision), created: true });
      if (watches === 1) message(response, { ...header(0), canceled: true, compact_revision: "20" });
      // The next check finds an older revision.
      else if (watches === 2) revision = 4;
    },
  });
  await using running = startMirror([await fake.listen()]);
  await waitFor("the restored list", () => (running.sink.keys.has(`${PREFIX}at4`) ? true : undefined));
  assert.equal(running.mirror.counts.lists, 3);
});

test("a message of a watch that is too long for one is replaced by a list", async () => {
  const starts: unknown[] = [];
  await using fake = new FakeGateway({
    "/v3/kv/range": (_, response) =>
      json(response, { ...header(10 + starts.length), kvs: starts.length === 0 ? [] : [kv("listed")] }),
    "/v3/watch": (body, response) => {
      starts.push((body["create_request"] as Record<string, unknown>)["start_revision"]);
      message(response, { ...header(10), created: true });
      if (starts.length === 1) response.write(" ".repeat(ETCD_LIMITS.replyBytes + 1));
    },
  });
  await using running = startMirror([await fake.listen()]);
  await waitFor("a list", () => (running.sink.keys.has(`${PREFIX}listed`) ? true : undefined));
  await waitFor("the second watch", () => (starts.length === 2 ? true : undefined));
  assert.deepEqual([starts, running.mirror.counts.lists], [["11", "12"], 2]);
});

test("how long a lease lasts is asked again with the next change of a record, where etcd could not say it", async () => {
  let asked = 0;
  let stream: ServerResponse | undefined;
  await using fake = new FakeGateway({
    "/v3/kv/range": (_, response) => json(response, { ...header(7), kvs: [{ ...kv("a"), lease: "5" }] }),
    "/v3/lease/timetolive": (_, response) => {
      if (++asked === 1) fault(response, 503, 14, "etcdserver: no leader");
      else json(response, { ...header(7), grantedTTL: "90" });
    },
    "/v3/watch": (_, response) => {
      stream = response;
      message(response, { ...header(7), created: true });
    },
  });
  await using running = startMirror([await fake.listen()]);
  await waitFor("the first question, and the watch", () => (asked === 1 && stream !== undefined ? true : undefined));
  // Until the failure has been read, the lease counts as asked for.
  for (let change = 8; change < 1_000 && running.sink.leases.get("5") !== 90; change++) {
    message(stream ?? assert.fail(), { ...header(change), events: [{ kv: { ...kv("a"), lease: "5" } }] });
    await pause(20);
  }
  assert.equal(asked, 2);
});

test("thousands of changes in one message are applied in parts, and what comes after them waits", async () => {
  const names = Array.from({ length: 10_000 }, (_, index) => `n${index}`);
  await using fake = new FakeGateway({
    "/v3/kv/range": (_, response) => json(response, { ...header(10), kvs: [] }),
    "/v3/watch": (_, response) => {
      message(response, { ...header(10), created: true });
      message(response, { ...header(11), events: names.map((name) => ({ kv: kv(name) })) });
      message(response, { ...header(12), events: [{ type: "DELETE", kv: kv("n9999") }, { kv: kv("last") }] });
    },
  });
  await using running = startMirror([await fake.listen()]);
  const { sink } = running;
  const sizes = new Set<number>();
  const put = sink.put.bind(sink);
  // As long as the names of a large zone take.
  sink.put = (stored) => {
    for (const endMs = performance.now() + 0.01; performance.now() < endMs;);
    put(stored);
  };
  const samples = setInterval(() => sizes.add(sink.keys.size), 1);
  await waitFor("the last change", () => (sink.keys.has(`${PREFIX}last`) ? true : undefined));
  clearInterval(samples);
  assert.ok(
    [...sizes].some((size) => size > 0 && size < names.length),
    `seen: ${[...sizes].join(", ")}`,
  );
  assert.equal(sink.keys.size, names.length);
  assert.equal(sink.keys.has(`${PREFIX}n9999`), false);
});

test("a member that lists, and compacts before each watch, is not asked in a loop", async () => {
  let watches = 0;
  await using fake = new FakeGateway({
    "/v3/kv/range": (_, response) => json(response, { ...header(10), kvs: [] }),
    "/v3/watch": (_, response) => {
      watches++;
      message(response, { ...header(10), created: true });
      message(response, { ...header(10), canceled: true, compact_revision: "20" });
    },
  });
  const startMs = performance.now();
  await using _ = startMirror([await fake.listen()]);
  await waitFor("four watches", () => (watches >= 4 ? true : undefined));
  // The third and the fourth have waited.
  assert.ok(performance.now() - startMs >= ETCD_LIMITS.retryFirstMs);
});

test("a stream that ends goes on from the last revision, and one that ends at once is not opened in a loop", async () => {
  const starts: unknown[] = [];
  await using fake = new FakeGateway({
    "/v3/kv/range": (_, response) => json(response, { ...header(5 + starts.length), kvs: [] }),
    "/v3/watch": (body, response) => {
      starts.push((body["create_request"] as Record<string, unknown>)["start_revision"]);
      message(response, { ...header(5), created: true });
      message(response, { ...header(5 + starts.length), events: [{ kv: kv(`n${starts.length}`) }] });
      response.end();
    },
  });
  await using running = startMirror([await fake.listen()]);
  await waitFor("four streams", () => (starts.length >= 4 ? true : undefined));
  assert.deepEqual(starts.slice(0, 4), ["6", "7", "8", "9"]);
  assert.equal(running.mirror.counts.lists, 1);
  assert.ok(running.sink.keys.has(`${PREFIX}n3`));
});

test("a member that never replies, one that replies with garbage, and one that works: the last one is used", async () => {
  await using silent = new FakeGateway({ "/v3/kv/range": () => {} });
  await using broken = new FakeGateway({ "/v3/kv/range": (_, response) => response.end("<html>") });
  await using works = new FakeGateway({
    "/v3/kv/range": (_, response) => json(response, { ...header(5), kvs: [kv("a")] }),
    "/v3/watch": (_, response) => message(response, { ...header(5), created: true }),
  });
  const endpoints = [await silent.listen(), await broken.listen(), await works.listen()];
  await using running = startMirror(endpoints);
  await waitFor("the list", () => (running.sink.keys.size === 1 ? true : undefined));
  assert.equal(running.gateway.current.endpoint, endpoints[2]);
  assert.match(running.gateway.members[0]?.fault?.message ?? "", /did not reply within 3000 ms/);
  assert.match(running.gateway.members[1]?.fault?.message ?? "", /HTTP status 200 and no JSON/);
});

test("a stream whose member stops hearing the others is given up", async () => {
  let isAlone = false;
  const handlers = (name: string, canBeAlone: boolean): Record<string, Handler> => ({
    "/v3/kv/range": (body, response) => {
      if (canBeAlone && isAlone) fault(response, 503, 14, "etcdserver: no leader");
      else
        json(response, { ...header(canBeAlone ? 5 : 6), ...(body["count_only"] === true ? {} : { kvs: [kv(name)] }) });
    },
    "/v3/watch": (_, response) => {
      message(response, { ...header(5), created: true });
      if (!canBeAlone) message(response, { ...header(6), events: [{ kv: kv("from-other") }] });
    },
  });
  await using one = new FakeGateway(handlers("one", true));
  await using other = new FakeGateway(handlers("other", false));
  await using running = startMirror([await one.listen(), await other.listen()]);
  await waitFor("the list", () => (running.sink.keys.has(`${PREFIX}one`) ? true : undefined));
  isAlone = true;
  await waitFor("the other member", () => (running.sink.keys.has(`${PREFIX}from-other`) ? true : undefined));
  assert.equal(running.mirror.counts.lists, 1, "nothing is listed again");
  assert.ok(!running.sink.states.some((code) => code !== undefined), "the names were current all the time");
});

test("a member without a leader opens streams, and what is known is the last known all the time", async () => {
  let isAlone = false;
  const streams: ServerResponse[] = [];
  await using fake = new FakeGateway({
    "/v3/kv/range": (_, response) =>
      isAlone ? fault(response, 503, 14, "etcdserver: no leader") : json(response, { ...header(5), kvs: [kv("a")] }),
    "/v3/watch": (_, response) => {
      streams.push(response);
      message(response, { ...header(5), created: true });
    },
  });
  await using running = startMirror([await fake.listen()]);
  const { states } = running.sink;
  await waitFor("the names", () => (states.length === 1 ? true : undefined));
  isAlone = true;
  streams[0]?.end();
  await waitFor("some streams", () => (streams.length >= 3 ? true : undefined));
  assert.deepEqual([...new Set(states.slice(1))], ["ETCD_FAILED"]);
  isAlone = false;
  await waitFor("the end of it", () => (states.at(-1) === undefined ? true : undefined));
  assert.equal(running.mirror.counts.lists, 1);
});

test("a member that has failed is asked again while another one is used: then it is no fault any more", async () => {
  let isBroken = true;
  const handlers: Record<string, Handler> = {
    "/v3/kv/range": (_, response) => json(response, { ...header(5), kvs: [kv("a")] }),
    "/v3/watch": (_, response) => message(response, { ...header(5), created: true }),
  };
  const brokenRange: Handler = (body, response, request) =>
    isBroken ? void response.end("<html>") : handlers["/v3/kv/range"]?.(body, response, request);
  await using first = new FakeGateway({ ...handlers, "/v3/kv/range": brokenRange });
  await using second = new FakeGateway(handlers);
  await using running = startMirror([await first.listen(), await second.listen()]);
  await waitFor("the names", () => (running.sink.states.length > 0 ? true : undefined));
  const [member] = running.gateway.members;
  assert.match(member?.fault?.message ?? "", /no JSON/);
  isBroken = false;
  await waitFor("the member to be asked again", () => (member?.fault === undefined ? true : undefined));
  assert.notEqual(running.gateway.current, member, "it is not changed without need");
});

test("tokens: got before the first request, and again when they are refused, also for a stream", async () => {
  let token = 0;
  let isWatchRefused = true;
  const accepts = (request: IncomingMessage): boolean => request.headers.authorization === `t${token}`;
  await using fake = new FakeGateway({
    "/v3/auth/authenticate": (body, response) => {
      if (body["password"] === "secret") json(response, { ...header(1), token: `t${++token}` });
      else fault(response, 400, 3, "etcdserver: authentication failed, invalid user ID or password");
    },
    "/v3/kv/range": (_, response, request) =>
      accepts(request)
        ? json(response, { ...header(1), kvs: [] })
        : fault(response, 401, 16, "etcdserver: invalid auth token"),
    "/v3/watch": (_, response) => {
      const reason = "rpc error: code = Unauthenticated desc = etcdserver: invalid auth token";
      if (isWatchRefused) message(response, { ...header(1), created: true, canceled: true, cancel_reason: reason });
      else message(response, { ...header(1), created: true });
      isWatchRefused = false;
    },
  });
  const endpoint = await fake.listen();
  {
    await using running = startMirror([endpoint], { name: "u", password: "secret" });
    await waitFor("a stream", () =>
      running.sink.states.includes(undefined) && fake.count("/v3/watch") === 2 ? true : undefined,
    );
    token++;
    assert.deepEqual(await running.gateway.call("/v3/kv/range", {}), { ...header(1), kvs: [] });
  }
  await using wrong = startMirror([endpoint], { name: "u", password: "wrong" });
  await waitFor("the reason", () => (wrong.sink.states.includes("ETCD_CREDENTIALS") ? true : undefined));
});

test("errors of etcd have a code, a reason and a remedy", async () => {
  const cases = [
    [403, 7, "etcdserver: permission denied", "ETCD_PERMISSION"],
    [429, 8, "etcdserver: mvcc: database space exceeded", "ETCD_NO_SPACE"],
    [400, 3, "etcdserver: user name is empty", "ETCD_TOKEN"],
    [503, 14, "etcdserver: leader changed", "ETCD_FAILED"],
    [400, 11, "etcdserver: mvcc: required revision has been compacted", "ETCD_COMPACTED"],
  ] as const;
  let current: (typeof cases)[number] = cases[0];
  await using fake = new FakeGateway({
    "/v3/kv/range": (_, response) => fault(response, current[0], current[1], current[2]),
  });
  const gateway = new Gateway({ endpoints: [await fake.listen()], ca: undefined, user: undefined });
  for (const each of cases) {
    current = each;
    await assert.rejects(gateway.call("/v3/kv/range", {}), (error) => error instanceof Fault && error.code === each[3]);
  }
  gateway.close();
});

test("messages in pieces of one byte; a line that is too long, and one that is no JSON, end the stream", () => {
  const seen: unknown[] = [];
  const lines = new JsonLines(64, (each) => seen.push(each));
  for (const byte of Buffer.from('{"a":1}\n\n{"b":"\u00e9"}\n')) assert.equal(lines.push(Buffer.of(byte)), undefined);
  assert.deepEqual(seen, [{ a: 1 }, { b: "\u00e9" }]);
  assert.equal(lines.push(Buffer.from("{]\n")), "no JSON");
  const long = new JsonLines(64, () => {});
  let problem;
  for (let index = 0; index < 65 && problem === undefined; index++) problem = long.push(Buffer.from("x"));
  assert.equal(problem, "too long");
});
