// Proves what a word of a user stands for: a name, an ID, a service; and that it is refused where one container is meant and
// several fit.

import assert from "node:assert/strict";
import { test } from "node:test";

import {
  type NamedContainer,
  containerCalled,
  containersCalled,
  inProject,
} from "../../../../src/base/model/container-choice.ts";

const ID = "db0123456789".padEnd(64, "a");

function aContainer(
  id: string,
  name: string,
  project: string | null = null,
  service: string | null = null,
): NamedContainer {
  return { id: id.padEnd(64, "0"), name, project, service };
}

const ALL: readonly NamedContainer[] = [
  aContainer("3", "shop-api-2", "shop", "api"),
  aContainer("2", "shop-api-1", "shop", "api"),
  aContainer("4", "shop-db-1", "shop", "db"),
  aContainer("5", "other-db-1", "other", "db"),
  aContainer("6", "web", "other", "front"),
  aContainer("7", "shop-web-1", "shop", "web"),
  { ...aContainer("", "plain"), id: ID },
  aContainer("8", "twin-1"),
  aContainer("88", "twin-2"),
];

function called(word: string, project?: string): string[] {
  return containersCalled(ALL, word, project).map(({ name }) => name);
}

test("an exact name wins over a service, an exact ID over everything but a name", () => {
  assert.deepEqual(called("web"), ["web"]);
  assert.deepEqual(called(ID), ["plain"]);
  assert.deepEqual(called(ID.slice(0, 12)), ["plain"]);
});

test("a service wins over the beginning of an ID, which may be a word", () => {
  assert.deepEqual(called("db"), ["other-db-1", "shop-db-1"]);
  assert.deepEqual(called("db0"), ["plain"]);
});

test("containers of a service are in the order of their names; a project narrows", () => {
  assert.deepEqual(called("api"), ["shop-api-1", "shop-api-2"]);
  assert.deepEqual(called("db", "shop"), ["shop-db-1"]);
  assert.deepEqual(called("web", "shop"), ["shop-web-1"]);
});

test("where one container is meant, several are refused with their names", () => {
  assert.equal(containerCalled(ALL, "front").name, "web");
  assert.throws(() => containerCalled(ALL, "api"), { code: "AMBIGUOUS_CONTAINER", message: /shop-api-1, shop-api-2$/ });
  assert.throws(() => containersCalled(ALL, "8"), { code: "AMBIGUOUS_CONTAINER", message: /twin-1, twin-2$/ });
});

test("a list in an error is bounded", () => {
  const many = Array.from({ length: 1_000 }, (_, index) => aContainer(`${index}`, `n-${index}`, "p", "api"));
  assert.throws(() => containerCalled(many, "api"), { message: /^"api" is 1000 containers: .{20,100} and 992 more$/ });
});

test("an unknown word or project is answered with the nearest one", () => {
  assert.throws(() => called("wbe"), { code: "NO_SUCH_CONTAINER", message: /did you mean "web"\?$/ });
  assert.throws(() => called("plain", "shop"), {
    message: 'No running container or service named "plain" in project "shop"',
  });
  assert.throws(() => called(""), { code: "NO_SUCH_CONTAINER" });
  assert.throws(() => inProject(ALL, "shpo"), { code: "NO_SUCH_PROJECT", message: /did you mean "shop"\?$/ });
  assert.equal(inProject(ALL, undefined).length, ALL.length);
});
