/**
 * The follower against a scripted engine, for what a real one does not do on demand: lose an event, close a stream, answer
 * an inspect late, or in the format of another version.
 */
import assert from "node:assert/strict";
import { afterEach, beforeEach, mock, test } from "node:test";

import { LIMITS } from "../../../../src/base/limits.ts";
import { guard } from "../../../../src/base/lib/guard.ts";
import type { ContainerFact, NetworkFact, StoppedFact } from "../../../../src/container/facts/fact.ts";
import { LabelKeys } from "../../../../src/container/facts/label-keys.ts";
import type { EngineInfo } from "../../../../src/container/watch/engine.ts";
import { type FollowedEngine, Follower, type FollowerHooks } from "../../../../src/container/watch/follower.ts";
import type {
  ContainerJson,
  EngineEvent,
  ImageJson,
  ListedJson,
  NetworkJson,
} from "../../../../src/container/watch/engine-json.ts";
import { Fault } from "../../../../src/base/lib/fault.ts";
import { waitFor } from "../../../support/rig/wait.ts";

const INFO: EngineInfo = {
  id: "e",
  name: "here",
  version: "28.5.2",
  majorVersion: 28,
  apiVersion: "1.51",
  isRootless: false,
};

/** An engine whose containers, events and failures the test controls. */
class ScriptedEngine implements FollowedEngine {
  readonly running = new Map<string, ContainerJson>();
  readonly labels = new LabelKeys();
  inspected: string[] = [];
  /** Inspects wait for this, as they do while a container is starting. */
  gate: Promise<void> = Promise.resolve();
  /** The responses for images, by id. */
  images: (id: string) => Promise<ImageJson | undefined> = async () => undefined;
  inspectedImages: string[] = [];
  isAway = false;
  #push: (event: EngineEvent | "end") => void = () => undefined;

  async describe(): Promise<EngineInfo> {
    if (this.isAway) throw new Fault("ENGINE_AWAY", "no engine");
    return INFO;
  }

  readonly failing = new Set<string>();

  async containers(): Promise<readonly ListedJson[]> {
    return [...this.running.values()].map((json) => ({
      Id: json.Id,
      Names: [json.Name],
      State: json.State?.Paused === true ? "paused" : "running",
      NetworkSettings: { Networks: json.NetworkSettings?.Networks ?? {} },
    }));
  }

  async stoppedContainers(): Promise<readonly ListedJson[]> {
    return [...this.running.values()]
      .filter(({ State: state }) => state?.Running === false)
      .map(({ Id, Name }) => ({ Id, Names: [Name], State: "exited" }));
  }

  async container(id: string): Promise<ContainerJson | undefined> {
    this.inspected.push(id);
    await this.gate;
    if (this.failing.has(id)) throw new Error("slow");
    return this.running.get(id);
  }

  async network(id: string): Promise<NetworkJson> {
    return { Id: id, Name: id, Driver: "bridge", Scope: "local" };
  }

  /** Those that no container is on. */
  readonly unusedNetworks = new Set<string>();

  async networks(): Promise<readonly NetworkJson[]> {
    const used = [...this.running.values()].flatMap((json) => Object.values(json.NetworkSettings?.Networks ?? {}));
    const ids = new Set([...this.unusedNetworks, ...used.flatMap(({ NetworkID: id }) => id ?? [])]);
    return await Promise.all([...ids].map(async (id) => await this.network(id)));
  }

  async image(id: string): Promise<ImageJson | undefined> {
    this.inspectedImages.push(id);
    return await this.images(id);
  }

  async events(signal: AbortSignal): Promise<AsyncIterable<EngineEvent>> {
    const queue: (EngineEvent | "end")[] = [];
    let wake: () => void = () => undefined;
    this.#push = (event) => {
      queue.push(event);
      wake();
    };
    signal.addEventListener("abort", () => this.#push("end"));
    return (async function* () {
      for (;;) {
        const event = queue.shift();
        if (event === "end") return;
        if (event !== undefined) yield event;
        else await new Promise<void>((resolve) => (wake = resolve));
      }
    })();
  }

  emit(event: EngineEvent | "end"): void {
    this.#push(event);
  }

