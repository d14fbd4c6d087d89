// Proves which names are reported as misleading, and for which clients: those that have resolved the name, lately for a
// paused container, and not since its move for one that has moved.

import assert from "node:assert/strict";
import { test } from "node:test";

import type { MisleadingName } from "../../../src/api/failures.ts";
import type { QueryRecord } from "../../../src/base/model/query-record.ts";
import type { ContainerFact } from "../../../src/container/facts/fact.ts";
import type { FormerAddress } from "../../../src/container/registry/former-addresses.ts";
import { runningContainer, KnownContainers } from "../../../src/control/causes/known-container.ts";
import { movesOf } from "../../../src/control/causes/container-causes.ts";
import { LastAnswers, type Situations } from "../../../src/control/situation/situations.ts";
import { misleadingNames } from "../../../src/control/failures/misleading-names.ts";
import { aContainer, anEndpoint } from "../../support/scripted/builders.ts";

const MINUTE_MS = 60_000;

function on(id: string, parts: Partial<ContainerFact> = {}, names: readonly string[] = [id]): ContainerFact {
  const endpoint = anEndpoint({ networkName: "back", names, ipv4: "172.20.0.5", ipv6: undefined });
  return aContainer({ id, name: id, endpoints: [endpoint], ...parts });
}

/** What each client got an address for, and how many milliseconds ago. */
type Answered = Readonly<Record<string, readonly (readonly [name: string, agoMs: number, rcode?: number])[]>>;

async function misleading(
  facts: readonly ContainerFact[],
  answered: Answered,
  former: readonly FormerAddress[] = [],
  containerId?: string,
): Promise<MisleadingName[]> {
  const nowMs = performance.now();
  const histories = function* (id?: string): Generator<{ since: () => Iterable<Partial<QueryRecord>> }> {
    const records = (answered[id ?? ""] ?? []).map(([name, agoMs, rcode = 0]) => {
      return { name, rcode, answers: rcode === 0 ? 1 : 0, atMs: nowMs - agoMs };
    });
    yield { since: () => records };
  };
  const ports = { containers: { facts: new Map() } };
  const known = new KnownContainers(facts.map((fact) => runningContainer(fact)));
  const answers = new LastAnswers({ histories } as never);
  return await misleadingNames(
    ports as never,
    { known, answers, moves: movesOf(former, known), prefersOwnProject: false } as unknown as Situations,
    (id) => containerId === undefined || id === containerId,
  );
}

test("a paused container misleads those that have resolved it within five minutes", async () => {
  const facts = [on("db", { isPaused: true }), on("api"), on("late"), on("failing"), on("silent")];
  const [only, ...others] = await misleading(facts, {
    api: [["db", MINUTE_MS]],
    late: [["db", 6 * MINUTE_MS]],
    failing: [["db", MINUTE_MS, 3]],
  });
  assert.deepEqual(others, []);
  assert.deepEqual([only?.name, only?.network, only?.containers, only?.clients], ["db", "back", ["db"], ["api"]]);
  assert.deepEqual([only?.cause.code, only?.cause.fix], ["paused", "docker unpause db"]);
});

test("a container that has moved misleads those that have not queried it since", async () => {
  const former = {
    ...{
      containerId: "db",
      container: "db",
      compose: undefined,
      networkName: "back",
      names: ["db"],
      isComposed: false,
    },
    ...{ address: "172.20.0.4", atMs: performance.now() - MINUTE_MS },
  };
  const facts = [on("db", {}, ["db", "postgres"]), on("api"), on("fresh")];
  const answered: Answered = {
    api: [["postgres.back", 2 * MINUTE_MS]],
    fresh: [
      ["db", 2 * MINUTE_MS],
      ["DB", 1_000],
    ],
  };
  const [only, ...others] = await misleading(facts, answered, [former]);
  assert.deepEqual(others, []);
  assert.deepEqual([only?.name, only?.clients, only?.cause.code], ["postgres", ["api"], "moved"]);
  assert.equal(only?.cause.fix, "docker restart api");
  assert.match(only?.cause.sentence ?? "", /from 172\.20\.0\.4 to 172\.20\.0\.5/);
  assert.deepEqual(await misleading(facts, answered, [former], "fresh"), []);
  assert.deepEqual(await misleading(facts, answered, [{ ...former, address: "172.20.0.5" }]), []);
  assert.deepEqual(await misleading(facts, answered, [{ ...former, networkName: "front" }]), []);
  assert.deepEqual(await misleading(facts, answered, [{ ...former, container: "gone" }]), []);
});
