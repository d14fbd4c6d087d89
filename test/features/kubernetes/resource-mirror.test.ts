// The client of a cluster's API against a server on loopback, which does what a real one does now and then: it ends streams,
// forgets old changes, is slow, replies with something else, and sends more than anybody should read.

import assert from "node:assert/strict";
import { test } from "node:test";

import type { Fault } from "../../../src/base/lib/fault.ts";
import { ClusterApi } from "../../../src/features/kubernetes/api.ts";
import type { ClusterAccess } from "../../../src/features/kubernetes/kubeconfig.ts";
import { KUBERNETES_LIMITS } from "../../../src/features/kubernetes/limits.ts";
import { ResourceMirror } from "../../../src/features/kubernetes/kubernetes.ts";
import { waitFor } from "../../support/rig/wait.ts";
import { clusterIp } from "./cluster-objects.ts";
import { KubeApi, type KubeApiOptions, type KubeObject } from "./kube-api.ts";

const PATH = "/api/v1/services";

class Rig implements AsyncDisposable {
  readonly api: KubeApi;
  readonly names = new Set<string>();
  readonly states: (string | undefined)[] = [];
  #listed: Set<string> | undefined;
  objectsMax = Infinity;
  refused = 0;
  /** Its certificate. */
  ca: string | undefined;
  readonly mirror: ResourceMirror;
  readonly #stop = new AbortController();
  #done: Promise<void> = Promise.resolve();

  private constructor(api: KubeApi, access: Partial<ClusterAccess>) {
    this.api = api;
    const own = { server: api.url, ca: undefined, serverName: undefined, certificate: undefined, key: undefined };
    const all = { ...own, token: undefined, tokenFile: undefined, ...access };
    this.mirror = new ResourceMirror({
      open: async () =>
        await Promise.resolve(
          new ClusterApi({ ...all, ca: this.ca }, async () => await Promise.reject(new Error("no file"))),
        ),
      path: PATH,
      store: this.#store(),
      onState: (fault: Fault | undefined) => this.states.push(fault?.code),
    });
  }

  static async with(
    objects: readonly KubeObject[],
    options: KubeApiOptions = {},
    access: Partial<ClusterAccess> = {},
  ): Promise<Rig> {
    const api = await KubeApi.start(options);
    api.put(...objects);
    return new Rig(api, access);
  }

  run(): void {
    this.#done = this.mirror.run(this.#stop.signal);
  }

  get state(): string | undefined {
    return this.states.at(-1);
  }

  async until(what: string, isTrue: () => boolean): Promise<void> {
    await waitFor(what, () => isTrue() || undefined);
  }

  async has(...names: readonly string[]): Promise<void> {
    await this.until(names.join(), () => [...this.names].toSorted().join() === names.toSorted().join());
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort();
    await this.#done;
    await this.api[Symbol.asyncDispose]();
  }

