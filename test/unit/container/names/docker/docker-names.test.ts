// Proves how a question is resolved to a name on a network: candidates, links before names, networks in order.

import assert from "node:assert/strict";
import { test } from "node:test";

import { FOUND, NameSearch } from "../../../../../src/base/model/visible-names.ts";
import { DEFAULT_BEHAVIOUR, type Behaviour, STRICT_BEHAVIOUR } from "../../../../../src/base/model/behaviour.ts";
import { DockerNames, type VisibleNetwork } from "../../../../../src/container/names/docker/docker-names.ts";
import { aNetwork, aQuery } from "../../../../support/scripted/builders.ts";
import { placed } from "../../../support/reply.ts";

const MODES = { strict: STRICT_BEHAVIOUR, better: DEFAULT_BEHAVIOUR };

const ONE = aNetwork({
  name: "one",
  members: [
    { names: ["Web", "shared"], ipv4: "10.1.0.1" },
    { names: ["mail.example.org"], ipv4: "10.1.0.2" },
    { names: ["both"], ipv4: "10.1.0.3" },
  ],
});
const TWO = aNetwork({
  name: "Two",
  members: [
    { names: ["db", "shared"], ipv4: "10.2.0.1" },
    { names: ["both"], ipv6: "fd11::2:3" },
  ],
});
const DOTTED = aNetwork({
  name: "br.net1",
  members: [{ names: ["c1.net1"], ipv4: "10.3.0.1" }],
});

for (const [mode, behaviour] of Object.entries(MODES)) {
  test(`${mode}: a name is found on any network, whatever its letter case`, () => {
    for (const name of ["web", "WEB", "Web"]) assert.equal(found(behaviour, name, [ONE, TWO]), "10.1.0.1");
    assert.equal(found(behaviour, "DB", [ONE, TWO]), "10.2.0.1");
    assert.equal(found(behaviour, "nobody", [ONE, TWO]), undefined);
  });

  test(`${mode}: a name on a network that the container is not on is not found`, () => {
    assert.equal(found(behaviour, "db", [ONE]), undefined);
    assert.equal(found(behaviour, "db.Two", [ONE]), undefined);
  });

  test(`${mode}: the first network with the name answers, and nothing is merged`, () => {
    assert.equal(found(behaviour, "shared", [ONE, TWO]), "10.1.0.1");
    assert.equal(found(behaviour, "shared", [TWO, ONE]), "10.2.0.1");
  });

  test(`${mode}: a network with the name in the other family only ends the search`, () => {
    assert.equal(found(behaviour, "both", [TWO, ONE]), "");
  });

  test(`${mode}: NAME.NETWORK selects that network`, () => {
    assert.equal(found(behaviour, "shared.Two", [ONE, TWO]), "10.2.0.1");
    assert.equal(found(behaviour, "WEB.one", [ONE, TWO]), "10.1.0.1");
    assert.equal(found(behaviour, "web.Two", [ONE, TWO]), undefined);
  });

  test(`${mode}: a dotted name is found whole, and followed by a network's name`, () => {
    assert.equal(found(behaviour, "mail.example.org", [ONE]), "10.1.0.2");
    assert.equal(found(behaviour, "mail.example.org.one", [ONE]), "10.1.0.2");
    assert.equal(found(behaviour, "mail", [ONE]), undefined);
    assert.equal(found(behaviour, "mail.one", [ONE]), undefined);
  });

  test(`${mode}: a dotted network name works as the suffix`, () => {
    assert.equal(found(behaviour, "c1.net1", [DOTTED]), "10.3.0.1");
    assert.equal(found(behaviour, "c1.net1.br.net1", [DOTTED]), "10.3.0.1");
    assert.equal(found(behaviour, "c1.net1.br.net1.google.com", [DOTTED]), undefined);
    assert.equal(found(behaviour, "c1.net1.net1", [DOTTED]), undefined);
  });

  test(`${mode}: only one network name is removed`, () => {
    assert.equal(found(behaviour, "web.one.one", [ONE]), undefined);
  });

  test(`${mode}: a network's name alone, and the root, are not found`, () => {
    for (const name of ["one", "."]) assert.equal(found(behaviour, name, [ONE]), undefined);
  });

  test(`${mode}: a whole name wins over NAME.NETWORK, and a short network name over a long one`, () => {
    const whole = aNetwork({ name: "x", members: [{ names: ["a.b.c"], ipv4: "10.9.0.1" }] });
    const shortTail = aNetwork({ name: "c", members: [{ names: ["a.b"], ipv4: "10.9.0.2" }] });
    const longTail = aNetwork({ name: "b.c", members: [{ names: ["a"], ipv4: "10.9.0.3" }] });
    assert.equal(found(behaviour, "a.b.c", [longTail, shortTail, whole]), "10.9.0.1");
    assert.equal(found(behaviour, "a.b.c", [longTail, shortTail]), "10.9.0.2");
    assert.equal(found(behaviour, "a.b.c", [longTail]), "10.9.0.3");
  });

  test(`${mode}: a link resolves to its target, alone and with the network's name`, () => {
    const linked = { ...ONE, links: aNetwork({ links: ["Web:Site"] }).links };
    for (const name of ["Site", "Site.one"]) assert.equal(found(behaviour, name, [linked]), "10.1.0.1", name);
  });

  test(`${mode}: a link applies to its own network only, and so does its target`, () => {
    const linked = { ...ONE, links: aNetwork({ links: ["db:store", "web:site"] }).links };
    assert.equal(found(behaviour, "store", [linked, TWO]), undefined);
    assert.equal(found(behaviour, "site.Two", [linked, TWO]), undefined);
    assert.equal(found(behaviour, "site", [ONE]), undefined);
  });

  test(`${mode}: links of all networks take precedence over names`, () => {
    const linked = { ...TWO, links: aNetwork({ links: ["db:web"] }).links };
    assert.equal(found(behaviour, "web", [ONE, linked]), "10.2.0.1");
  });

  test(`${mode}: a dangling link hides no name on another network`, () => {
    const linked = { ...TWO, links: aNetwork({ links: ["nosuch:web"] }).links };
    assert.equal(found(behaviour, "web", [linked, ONE]), "10.1.0.1");
  });

  test(`${mode}: isOnlyHere is set if the last hit needed a network's name`, () => {
    const search = new NameSearch(behaviour);
    for (const [name, expected] of [
      ["shared.Two", true],
      ["web", false],
      ["c1.net1", false],
    ] as const) {
      assert.ok(find(search, name, [ONE, TWO, DOTTED]) !== undefined);
      assert.equal(search.isLocalOnly, expected, name);
    }
  });
}

