// Proves that names of containers that are not running stay local, as chosen, only on their networks, after all other sources,
// and within limits of number and time.

import assert from "node:assert/strict";
import { afterEach, mock, test } from "node:test";

import { LIMITS } from "../../../src/base/limits.ts";
import { BadSettings } from "../../../src/config/bad-settings.ts";
import { mergeSettings } from "../../../src/config/merge-settings.ts";
import type { PlacedNames } from "../../../src/container/names/name-sources.ts";
import { sharedDeclarations } from "../../support/scripted/declarations.ts";
import { LABEL_DEFAULTS, type LabelPolicy } from "../../../src/base/model/name-choices.ts";
import type { NetworkName } from "../../../src/container/names/source/name-source.ts";
import type { Directory } from "../../../src/container/registry/directory.ts";
import type { ContainerFact, StoppedFact } from "../../../src/container/facts/fact.ts";
import { stoppedFact } from "../../../src/container/watch/translate.ts";
import type { StoppedPolicy } from "../../../src/features/stopped/feature.ts";
import { KEPT_MS, NAMES_MAX, StoppedNames, open } from "../../../src/features/stopped/stopped.ts";
import { TYPE, aContainer, anEndpoint } from "../../support/scripted/builders.ts";
import { tryAnyLabels } from "../../fuzz/any-labels.ts";
import { composed, portsOf } from "../../unit/support/control-ports.ts";
import { rowsOf } from "../../unit/support/listed-names.ts";
import { type DirectoryParts, aDirectory, answerTo, succeed } from "../../unit/support/names.ts";

const LABEL = "io.dns11.stopped";

afterEach(() => mock.timers.reset());

function container(name: string, ipv4: string, parts: Partial<ContainerFact> = {}): ContainerFact {
  const endpoints = [anEndpoint({ names: [name, "db.corp.test"], ipv4, ipv6: `fd00::${ipv4.split(".")[3]}` })];
  return aContainer({ id: name, name, endpoints, ...parts });
}

function stopped(name: string, parts: Partial<StoppedFact> = {}): StoppedFact {
  return {
    id: name,
    name,
    sinceMs: Date.now(),
    labels: {},
    imageLabels: { labels: {}, source: "known" },
    networks: [{ name: "one", names: [name, "db.corp.test"] }],
    ...parts,
  };
}

const asker = aContainer({
  id: "asker",
  name: "asker",
  endpoints: [anEndpoint({ names: ["asker"], ipv4: "10.1.0.9" })],
});

function makeNames(
  setting: StoppedPolicy | undefined,
  labels: LabelPolicy = LABEL_DEFAULTS,
): NonNullable<DirectoryParts["makeNames"]> {
  return (context) => [{ place: "stopped", source: new StoppedNames({ stopped: setting, labels }, context) }];
}

function directoryOf(setting: StoppedPolicy | undefined, ...containers: readonly ContainerFact[]): Directory {
  return aDirectory([asker, ...containers], { makeNames: makeNames(setting), networks: ["one", "two"] });
}

/** As the follower does when a container stops. */
function stop(directory: Directory, fact: StoppedFact): void {
  directory.putStopped(fact);
  directory.removeContainer(fact.id);
}

function ask(directory: Directory, name: string, type?: number, client = asker): string {
  return answerTo(directory.viewOf(client), name, type);
}

test("a container that stops has no address, but its names stay local, as the setting says", () => {
  for (const [setting, a, aaaa, txt] of [
    ["nxdomain", "NXDOMAIN", "NXDOMAIN", "NXDOMAIN"],
    ["empty", "empty", "empty", "empty"],
    ["last-address", "10.1.0.2", "fd00:0000:0000:0000:0000:0000:0000:0002", "empty"],
    ["forward", "forwarded", "forwarded", "forwarded"],
    [undefined, "forwarded", "forwarded", "forwarded"],
  ] as const) {
    const directory = directoryOf(setting, container("db", "10.1.0.2"));
    stop(directory, stopped("db"));
    for (const name of ["db", "DB", "db.one", "db.corp.test"]) {
      assert.equal(ask(directory, name), a, `${setting} ${name}`);
      assert.equal(ask(directory, name, TYPE.AAAA), aaaa, `${setting} ${name}`);
      assert.equal(ask(directory, name, TYPE.TXT), txt, `${setting} ${name}`);
    }
    for (const name of ["db.two", "x.db", "corp.test"]) assert.equal(ask(directory, name), "forwarded", name);
    const far = aContainer({ id: "far", endpoints: [anEndpoint({ networkName: "two", names: ["far"] })] });
    assert.equal(ask(directory, "db", TYPE.A, far), "forwarded", "on another network");
    directory.putContainer(container("db", "10.1.0.7"));
    assert.equal(ask(directory, "db"), "10.1.0.7", "it runs again");
    directory.removeContainer("db");
    assert.equal(ask(directory, "db"), "forwarded", "it is removed");
  }
});