  put(
    id: string,
    change: {
      readonly name?: string;
      readonly ip?: string;
      readonly endpoint?: string;
      readonly isRunning?: boolean;
      readonly labels?: Readonly<Record<string, string>>;
      readonly image?: string;
    } = {},
  ): void {
    this.running.set(id, {
      Id: id,
      Name: `/${change.name ?? id}`,
      State: { Running: change.isRunning ?? true, Pid: change.isRunning === false ? 0 : 77 },
      Config: { Labels: change.labels ?? {} },
      ...(change.image !== undefined && { Image: change.image }),
      NetworkSettings: {
        SandboxKey: `/run/docker/netns/${id}`,
        Networks: {
          n1: {
            NetworkID: "n1",
            EndpointID: change.endpoint ?? `e-${id}`,
            IPAddress: change.ip ?? "10.0.0.2",
            DNSNames: [id],
          },
        },
      },
    });
  }
}

let engine: ScriptedEngine;
let known: Map<string, ContainerFact>;
let networks: NetworkFact[];
let away: string[];
let synced: number;
let stop: AbortController;
let ended: Promise<void>;

beforeEach(() => {
  engine = new ScriptedEngine();
  known = new Map();
  networks = [];
  away = [];
  synced = 0;
  stop = new AbortController();
});
afterEach(async () => {
  mock.timers.reset();
  stop.abort();
  await ended;
});

function follow(others: Partial<FollowerHooks> = {}): Follower {
  const follower = new Follower(engine, {
    onConnected: () => undefined,
    onDisconnected: (reason) => away.push(reason),
    onSynced: () => synced++,
    onNetwork: (fact) => networks.push(fact),
    onNetworkGone: (gone) => void (networks = networks.filter(({ id }) => id !== gone)),
    onContainer: (fact) => known.set(fact.id, fact),
    onContainerGone: (id) => known.delete(id),
    onInspectFailed: () => undefined,
    filesOf: () => ({ nameservers: { kind: "unknown" }, extraHosts: [] }),
    known: () => known,
    hasNetwork: (id) => networks.some((network) => network.id === id),
    knownNetworks: () => networks.map(({ id }) => id),
    ...others,
  });
  ended = follower.run(stop.signal);
  return follower;
}

/** Runs everything that is ready. */
async function settle(): Promise<void> {
  for (let i = 0; i < 30; i++) await new Promise((resolve) => setImmediate(resolve));
}

/** The same a minute later; needs the clock of the test. */
async function later(): Promise<void> {
  mock.timers.tick(60_000);
  await settle();
}

test("containers that run at the start are inspected once, with their networks, before the follower is synced", async () => {
  engine.put("a");
  engine.put("b");
  follow();
  await settle();
  assert.deepEqual([...known.keys()], ["a", "b"]);
  assert.deepEqual(engine.inspected, ["a", "b"]);
  assert.deepEqual(networks.map(({ id }) => id).slice(0, 1), ["n1"]);
  assert.equal(synced, 1);
});

test("a container whose inspect fails is tried again before the follower is synced, but not for ever", async () => {
  mock.timers.enable({ apis: ["setTimeout"] });
  engine.put("a");
  engine.put("b");
  engine.put("c");
  for (const id of ["a", "c"]) engine.failing.add(id);
  const follower = follow();
  await settle();
  assert.deepEqual([[...known.keys()], synced], [["b"], 0]);
  engine.failing.delete("a");
  await later();
  assert.deepEqual([[...known.keys()].toSorted(), synced], [["a", "b"], 0]);
  await later();
  assert.deepEqual([engine.inspected.filter((id) => id === "c").length, synced], [3, 1]);
  assert.deepEqual([...follower.unknown], ["c"]);
  engine.failing.delete("c");
  await later();
  assert.deepEqual([known.has("c"), synced], [true, 1]);
  assert.deepEqual([...follower.unknown], []);
});

test("a container that could not be inspected and is not listed any more is known to be gone", async () => {
  mock.timers.enable({ apis: ["setTimeout"] });
  engine.put("a");
  engine.put("b");
  engine.failing.add("a");
  const follower = follow();
  for (let times = 0; times < 4; times++) await later();
  assert.deepEqual([[...follower.unknown], synced], [["a"], 1]);
  // It ends while the engine is away, and nobody tries it then.
  engine.isAway = true;
  engine.emit("end");
  await later();
  await later();
  engine.running.delete("a");
  engine.failing.delete("a");
  engine.isAway = false;
  mock.timers.reset();
  await waitFor("it to be missed", () => (follower.unknown.size === 0 ? true : undefined));
  assert.deepEqual([...known.keys()], ["b"]);
});

test("an event marks its container, and only that one is inspected", async () => {
  engine.put("a");
  engine.put("b");
  follow();
  await settle();
  engine.inspected = [];
  engine.put("a", { name: "renamed" });
  engine.emit({ Type: "container", Action: "rename", Actor: { ID: "a" } });
  await settle();
  assert.deepEqual(engine.inspected, ["a"]);
  assert.equal(known.get("a")?.name, "renamed");
});

