// Proves what extra names and wildcards of containers resolve to, in which order, and that they go with their containers.

import assert from "node:assert/strict";
import { test } from "node:test";

import { type Behaviour, DEFAULT_BEHAVIOUR, STRICT_BEHAVIOUR } from "../../../src/base/model/behaviour.ts";
import { NAME_CHOICES_DEFAULTS, LABEL_DEFAULTS } from "../../../src/base/model/name-choices.ts";
import type { Directory } from "../../../src/container/registry/directory.ts";
import type { ContainerFact } from "../../../src/container/facts/fact.ts";
import type { NameContext, PlacedNames } from "../../../src/container/names/name-sources.ts";
import { ExtraNames, open } from "../../../src/features/extra-names/extra-names.ts";
import { TYPE, aClient, aContainer, aQuery, anEndpoint } from "../../support/scripted/builders.ts";
import { sharedDeclarations } from "../../support/scripted/declarations.ts";
import { tryAnyLabels } from "../../fuzz/any-labels.ts";
import { composed, portsOf } from "../../unit/support/control-ports.ts";
import { replyOnce } from "../../unit/support/reply.ts";
import { rowsOf } from "../../unit/support/listed-names.ts";
import { aDirectory, answerTo, succeed } from "../../unit/support/names.ts";

function directoryOf(...containers: readonly ContainerFact[]): Directory {
  return aDirectory(containers, { networks: ["one", "two"], makeNames });
}

function makeNames({ networkOf }: Pick<NameContext, "networkOf">): readonly PlacedNames[] {
  return [{ place: "extra-names", source: new ExtraNames(networkOf) }];
}

function named(id: string, ipv4: string, aliases: readonly string[], label = "", networkName = "one"): ContainerFact {
  const labels = label === "" ? {} : { "io.dns11.names": label };
  return aContainer({ id, name: id, labels, endpoints: [anEndpoint({ names: [id, ...aliases], ipv4, networkName })] });
}

const ASKER = aContainer({
  id: "asker",
  name: "asker",
  endpoints: [anEndpoint({ names: ["asker"], ipv4: "172.20.0.9" })],
});

function ask(directory: Directory, name: string, type?: number, behaviour?: Behaviour): string {
  return answerTo(directory.viewOf(ASKER), name, type, behaviour);
}

test("an alias *.x stands for every name below x, for its neighbours", () => {
  const directory = directoryOf(
    named("proxy", "172.20.0.2", ["*.shop.test", "*.Deep.shop.test"]),
    named("proxy2", "172.20.0.3", ["*.shop.test"]),
    named("web", "172.20.0.4", ["web.shop.test"]),
    named("far", "172.21.0.2", ["*.far.test"], "", "two"),
  );
  assert.equal(ask(directory, "any.shop.test"), "172.20.0.2 172.20.0.3");
  assert.equal(ask(directory, "A.B.Shop.test"), "172.20.0.2 172.20.0.3");
  assert.equal(ask(directory, "a.deep.shop.test"), "172.20.0.2", "the longest wildcard");
  assert.equal(ask(directory, "deep.shop.test"), "172.20.0.2 172.20.0.3", "a wildcard does not match its own domain");
  assert.equal(ask(directory, "web.shop.test"), "172.20.0.4", "an exact name");
  assert.equal(ask(directory, "shop.test"), "forwarded");
  assert.equal(ask(directory, "notshop.test"), "forwarded");
  assert.equal(ask(directory, "x.far.test"), "forwarded", "another network");
  assert.equal(ask(directory, "any.shop.test", TYPE.AAAA), "empty");
  assert.equal(ask(directory, "any.shop.test", TYPE.HTTPS), "empty");
});