test("one that was created, or stopped before dns11 started, has no last address; a removed one no name", () => {
  const directory = directoryOf("last-address");
  directory.putStopped(stopped("db"));
  assert.equal(ask(directory, "db"), "empty");
  directory.removeStopped("db");
  assert.equal(ask(directory, "db"), "forwarded");
});

test("what other sources would call it stays local, too, wildcards on its networks alone", () => {
  const isCalled = (...names: readonly NetworkName[]): NonNullable<DirectoryParts["makeNames"]> => {
    const namesOf = ({ networks }: StoppedFact): readonly NetworkName[] =>
      names.filter(({ network }) => networks.some(({ name }) => name === network));
    return (context) => [
      { place: "projects", source: { namesFor: () => undefined, namesOf } },
      ...makeNames("nxdomain")(context),
    ];
  };
  const onOne = (name: string): NetworkName => ({ network: "one", name });
  const names = ["store.shop", "*.apps.test", "*.two.apps.test"].map(onOne);
  const directory = aDirectory([asker], {
    networks: ["one", "two"],
    makeNames: isCalled(...names, { network: "two", name: "*.far.test" }),
  });
  directory.putStopped(stopped("db", { networks: ["one", "two"].map((name) => ({ name, names: ["db"] })) }));
  for (const name of ["Store.shop", "any.apps.test", "a.two.apps.test"])
    assert.equal(ask(directory, name), "NXDOMAIN", name);
  for (const name of ["other.shop", "apps.test", "a.far.test"]) assert.equal(ask(directory, name), "forwarded", name);
  const next = succeed(directory, {}, { makeNames: isCalled(onOne("other.shop")) });
  for (const name of ["store.shop", "any.apps.test"]) assert.equal(ask(next, name), "forwarded", name);
  assert.equal(ask(next, "other.shop"), "NXDOMAIN");
  next.removeStopped("db");
  assert.equal(ask(next, "other.shop"), "forwarded");
  directory.removeStopped("db");
  assert.equal(ask(directory, "any.apps.test"), "forwarded");
});

test("whoever else has the name comes first: another container, a declared name", async () => {
  const containers = [container("db", "10.1.0.2"), container("other", "10.1.0.3")];
  const directory = directoryOf("nxdomain", ...containers);
  stop(directory, stopped("db"));
  assert.equal(ask(directory, "db.corp.test"), "10.1.0.3");
  assert.equal(ask(directory, "db"), "NXDOMAIN");
  const shared = await sharedDeclarations("records: {db: 192.0.2.1}");
  const declaring = aDirectory([asker, ...containers], { makeNames: makeNames("nxdomain"), shared });
  stop(declaring, stopped("db"));
  assert.equal(ask(declaring, "db"), "192.0.2.1");
});

test("a last address that another container has by now is not told", () => {
  const directory = directoryOf("last-address", container("db", "10.1.0.2"));
  stop(directory, stopped("db"));
  directory.putContainer(
    aContainer({ id: "next", name: "next", endpoints: [anEndpoint({ names: ["next"], ipv4: "10.1.0.2" })] }),
  );
  assert.equal(ask(directory, "db"), "empty");
  directory.removeContainer("next");
  assert.equal(ask(directory, "db"), "10.1.0.2");
});

test("a label of the creator chooses for one container; of several stopped ones what says most counts", () => {
  const directory = directoryOf("nxdomain", container("db", "10.1.0.2"), container("db2", "10.1.0.3"));
  stop(directory, stopped("db", { labels: { [LABEL]: "last-address" } }));
  stop(directory, stopped("db2"));
  assert.equal(ask(directory, "db.corp.test"), "10.1.0.2");
  assert.equal(ask(directory, "db2"), "NXDOMAIN");
  const image = { imageLabels: { labels: { [LABEL]: "forward" }, source: "known" as const } };
  directory.putStopped(stopped("db3", image));
  assert.equal(ask(directory, "db3"), "NXDOMAIN");
  const labels = { ...LABEL_DEFAULTS, trustsImages: true };
  const trusting = succeed(directory, { labels }, { makeNames: makeNames("nxdomain", labels) });
  assert.equal(ask(trusting, "db3"), "forwarded");
  assert.equal(ask(trusting, "db.corp.test"), "10.1.0.2");
  const bad = container("db", "10.1.0.2", { labels: { [LABEL]: "yes" } });
  assert.match(
    open().labelWarnings?.(bad, bad.labels, LABEL_DEFAULTS)[0] ?? "",
    /^invalid label io\.dns11\.stopped="yes": use nxdomain, empty, last-address, forward; the label is ignored$/,
  );
});