test("a network connect before the start (Pid 0, not running) does not make a running container; the start does", async () => {
  follow();
  await settle();
  engine.put("a", { isRunning: false });
  engine.emit({ Type: "network", Action: "connect", Actor: { ID: "n1", Attributes: { container: "a" } } });
  await settle();
  assert.equal(known.size, 0);
  engine.put("a");
  engine.emit({ Type: "container", Action: "start", Actor: { ID: "a" } });
  await settle();
  assert.equal(known.get("a")?.pid, 77);
});

test("a slow inspect does not delay others, and marks set meanwhile are not lost", async () => {
  engine.put("a");
  let open: () => void = () => undefined;
  engine.gate = new Promise((resolve) => (open = resolve));
  follow();
  await settle();
  engine.gate = Promise.resolve();
  engine.put("b");
  engine.emit({ Type: "container", Action: "start", Actor: { ID: "b" } });
  await settle();
  assert.deepEqual([...known.keys()], ["b"]);
  engine.put("a", { ip: "10.0.0.9" });
  engine.emit({ Type: "container", Action: "start", Actor: { ID: "a" } });
  open();
  await settle();
  assert.equal(known.get("a")?.endpoints[0]?.ipv4, "10.0.0.9");
});

test("the next list reveals lost events: a new container, a removed one, and one that joined again", async () => {
  mock.timers.enable({ apis: ["setInterval"] });
  engine.put("stays");
  engine.put("goes");
  engine.put("rejoins");
  follow();
  await settle();
  engine.running.delete("goes");
  engine.put("comes");
  engine.put("rejoins", { endpoint: "another" });
  engine.inspected = [];
  mock.timers.tick(LIMITS.resyncEveryMs);
  await settle();
  assert.deepEqual([...known.keys()].toSorted(), ["comes", "rejoins", "stays"]);
  assert.deepEqual(engine.inspected.toSorted(), ["comes", "goes", "rejoins"]);
  assert.equal(known.get("rejoins")?.endpoints[0]?.endpointId, "another");
});

test("containers that do not run are followed: from the start, when they stop, and until they are removed or run", async () => {
  mock.timers.enable({ apis: ["setInterval", "setTimeout"] });
  const stopped = new Map<string, StoppedFact>();
  const gone: string[] = [];
  engine.put("old", { isRunning: false });
  engine.put("runs");
  follow({
    onContainerGone: (id) => {
      gone.push(`${id} ${stopped.has(id) ? "after" : "before"} its names`);
      known.delete(id);
    },
    onContainer: (fact) => {
      known.set(fact.id, fact);
      stopped.delete(fact.id);
    },
    stopped: {
      known: () => stopped.keys(),
      put: (fact) => stopped.set(fact.id, fact),
      remove: (id) => stopped.delete(id),
    },
  });
  await settle();
  assert.deepEqual([...stopped.keys()], ["old"]);
  assert.deepEqual(stopped.get("old")?.networks, [{ name: "n1", names: ["old"] }]);
  engine.put("runs", { isRunning: false });
  engine.emit({ Type: "container", Action: "die", Actor: { ID: "runs" } });
  await settle();
  assert.deepEqual(gone, ["runs after its names"]);
  engine.put("old");
  engine.emit({ Type: "container", Action: "start", Actor: { ID: "old" } });
  await settle();
  assert.deepEqual([...stopped.keys()], ["runs"]);
  engine.put("created", { isRunning: false });
  engine.emit({ Type: "container", Action: "create", Actor: { ID: "created" } });
  await settle();
  assert.ok(!stopped.has("created"), "it may start at once");
  mock.timers.tick(LIMITS.startAfterCreateMs);
  await settle();
  assert.ok(stopped.has("created"));
  engine.running.delete("runs");
  engine.emit({ Type: "container", Action: "destroy", Actor: { ID: "runs" } });
  await settle();
  engine.running.delete("created");
  mock.timers.tick(LIMITS.resyncEveryMs);
  await settle();
  assert.deepEqual([...stopped.keys()], [], "one by an event, one by the list");
});

