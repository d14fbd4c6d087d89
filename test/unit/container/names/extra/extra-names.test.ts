// Proves what extra names and wildcards of containers resolve to, in which order, and that they go with their containers.

import assert from "node:assert/strict";
import { test } from "node:test";

import { type Behaviour, DEFAULT_BEHAVIOUR, STRICT_BEHAVIOUR } from "../../../../../src/base/model/behaviour.ts";
import { LABEL_DEFAULTS } from "../../../../../src/base/model/label-policy.ts";
import type { Directory } from "../../../../../src/container/registry/directory.ts";
import type { ContainerFact } from "../../../../../src/container/facts/fact.ts";
import { TYPE, aContainer, anEndpoint } from "../../../../support/scripted/builders.ts";
import { declaredIn } from "../../../../support/scripted/declarations.ts";
import { aDirectory, answerTo, succeed } from "../../../support/names.ts";

function directoryOf(...containers: readonly ContainerFact[]): Directory {
  return aDirectory(containers, { networks: ["one", "two"] });
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
  const trusting = succeed(untrusting, { labels: { ...LABEL_DEFAULTS, trustsImages: true } });
  assert.equal(ask(trusting, "api.shop.test"), "172.20.0.5", "the operator trusts images");
  assert.equal(ask(succeed(trusting), "api.shop.test"), "forwarded");
});

test("container names come first, then declared names, then names of labels, then wildcards", () => {
  const directory = directoryOf(
    named("web", "172.20.0.4", ["all.one.test"]),
    named("proxy", "172.20.0.2", ["*.one.test"], "all.one.test label.one.test declared.one.test"),
  );
  directory.names.declared.set(declaredIn("records: {declared.one.test: 10.0.0.1, all.one.test: 10.0.0.1}"));
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
  const directory = directoryOf(named("proxy", "172.20.0.2", ["*.shop.test"], "api.test"));
  for (const name of ["a.shop.test", "api.test"]) {
    assert.equal(ask(directory, name, TYPE.A, STRICT_BEHAVIOUR), "forwarded", name);
  }
  for (const behaviour of [STRICT_BEHAVIOUR, DEFAULT_BEHAVIOUR]) {
    assert.equal(ask(directory, "*.shop.test", TYPE.A, behaviour), "172.20.0.2");
  }
});