test("a network's name is case-sensitive in strict mode, and not in default mode", () => {
  for (const name of ["web.ONE", "db.two"]) assert.equal(found(STRICT_BEHAVIOUR, name, [ONE, TWO]), undefined, name);
  assert.equal(found(DEFAULT_BEHAVIOUR, "web.ONE", [ONE, TWO]), "10.1.0.1");
  assert.equal(found(DEFAULT_BEHAVIOUR, "db.two", [ONE, TWO]), "10.2.0.1");
});

test("a link's alias is case-sensitive in strict mode, and not in default mode", () => {
  const linked = { ...ONE, links: aNetwork({ links: ["Web:Site"] }).links };
  for (const name of ["site", "SITE.one"]) {
    assert.equal(found(STRICT_BEHAVIOUR, name, [linked]), undefined, name);
    assert.equal(found(DEFAULT_BEHAVIOUR, name, [linked]), "10.1.0.1", name);
  }
});

test("a dangling link hides the container with its alias as name in strict mode, and none in default mode", () => {
  const linked = { ...ONE, links: aNetwork({ links: ["nosuch:web"] }).links };
  for (const name of ["web", "web.one"]) {
    assert.equal(found(STRICT_BEHAVIOUR, name, [linked]), undefined, name);
    assert.equal(found(DEFAULT_BEHAVIOUR, name, [linked]), "10.1.0.1", name);
  }
  for (const name of ["WEB", "Web.one"]) assert.equal(found(STRICT_BEHAVIOUR, name, [linked]), "10.1.0.1", name);
});

test("an alias that no query can spell is ignored", () => {
  const linked = { ...ONE, links: aNetwork({ links: ["web:a b", "web:site"] }).links };
  assert.equal(found(STRICT_BEHAVIOUR, "site", [linked]), "10.1.0.1");
});