test("a closed stream is reported, the facts stay, and the follower reconnects", async () => {
  engine.put("a");
  const follower = follow();
  await settle();
  engine.isAway = true;
  engine.emit("end");
  await settle();
  assert.equal(follower.isConnected, false);
  assert.deepEqual([...known.keys()], ["a"]);
  engine.isAway = false;
  engine.put("b");
  while (!follower.isConnected) await new Promise((resolve) => setTimeout(resolve, 5));
  await settle();
  assert.deepEqual([...known.keys()], ["a", "b"]);
  assert.match(away[0] ?? "", /closed the event stream/);
});

test("reinspect() inspects all known containers; while the engine is away, when it is back", async () => {
  engine.put("a");
  engine.put("b");
  const follower = follow();
  await settle();
  engine.inspected = [];
  follower.reinspect();
  await settle();
  assert.deepEqual(engine.inspected, ["a", "b"]);
  engine.isAway = true;
  engine.emit("end");
  await settle();
  follower.reinspect();
  await settle();
  assert.deepEqual(engine.inspected, ["a", "b"]);
  engine.isAway = false;
  while (!follower.isConnected) await new Promise((resolve) => setTimeout(resolve, 5));
  await settle();
  assert.deepEqual(engine.inspected, ["a", "b", "a", "b"]);
});

test("a container that could not be inspected before the engine went away is inspected when it is back", async () => {
  engine.put("a");
  const follower = follow();
  await settle();
  engine.inspected = [];
  engine.failing.add("a");
  mock.timers.enable({ apis: ["setTimeout"] });
  follower.reinspect();
  await settle();
  engine.isAway = true;
  engine.emit("end");
  await settle();
  // It is due while the engine is away.
  await later();
  assert.deepEqual(engine.inspected, ["a"]);
  engine.failing.clear();
  engine.isAway = false;
  while (!follower.isConnected) await settle();
  await settle();
  assert.deepEqual(engine.inspected, ["a", "a"]);
});

test("a network that was removed while the engine was away is forgotten; one without containers stays", async () => {
  engine.put("a");
  const follower = follow();
  await settle();
  networks.push({ id: "n2", name: "n2", driver: "bridge", scope: "local", isInternal: false, project: undefined });
  engine.unusedNetworks.add("n2");
  engine.isAway = true;
  engine.emit("end");
  await settle();
  engine.running.delete("a");
  engine.isAway = false;
  while (!follower.isConnected) await new Promise((resolve) => setTimeout(resolve, 5));
  await settle();
  assert.deepEqual(
    networks.map(({ id }) => id),
    ["n2"],
  );
});

test("a final error ends the follower", async () => {
  engine.describe = async () => {
    throw new Fault("ENGINE_OTHER", "another one", { isFinal: true });
  };
  follow();
  await assert.rejects(ended, { code: "ENGINE_OTHER" });
  ended = Promise.resolve();
});

const IMAGE = `sha256:${"1".repeat(64)}`;
const BAKED = { colour: "blue" };

test("image labels are split from the container's own, once in a container's life", async () => {
  engine.images = async () => ({ Config: { Labels: BAKED } });
  for (const id of ["a", "b"]) engine.put(id, { image: IMAGE, labels: { ...BAKED, own: id } });
  engine.put("plain", { image: `sha256:${"2".repeat(64)}` });
  follow();
  await settle();
  assert.deepEqual(known.get("a")?.labels, { own: "a" });
  assert.deepEqual(known.get("b")?.imageLabels, { labels: BAKED, source: "known" });
  engine.put("a", { image: IMAGE, labels: { ...BAKED, own: "a" }, name: "renamed" });
  engine.emit({ Type: "container", Action: "rename", Actor: { ID: "a" } });
  await settle();
  const { name, pid, labels } = known.get("a") ?? assert.fail();
  assert.deepEqual([name, pid, labels], ["renamed", 77, { own: "a" }]);
  assert.deepEqual(engine.inspectedImages, [IMAGE]);
});

test("names are known while the image is being inspected; decisions about labels wait", async () => {
  let open: (json: ImageJson) => void = () => undefined;
  engine.images = async () => await new Promise((resolve) => (open = resolve));
  engine.put("a", { image: IMAGE, labels: BAKED });
  follow();
  await settle();
  assert.deepEqual(known.get("a")?.imageLabels, { labels: BAKED, source: "awaited" });
  assert.deepEqual(known.get("a")?.endpoints[0]?.names, ["a"]);
  assert.equal(synced, 0);
  open({ Config: { Labels: {} } });
  await settle();
  assert.deepEqual(known.get("a")?.labels, BAKED);
  assert.equal(synced, 1);
});