  #store(): ConstructorParameters<typeof ResourceMirror>[0]["store"] {
    const nameOf = (object: unknown): string => (object as KubeObject).metadata.name;
    const { names } = this;
    const refused = (): number => this.refused;
    const isFull = (): boolean => (this.#listed ?? names).size >= this.objectsMax;
    return {
      get isFull() {
        return isFull();
      },
      get refused() {
        return refused();
      },
      begin: () => {
        this.#listed = new Set();
        this.refused = 0;
      },
      put: (object) => {
        if (isFull() && !(this.#listed ?? names).has(nameOf(object))) this.refused++;
        else (this.#listed ?? names).add(nameOf(object));
      },
      remove: (object) => void names.delete(nameOf(object)),
      commit: (unlisted) => {
        this.refused += unlisted;
        names.clear();
        for (const each of this.#listed ?? []) names.add(each);
        this.#listed = undefined;
      },
    };
  }
}

function services(count: number): KubeObject[] {
  return Array.from({ length: count }, (_, n) => clusterIp(`s${n}.default`, ["10.0.0.1"]));
}

test("a list in pages, then changes; a stream that ends is opened again from there", async () => {
  const count = 2 * KUBERNETES_LIMITS.pageObjects + 1;
  await using rig = await Rig.with(services(count));
  rig.run();
  // The server counts a stream before its client has seen it open.
  await rig.until("a stream", () => rig.api.watches === 1 && rig.states.length > 0);
  assert.equal(rig.names.size, count);
  assert.equal(rig.api.paths.filter((path) => path.includes("limit=")).length, 3);
  assert.deepEqual(rig.states, [undefined]);
  rig.api.put(clusterIp("new.default", ["10.0.0.2"]));
  rig.api.remove("Service", "default", "s0");
  await rig.until("changes", () => rig.names.has("new") && !rig.names.has("s0"));
  rig.api.endWatches();
  rig.api.put(clusterIp("meanwhile.default", ["10.0.0.3"]));
  await rig.until("the change between", () => rig.names.has("meanwhile"));
  assert.equal(rig.mirror.counts.lists, 1);
  assert.deepEqual(new Set(rig.states), new Set([undefined]), "it was never away");
});

test("changes that the API has forgotten: everything is listed again", async () => {
  await using rig = await Rig.with(services(2));
  rig.run();
  await rig.until("a stream", () => rig.api.watches === 1);
  rig.api.intercept = (_, response) => {
    response.writeHead(503).end("{}");
    return true;
  };
  rig.api.endWatches();
  await rig.until("a fault", () => rig.state === "CLUSTER_FAILED");
  rig.api.put(clusterIp("new.default", ["10.0.0.2"]));
  rig.api.remove("Service", "default", "s0");
  rig.api.compact();
  rig.api.intercept = () => false;
  await rig.has("new", "s1");
  await rig.until("it is current", () => rig.state === undefined);
  assert.equal(rig.mirror.counts.lists, 2);
});

test("an API that goes away and comes back", async () => {
  const api = await KubeApi.start();
  api.put(...services(1));
  const { port } = api;
  await api.close();
  await using rig = await Rig.with([], {}, { server: `http://127.0.0.1:${port}` });
  rig.run();
  await rig.until("it is away", () => rig.state === "CLUSTER_UNREACHABLE");
  await using back = await KubeApi.start({ port });
  back.put(...services(2));
  await rig.has("s0", "s1");
  await rig.until("it is current", () => rig.state === undefined);
  await back.close();
  await rig.until("it is away again", () => rig.state === "CLUSTER_UNREACHABLE");
  assert.deepEqual([...rig.names], ["s0", "s1"], "what is known stays");
});

for (const [what, count, ca] of [
  ["another cluster at the same address, which has made more changes", 9, "another authority"],
  ["the cluster from a backup, where what was made since does not exist", 1, undefined],
] as const) {
  test(`an API that comes back with other objects is listed again: ${what}`, async () => {
    const api = await KubeApi.start();
    api.put(...services(5));
    const { port } = api;
    await using rig = await Rig.with([], {}, { server: `http://127.0.0.1:${port}` });
    rig.run();
    await rig.until("all of them", () => rig.names.size === 5 && rig.state === undefined);
    await api.close();
    await rig.until("it is away", () => rig.state === "CLUSTER_UNREACHABLE");
    rig.ca = ca;
    await using back = await KubeApi.start({ port });
    const others = Array.from({ length: count }, (_, n) => `other${n}`);
    back.put(...others.map((name) => clusterIp(`${name}.default`, ["10.0.0.2"])));
    // Who watches from a version that has not been yet is told nothing.
    await rig.has(...others);
    await rig.until("it is current", () => rig.state === undefined);
  });
}

test("an API that was away for a moment is not listed again", async () => {
  const api = await KubeApi.start();
  api.put(...services(2));
  const { port } = api;
  await using rig = await Rig.with([], {}, { server: `http://127.0.0.1:${port}` });
  rig.run();
  await rig.has("s0", "s1");
  await api.close();
  await rig.until("it is away", () => rig.state === "CLUSTER_UNREACHABLE");
  await using back = await KubeApi.start({ port });
  back.put(...services(2), clusterIp("new.default", ["10.0.0.2"]));
  await rig.has("s0", "s1", "new");
  assert.equal(rig.mirror.counts.lists, 1);
});

for (const [what, room] of [
  ["between two pages", KUBERNETES_LIMITS.pageObjects],
  ["in the last page", 3 * KUBERNETES_LIMITS.pageObjects - 1],
] as const) {
  test(`a store that is full ${what} ends the list; with room again, it is listed again`, async () => {
    const count = 3 * KUBERNETES_LIMITS.pageObjects;
    await using rig = await Rig.with(services(count));
    rig.objectsMax = room;
    rig.run();
    await rig.until("a stream", () => rig.api.watches === 1);
    assert.deepEqual([rig.names.size, rig.refused], [room, count - room]);
    rig.api.endWatches();
    await rig.until("another stream", () => rig.mirror.counts.reconnects === 1 && rig.api.watches === 1);
    assert.equal(rig.mirror.counts.lists, 1);
    rig.api.remove("Service", "default", [...rig.names][0] ?? "");
    await rig.until("room", () => rig.names.size < room);
    rig.api.endWatches();
    await rig.until("another one instead", () => rig.names.size === room);
    assert.equal(rig.mirror.counts.lists, 2);
  });
}

test("pages without objects and without an end", async () => {
  await using rig = await Rig.with([]);
  rig.api.intercept = (_, response) => {
    response.end('{"items":[],"metadata":{"resourceVersion":"1","continue":"more"}}');
    return true;
  };
  rig.run();
  await rig.until("a fault", () => rig.state === "CLUSTER_FAILED");
});

test("a page that is too long is asked for in smaller ones, until one object is", async () => {
  const long = "x".repeat(KUBERNETES_LIMITS.replyBytes / 8);
  const large = services(10).map((each) => ({ ...each, metadata: { ...each.metadata, annotations: { long } } }));
  await using rig = await Rig.with(large);
  rig.run();
  await rig.until("all of them", () => rig.names.size === 10);
  await using hopeless = await Rig.with([
    { ...clusterIp("s.default", []), long: "x".repeat(KUBERNETES_LIMITS.replyBytes) },
  ]);
  hopeless.run();
  await hopeless.until("a fault", () => hopeless.state === "CLUSTER_TOO_LARGE");
});

for (const [what, code, status, body] of [
  ["a token that is not valid", "CLUSTER_CREDENTIALS", 401, '{"kind":"Status","message":"Unauthorized"}'],
  ["no permission", "CLUSTER_PERMISSION", 403, '{"kind":"Status","message":"services is forbidden"}'],
  ["an error of the API", "CLUSTER_FAILED", 500, '{"kind":"Status","message":"etcd is away"}'],
  ["another server", "CLUSTER_FAILED", 404, "<html>"],
  ["another server that likes it", "CLUSTER_FAILED", 200, "<html>"],
  ["JSON of something else", "CLUSTER_FAILED", 200, '{"items": 5}'],
  ["no object", "CLUSTER_FAILED", 200, "null"],
  ["a redirection", "CLUSTER_FAILED", 302, "{}"],
  ["a reply without an end", "CLUSTER_TOO_LARGE", 403, "x".repeat(KUBERNETES_LIMITS.replyBytes + 1)],
] as const) {
  test(`${what}: ${code}`, async () => {
    await using rig = await Rig.with([]);
    rig.api.intercept = (_, response) => {
      response.writeHead(status, { location: "http://127.0.0.1:1/" }).end(body);
      return true;
    };
    rig.run();
    await rig.until(code, () => rig.state === code);
  });
}

for (const [what, access, code] of [
  ["a token that no header can have", { token: "to\nken" }, "CLUSTER_CREDENTIALS"],
  ["a key that is none", { server: "https://127.0.0.1:1", certificate: "none", key: "none" }, "CLUSTER_CERTIFICATE"],
] as const) {
  test(`${what}: ${code}, for as long as it is asked for`, async () => {
    await using rig = await Rig.with([], {}, access);
    rig.run();
    await rig.until("several attempts", () => rig.states.length === 3);
    assert.deepEqual(new Set(rig.states), new Set([code]));
  });
}

for (const [what, text, code] of [
  ["no JSON", "{\n", "CLUSTER_FAILED"],
  ["no message", "5\n", "CLUSTER_FAILED"],
  ["another type", '{"type":"OTHER","object":{}}\n', "CLUSTER_FAILED"],
  ["an error", '{"type":"ERROR","object":{"code":500,"message":"no"}}\n', "CLUSTER_FAILED"],
  ["an error without an object", '{"type":"ERROR"}\n', "CLUSTER_FAILED"],
  ["a line without an end", "x".repeat(KUBERNETES_LIMITS.replyBytes + 1), "CLUSTER_TOO_LARGE"],
] as const) {
  test(`a stream with ${what}: ${code}, and a new one`, async () => {
    await using rig = await Rig.with(services(1));
    rig.run();
    await rig.until("a stream", () => rig.api.watches === 1);
    rig.api.send(text);
    await rig.until(code, () => rig.states.includes(code));
    await rig.until("it is current", () => rig.state === undefined);
  });
}

test("a stream that ends as soon as it is open is not opened without a pause", async () => {
  await using rig = await Rig.with(services(1));
  rig.api.intercept = (request, response) => {
    if (request.url?.includes("watch=1") !== true) return false;
    response.writeHead(200).end();
    return true;
  };
  const since = performance.now();
  rig.run();
  await rig.until("several streams", () => rig.mirror.counts.reconnects >= 4);
  assert.ok(performance.now() - since >= 3 * KUBERNETES_LIMITS.retryFirstMs - 10);
});