test("names of stopped containers are limited in number and time", () => {
  mock.timers.enable({ apis: ["Date"], now: 1_000_000_000_000 });
  const directory = directoryOf("nxdomain");
  const names = Array.from({ length: NAMES_MAX + 1 }, (_, index) => `n${index}`);
  directory.putStopped(stopped("first", { networks: [{ name: "one", names }] }));
  assert.equal(ask(directory, `n${NAMES_MAX - 1}`), "NXDOMAIN");
  assert.equal(ask(directory, `n${NAMES_MAX}`), "forwarded");
  for (let number = 0; number < LIMITS.stoppedContainers; number++)
    directory.putStopped(stopped(`c${number}`, { sinceMs: Date.now() + 1 + number }));
  assert.equal([...(directory.names.stoppedIds ?? [])].length, LIMITS.stoppedContainers);
  assert.equal(ask(directory, "n0"), "forwarded", "the one that ended first is forgotten");
  assert.equal(ask(directory, "c0"), "NXDOMAIN");
  mock.timers.setTime(Date.now() + KEPT_MS + 1);
  assert.equal(ask(directory, "c0"), "forwarded");
  assert.equal(ask(directory, "c255"), "NXDOMAIN");
});

test("the engine's words about a container that is not running", () => {
  const json = {
    Id: "0123456789abcdef",
    Name: "/db",
    Created: "2026-01-01T00:00:00Z",
    State: { Running: false, FinishedAt: "0001-01-01T00:00:00Z" },
    Config: { Hostname: "host" },
    NetworkSettings: { Networks: { one: { Aliases: ["alias"], DNSNames: null }, bridge: {} } },
  };
  const { sinceMs, networks } = stoppedFact(json, { labels: {}, imageLabels: { labels: {}, source: "known" } });
  assert.equal(sinceMs, Date.parse("2026-01-01T00:00:00Z"));
  assert.deepEqual(networks, [{ name: "one", names: ["db", "alias", "0123456789ab", "host"] }]);
});

test("what happens while a directory with other settings is filled is not lost", () => {
  const before = directoryOf("nxdomain");
  before.putStopped(stopped("kept"));
  before.putStopped(stopped("started"));
  const next = aDirectory([], { networks: [], makeNames: makeNames("empty") });
  let step = 0;
  for (const _ of next.catchUp(before)) {
    if (step++ !== 3) continue;
    before.putContainer(aContainer({ id: "started", name: "started", endpoints: [] }));
    before.putStopped(stopped("later"));
  }
  before.removeStopped("later");
  for (const _ of next.catchUp(before));
  assert.deepEqual([...next.catchUp(before)], [], "both know the same");
  next.succeed(before);
  assert.equal(ask(next, "kept"), "empty");
  assert.deepEqual([ask(next, "started"), ask(next, "later")], ["forwarded", "forwarded"]);
  assert.deepEqual([...(next.names.stoppedIds ?? [])], ["kept"]);
});

test("strict mode keeps no names, and has no such choice", () => {
  const merge = (values: object): ReturnType<typeof mergeSettings> =>
    mergeSettings([{ source: "flag", values, where: (key) => `--${key}` }]);
  const idsWith = (values: object): unknown =>
    aDirectory([], {
      makeNames: (context) => [open().makeNames?.(merge(values), context) as PlacedNames],
    }).names.stoppedIds;
  assert.deepEqual(idsWith({}), new Set());
  assert.equal(idsWith({ strict: true }), undefined);
  assert.throws(
    () => merge({ strict: true, stopped: "empty" }),
    (error) => error instanceof BadSettings && error.lines.join().startsWith("--stopped: has no effect with strict"),
  );
});

test("a stopped container's name is not running, with its last addresses where the setting keeps them", async () => {
  const [web, api] = [composed("shop", "web", "a", 2), composed("shop", "api", "ab", 3)];
  const ended = {
    id: api.id,
    name: api.name,
    labels: api.labels,
    imageLabels: api.imageLabels,
    networks: [{ name: "a", aliases: [] }],
    state: "exited",
    exitCode: 0,
    atMs: 0,
  };
  const kept = {
    id: api.id,
    name: api.name,
    labels: api.labels,
    imageLabels: api.imageLabels,
    sinceMs: Date.now(),
    networks: [{ name: "a", names: ["api"] }],
  };
  const withSetting = async (setting: "nxdomain" | "last-address", declared = ""): Promise<string[]> => {
    const shared = await sharedDeclarations(declared);
    const prepare = (directory: Directory): void => {
      directory.putContainer(api);
      directory.removeContainer(api.id);
      directory.putStopped(kept);
    };
    return await rowsOf(portsOf([web], [ended], { makeNames: makeNames(setting), prepare, shared }), web, "api");
  };
  assert.deepEqual(await withSetting("nxdomain"), ["api: not-running from stopped containers on a to shop-api-1"]);
  assert.match((await withSetting("last-address")).join("\n"), /^api: not-running from stopped containers on a to /);
  assert.deepEqual(
    await withSetting("nxdomain", "records: { api: 10.9.9.9 }"),
    [
      "api: shadowed declared names from docker on a to shop-api-1",
      "api: resolves from declared for everybody to 10.9.9.9",
    ],
    "another source answers",
  );
});

test("labels and aliases of any text", () => tryAnyLabels({ ...open(), makeNames: makeNames("nxdomain") }));