test("the label gives names and wildcards, if the container's creator set it", () => {
  const directory = directoryOf(named("proxy", "172.20.0.2", [], "api.shop.test, *.apps.test"));
  assert.equal(ask(directory, "API.shop.test"), "172.20.0.2");
  assert.equal(ask(directory, "x.apps.test"), "172.20.0.2");
  const { labels } = named("image", "172.20.0.5", [], "api.shop.test");
  const image = { ...named("image", "172.20.0.5", []), imageLabels: { labels, source: "known" as const } };
  const untrusting = directoryOf(image);
  assert.equal(ask(untrusting, "api.shop.test"), "forwarded");
  const trusting = succeed(untrusting, { labels: { ...LABEL_DEFAULTS, trustsImages: true } }, { makeNames });
  assert.equal(ask(trusting, "api.shop.test"), "172.20.0.5", "the operator trusts images");
  assert.equal(ask(succeed(trusting, {}, { makeNames }), "api.shop.test"), "forwarded");
});

test("container names come first, then declared names, then names of labels, then wildcards", async () => {
  const containers = [
    named("web", "172.20.0.4", ["all.one.test"]),
    named("proxy", "172.20.0.2", ["*.one.test"], "all.one.test label.one.test declared.one.test"),
  ];
  const shared = await sharedDeclarations("records: {declared.one.test: 10.0.0.1, all.one.test: 10.0.0.1}");
  const directory = aDirectory(containers, { networks: ["one", "two"], makeNames, shared });
  assert.equal(ask(directory, "all.one.test"), "172.20.0.4");
  assert.equal(ask(directory, "declared.one.test"), "10.0.0.1");
  assert.equal(ask(directory, "label.one.test"), "172.20.0.2");
  assert.equal(ask(directory, "web.one"), "172.20.0.4");
});

test("names change and go with their containers, also for views that exist", () => {
  const proxy = named("proxy", "172.20.0.2", ["*.shop.test"], "api.test");
  const directory = directoryOf(proxy);
  const view = directory.viewOf(ASKER);
  const resolve = (name: string): string => answerTo(view, name);
  assert.equal(resolve("a.shop.test"), "172.20.0.2");
  directory.putContainer(named("proxy", "172.20.0.7", ["*.other.test"], "api.test"));
  assert.equal(resolve("a.shop.test"), "forwarded");
  assert.equal(resolve("a.other.test"), "172.20.0.7");
  assert.equal(resolve("api.test"), "172.20.0.7");
  directory.removeContainer("proxy");
  for (const name of ["a.other.test", "api.test"]) assert.equal(resolve(name), "forwarded", name);
});

test("in strict mode an alias is compared literally, as in Docker", () => {
  const ofFeature = (context: NameContext): readonly PlacedNames[] => [
    open().makeNames?.({ isStrict: true } as never, context) as PlacedNames,
  ];
  const parts = { networks: ["one", "two"], makeNames: ofFeature };
  const directory = aDirectory([named("proxy", "172.20.0.2", ["*.shop.test"], "api.test")], parts);
  for (const name of ["a.shop.test", "api.test"]) {
    assert.equal(ask(directory, name, TYPE.A, STRICT_BEHAVIOUR), "forwarded", name);
  }
  for (const behaviour of [STRICT_BEHAVIOUR, DEFAULT_BEHAVIOUR]) {
    assert.equal(ask(directory, "*.shop.test", TYPE.A, behaviour), "172.20.0.2");
  }
});

test("of two networks, that which does not keep its containers apart is answered; the only one is, whatever it does", () => {
  const on = (id: string, last: number, networks: readonly string[]): ContainerFact => {
    const labels = id === "db" ? { "io.dns11.names": "more.test" } : {};
    const endpoints = networks.map((networkName) =>
      anEndpoint({ networkName, names: [id, "*.wild.test"], ipv4: `172.${networkName === "one" ? 20 : 21}.0.${last}` }),
    );
    return aContainer({ id, name: id, labels, endpoints });
  };
  const asker = aContainer({
    id: "client",
    endpoints: [...on("x", 9, ["one"]).endpoints, ...on("x", 9, ["two"]).endpoints],
  });
  for (const [networks, apartBy, expected] of [
    [["one", "two"], "enable_icc=false", "172.21.0.2"],
    [["one", "two"], undefined, "172.20.0.2"],
    [["one"], "enable_icc=false", "172.20.0.2"],
  ] as const) {
    const one = { name: "one", ...(apartBy !== undefined && { apartBy }) };
    const view = aDirectory([on("db", 2, networks)], { networks: [one, "two"], makeNames }).viewOf(asker);
    for (const name of ["more.test", "any.wild.test"]) assert.equal(answerTo(view, name), expected, name);
  }
});