test("labels of an image that is inspected late apply from then on, and count as unknown before", async () => {
  let open: (json: ImageJson) => void = () => undefined;
  engine.images = async () => await new Promise((resolve) => (open = resolve));
  engine.put("a", { image: IMAGE, labels: BAKED });
  follow();
  const source = (): string | undefined => known.get("a")?.imageLabels.source;
  while (source() !== "unknown") await new Promise((resolve) => setTimeout(resolve, 10));
  open({ Config: { Labels: {} } });
  await settle();
  assert.equal(source(), "known");
  assert.deepEqual(known.get("a")?.labels, BAKED);
});

test("labels that somebody wants to know later are read of all containers, and their images, before it goes on", async () => {
  engine.images = async () => ({ Config: { Labels: BAKED } });
  engine.put("a", { labels: BAKED, image: IMAGE });
  const follower = follow();
  await settle();
  await follower.learnLabels(["io.dns11.enable"]);
  assert.deepEqual([engine.inspected, engine.inspectedImages.length], [["a"], 1]);
  engine.put("a", { labels: { ...BAKED, team: "x" }, image: IMAGE });
  await follower.learnLabels(["team"]);
  assert.deepEqual([engine.inspected, engine.inspectedImages.length], [["a", "a"], 2]);
  assert.deepEqual(known.get("a")?.labels, { team: "x" });
});

test("a container that crashed dns11 while it was inspected is not inspected", async () => {
  const failed: string[] = [];
  engine.put("a");
  engine.put("b");
  follow({
    barredBy: (id) => (id === "a" ? "it is quarantined" : undefined),
    onInspectFailed: (id, reason) => failed.push(`${id}: ${reason}`),
  });
  await settle();
  assert.deepEqual([engine.inspected, [...known.keys()]], [["b"], ["b"]]);
  assert.deepEqual(failed, ["a: it is quarantined"]);
});

test("a container that is not to be inspected is known to be gone when it is not listed any more", async () => {
  const late: string[] = [];
  const failed: string[] = [];
  let isBarred = false;
  engine.put("a");
  engine.put("b");
  const follower = follow({
    barredBy: (id) => (isBarred && id !== "b" ? "it is quarantined" : undefined),
    late: { onLate: (id) => late.push(`late ${id}`), onKnown: (id) => late.push(`known ${id}`) },
    onInspectFailed: (id) => failed.push(id),
  });
  await settle();
  isBarred = true;
  engine.put("c", { ip: "10.0.0.4" });
  engine.emit("end");
  while (follower.isConnected) await settle();
  // Not before: the interval of that connection was one of the real clock.
  mock.timers.enable({ apis: ["setTimeout", "setInterval"] });
  while (!follower.isConnected) await settle();
  await settle();
  assert.deepEqual([[...known.keys()], late], [["a", "b"], ["late c"]]);
  engine.running.delete("a");
  engine.running.delete("c");
  await later();
  await later();
  assert.deepEqual([[...known.keys()], late.at(-1)], [["b"], "known c"]);
  failed.length = 0;
  await later();
  assert.deepEqual(failed, []);
});

test("without an image, or if it is gone or cannot be inspected, all labels count as the image's", async () => {
  engine.images = async (id) => (id === IMAGE ? undefined : await Promise.reject(new Error("500")));
  engine.put("unreported", { labels: BAKED });
  engine.put("gone", { labels: BAKED, image: IMAGE });
  engine.put("broken", { labels: BAKED, image: `sha256:${"2".repeat(64)}` });
  follow();
  await settle();
  for (const id of ["unreported", "gone", "broken"]) {
    assert.deepEqual(known.get(id)?.labels, {}, id);
    assert.deepEqual(known.get(id)?.imageLabels, { labels: BAKED, source: "unknown" }, id);
  }
});

test("an internal error affects only that event or container, and the follower goes on", async () => {
  const errors: string[] = [];
  guard.install((error, entrance) => errors.push(`${entrance}: ${(error as Error).message}`));
  engine.put("a");
  engine.put("b");
  follow({
    onNetworkGone: () => {
      throw new TypeError("of an event");
    },
    onContainer: (fact) => {
      if (fact.id === "a") throw new TypeError("of a container");
      known.set(fact.id, fact);
    },
  });
  await settle();
  engine.emit({ Type: "network", Action: "destroy", Actor: { ID: "n9" } });
  engine.put("c");
  engine.emit({ Type: "container", Action: "start", Actor: { ID: "c" } });
  await settle();
  guard.uninstall();
  assert.deepEqual([...known.keys()], ["b", "c"]);
  assert.deepEqual([errors, away], [["engine: of a container", "engine: of an event"], []]);
});
