// Proves that the engine is asked for stopped containers at most once a second, again at once when one ends, and never
// waited for long; and that labels of their images are told from their own.

import assert from "node:assert/strict";
import { after, test } from "node:test";

import { StoppedContainers } from "../../../src/run/engine/stopped-containers.ts";
import { LIMITS } from "../../../src/base/limits.ts";
import { splitLabels } from "../../../src/container/facts/labels.ts";
import { LabelKeys } from "../../../src/container/facts/label-keys.ts";
import type { ContainerJson, ImageJson, ListedJson } from "../../../src/container/watch/engine-json.ts";
import { pause, waitFor } from "../../support/rig/wait.ts";

// Waiting for the next call does not keep a process alive.
const alive = setInterval(() => undefined, 1_000);
after(() => clearInterval(alive));

const IMAGE = `sha256:${"0".repeat(64)}`;
const BAKED = { baked: "x" };

function rig(listed: ListedJson[], isAway = false) {
  const calls = { lists: 0, inspects: 0 };
  const engine = {
    notRunningContainers: async () => {
      calls.lists++;
      if (isAway) throw new Error("away");
      const now = [...listed];
      // A test may do something meanwhile.
      await pause(20);
      return now;
    },
    container: async (id: string): Promise<ContainerJson | undefined> => {
      calls.inspects++;
      return await Promise.resolve({
        Id: id,
        Name: `/${id}`,
        State: { ExitCode: 137, FinishedAt: "2026-01-01T12:00:00Z" },
        Image: IMAGE,
        Config: { Labels: { a: "b", ...BAKED } },
        NetworkSettings: { Networks: { back: { Aliases: ["db"], DNSNames: ["db", "postgres"] } } },
      });
    },
  };
  return {
    calls,
    stopped: new StoppedContainers(
      { ...engine, image, labels: new LabelKeys(), silentMs: answering },
      (id) => id === "running-id",
    ),
  };
}

async function answering(): Promise<undefined> {
  return await Promise.resolve(undefined);
}

async function image(): Promise<ImageJson> {
  return await Promise.resolve({ Config: { Labels: BAKED } });
}

const DB: ListedJson = { Id: "db-id", Names: ["/db"], State: "exited" };

test("containers that are not running, with aliases, labels, exit code and time", async () => {
  const { stopped } = rig([DB, { Id: "web-id", State: "running" }, { Id: "running-id", State: "exited" }]);
  assert.deepEqual(await stopped.list(), [
    {
      id: "db-id",
      name: "db-id",
      state: "exited",
      exitCode: 137,
      atMs: Date.parse("2026-01-01T12:00:00Z"),
      labels: { a: "b" },
      imageLabels: { labels: BAKED, source: "known" },
      networks: [{ name: "back", aliases: ["db", "db", "postgres"] }],
    },
  ]);
});

test("many readers cause one call, and a container is inspected once until it ends again", async () => {
  const { calls, stopped } = rig([DB]);
  await Promise.all([stopped.list(), stopped.list()]);
  await stopped.list();
  assert.deepEqual(calls, { lists: 1, inspects: 1 });
  stopped.forget("other-id");
  await stopped.list();
  assert.deepEqual(calls, { lists: 2, inspects: 1 });
  stopped.forget("db-id");
  await stopped.list();
  assert.deepEqual(calls, { lists: 3, inspects: 2 });
});

test("one that ends while the engine lists the others is in the list", async () => {
  const listed: ListedJson[] = [];
  const { calls, stopped } = rig(listed);
  const list = stopped.list();
  await waitFor("the first call", () => (calls.lists === 1 ? true : undefined), { everyMs: 1 });
  listed.push(DB);
  stopped.forget("db-id");
  assert.deepEqual(
    (await list).map(({ id }) => id),
    ["db-id"],
  );
  assert.equal(calls.lists, 2);
});

test("a large number of stopped containers is inspected in part", async () => {
  const { calls, stopped } = rig(Array.from({ length: 100 }, (_, index) => ({ Id: `id-${index}`, State: "exited" })));
  assert.equal((await stopped.list()).length, 100);
  assert.equal(calls.inspects, 64);
});

test("labels of an image are told from a container's own, also without an inspect; of very many, all count as the image's", async () => {
  const labels = { a: "b", ...BAKED };
  const { stopped } = rig(
    Array.from({ length: LIMITS.stoppedContainers + 1 }, (_, index) => ({
      Id: `id-${index}`,
      State: "exited",
      Labels: labels,
      ImageID: IMAGE,
    })),
  );
  const all = await stopped.list();
  const own = all.map(({ labels: ownLabels, imageLabels }) => ({ labels: ownLabels, imageLabels }));
  const compared = splitLabels(labels, BAKED);
  assert.deepEqual(own.slice(0, -1), Array(LIMITS.stoppedContainers).fill(compared));
  assert.deepEqual(own.at(-1), splitLabels(labels, undefined));
});

test("while the engine hangs the list is the last one", async () => {
  let isHung = false;
  const engine = {
    notRunningContainers: async () =>
      await (isHung ? new Promise<ListedJson[]>(() => undefined) : Promise.resolve([DB])),
    container: async () => await Promise.resolve(undefined),
    image,
    labels: new LabelKeys(),
    silentMs: answering,
  };
  const stopped = new StoppedContainers(engine, () => false, 50);
  await waitFor("the list", async () => ((await stopped.list()).length === 1 ? true : undefined));
  isHung = true;
  stopped.forget("db-id");
  assert.deepEqual(
    (await stopped.list()).map(({ id }) => id),
    ["db-id"],
  );
});

test("of an engine that answers nothing at all the list is not waited for", async () => {
  const engine = {
    notRunningContainers: async () => await new Promise<ListedJson[]>(() => undefined),
    container: async () => await Promise.resolve(undefined),
    image,
    labels: new LabelKeys(),
    silentMs: async () => await Promise.resolve(1),
  };
  const forEver = 2 ** 31 - 1;
  assert.deepEqual(await new StoppedContainers(engine, () => false, forEver).list(), []);
});

test("while the engine is away nothing is known", async () => {
  const { stopped } = rig([DB], true);
  assert.deepEqual(await stopped.list(), []);
});