test("a container that does not run has them on its networks", () => {
  const names = new ExtraNames(() => undefined);
  const networks = [
    { name: "one", names: ["proxy", "*.apps.test", "*.*.bad"] },
    { name: "two", names: ["proxy"] },
  ];
  const stopped = {
    id: "proxy",
    name: "proxy",
    sinceMs: 0,
    labels: {},
    imageLabels: { labels: {}, source: "known" as const },
    networks,
  };
  assert.deepEqual(names.namesOf(stopped, { "io.dns11.names": "more.test" }), [
    { network: "one", name: "more.test" },
    { network: "one", name: "*.apps.test" },
    { network: "two", name: "more.test" },
  ]);
});

test("a container with a label or an alias that is no name is warned of, and so is a label of an image", () => {
  const warningsOf = (fact: ContainerFact): readonly string[] =>
    (open().labelWarnings?.(fact, fact.labels, LABEL_DEFAULTS) ?? []).filter((each) => each !== undefined);
  assert.deepEqual(warningsOf(named("web", "172.20.0.4", ["*.ok.test"], "ok.test")), []);
  const [label, alias] = warningsOf(named("web", "172.20.0.4", ["*.com"], "a..b"));
  assert.match(label ?? "", /^invalid label io\.dns11\.names: "a\.\.b" is ignored/);
  assert.match(alias ?? "", /^invalid alias on network "one": "\*\.com" is ignored/);
  const imageLabels = { labels: { "io.dns11.names": "web.test" }, source: "known" as const };
  assert.match(warningsOf(aContainer({ imageLabels }))[0] ?? "", /^label io\.dns11\.names of the image is ignored/);
});

test("they are listed with their label or as wildcards", async () => {
  const api = composed("shop", "api", "ab", 3);
  const [endpoint = anEndpoint()] = api.endpoints;
  const proxy = {
    ...api,
    labels: { ...api.labels, "io.dns11.names": "extra.test *.apps.test web" },
    endpoints: [{ ...endpoint, names: [...endpoint.names, "*.shop.test"] }],
  };
  const web = composed("shop", "web", "a", 2);
  const rows = await rowsOf(
    portsOf([web, proxy], [], { makeNames }),
    web,
    ...["extra.test", "*.apps.test", "*.shop.test", "web"],
  );
  assert.deepEqual(rows, [
    "*.apps.test: resolves from wildcard on a to 10.0.0.3+shop-api-1",
    "*.shop.test: resolves from wildcard on a to 10.0.0.3+shop-api-1",
    "extra.test: resolves from label io.dns11.names on a to 10.0.0.3+shop-api-1",
    "web: resolves from docker on a to 10.0.0.2+shop-web-1",
    "web: shadowed network a from label io.dns11.names on a to 10.0.0.3+shop-api-1",
  ]);
});

test("health, TTL and the order of addresses are those of the containers that have the name", () => {
  const labels = { "io.dns11.ttl": "1m", "io.dns11.address-order": "sorted" };
  const all = [9, 2, 30].map((last) => ({ ...named(`web-${last}`, `172.20.0.${last}`, ["*.web.test"]), labels }));
  const unhealthy = { ...named("web-4", "172.20.0.4", ["*.web.test"]), labels, health: "unhealthy" as const };
  const choices = NAME_CHOICES_DEFAULTS;
  const directory = aDirectory([...all, unhealthy], { names: { health: "exclude", choices }, makeNames });
  const parts = { behaviour: DEFAULT_BEHAVIOUR, client: aClient(directory.viewOf(ASKER)) };
  const { answers } = replyOnce(aQuery({ name: "any.web.test", type: TYPE.A }), parts);
  assert.deepEqual(
    answers.map(({ data, ttl }) => [data[3], ttl]),
    [2, 9, 30].map((last) => [last, 60]),
  );
});

test("labels and aliases of any text", () => tryAnyLabels({ ...open(), makeNames }));