test("names on a network whose own name no query can spell are found as whole names only", () => {
  const odd = aNetwork({ name: "a b", members: [{ names: ["web"], ipv4: "10.4.0.1" }] });
  assert.equal(found(DEFAULT_BEHAVIOUR, "web", [odd]), "10.4.0.1");
  assert.equal(found(DEFAULT_BEHAVIOUR, "web.one", [odd]), undefined);
});

const APART = {
  ...aNetwork({
    name: "apart",
    members: [
      { names: ["db", "shared"], ipv4: "10.5.0.1" },
      { names: ["lone", "many"], ipv4: "10.5.0.2" },
      { names: ["self"], ipv4: "10.5.0.3" },
    ],
    links: ["db:store"],
  }),
  apartBy: "enable_icc=false",
};
const OPEN = aNetwork({
  name: "open",
  members: [
    { names: ["db", "many"], ipv4: "10.6.0.1" },
    { names: ["other"], ipv4: "10.6.0.2" },
    { names: ["self"], ipv4: "10.6.0.3" },
    { names: ["lone", "shared"], ipv4: "10.6.0.4" },
  ],
});

test("a network that keeps its containers apart gives way to another one that has the same container, only in default mode", () => {
  for (const name of ["db", "DB", "store"]) {
    assert.equal(found(DEFAULT_BEHAVIOUR, name, [APART, OPEN]), "10.6.0.1", name);
    assert.equal(found(STRICT_BEHAVIOUR, name, [APART, OPEN]), "10.5.0.1", name);
    assert.equal(found(DEFAULT_BEHAVIOUR, name, [APART]), "10.5.0.1", name);
  }
  assert.equal(found(DEFAULT_BEHAVIOUR, "db", [OPEN, APART]), "10.6.0.1");
  assert.equal(found(DEFAULT_BEHAVIOUR, "db", [APART, { ...OPEN, apartBy: "macvlan_mode=private" }]), "10.5.0.1");
});

test("it keeps its answer where its name is asked for, where another container has the name elsewhere, and for the client itself", () => {
  for (const [name, address] of [
    ["db.apart", "10.5.0.1"],
    ["store.apart", "10.5.0.1"],
    ["lone", "10.5.0.2"],
    ["shared", "10.5.0.1"],
    ["many", "10.5.0.2"],
  ] as const)
    assert.equal(found(DEFAULT_BEHAVIOUR, name, [APART, OPEN]), address, name);
  const asker = { id: "container-2", project: undefined };
  assert.equal(found(DEFAULT_BEHAVIOUR, "self", [APART, OPEN], asker), "10.5.0.3");
  assert.equal(found(DEFAULT_BEHAVIOUR, "self", [APART, OPEN]), "10.6.0.3");
});

test("the trace names the option, and the network that is answered instead", () => {
  const traced = (name: string, behaviour: Behaviour): string[] => {
    const search = new NameSearch(behaviour);
    const lines: string[] = [];
    search.trace = { record: (_, why) => void lines.push(why) };
    find(search, name, [APART, OPEN]);
    return lines;
  };
  const why = '; containers on "apart" cannot reach each other (enable_icc=false)';
  assert.equal(
    traced("db", DEFAULT_BEHAVIOUR).at(-1),
    `"db" is a name on "apart"${why}, so its addresses on "open" are answered`,
  );
  assert.equal(
    traced("store", DEFAULT_BEHAVIOUR).at(-1),
    `"store" is a link on "apart" to "db"${why}, so its addresses on "open" are answered`,
  );
  assert.equal(traced("db", STRICT_BEHAVIOUR).at(-1), `"db" is a name on "apart"${why}`);
  assert.equal(traced("lone", DEFAULT_BEHAVIOUR).at(-1), `"lone" is a name on "apart"${why}`);
});

// The IPv4 addresses; empty if the name has none.
function found(
  behaviour: Behaviour,
  name: string,
  networks: readonly VisibleNetwork[],
  asker?: ConstructorParameters<typeof DockerNames>[1],
): string | undefined {
  return find(new NameSearch(behaviour), name, networks, asker);
}

function find(
  search: NameSearch,
  name: string,
  networks: readonly VisibleNetwork[],
  asker?: ConstructorParameters<typeof DockerNames>[1],
): string | undefined {
  const { question } = placed(aQuery({ name }));
  return new DockerNames(networks, asker).find(question, search) === FOUND ? search.addresses.v4.join(".") : undefined;
}
