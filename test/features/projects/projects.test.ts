// Proves SERVICE.PROJECT and whose short name wins: after Docker's own names, where `visible` allows, by the creator's labels
// only, and not in strict mode.

import assert from "node:assert/strict";
import { test } from "node:test";

import { type Behaviour, DEFAULT_BEHAVIOUR, STRICT_BEHAVIOUR } from "../../../src/base/model/behaviour.ts";
import { COMPOSE_LABEL } from "../../../src/base/model/compose.ts";
import { mergeSettings } from "../../../src/config/merge-settings.ts";
import { type VisibleSetting, LABEL_DEFAULTS } from "../../../src/base/model/name-choices.ts";
import type { Directory } from "../../../src/container/registry/directory.ts";
import type { ContainerFact, EndpointFact } from "../../../src/container/facts/fact.ts";
import type { PlacedNames } from "../../../src/container/names/name-sources.ts";
import { ProjectNames, open } from "../../../src/features/projects/projects.ts";
import { containersFindings } from "../../../src/features/projects/report.ts";
import { sharedDeclarations } from "../../support/scripted/declarations.ts";
import { TYPE, aContainer, anEndpoint } from "../../support/scripted/builders.ts";
import { tryAnyLabels } from "../../fuzz/any-labels.ts";
import { composed, portsOf } from "../../unit/support/control-ports.ts";
import { rowsOf } from "../../unit/support/listed-names.ts";
import { type DirectoryParts, aDirectory, answerTo, succeed } from "../../unit/support/names.ts";

function labelsOf(project: string, service: string): Record<string, string> {
  return { [COMPOSE_LABEL.project]: project, [COMPOSE_LABEL.service]: service };
}

/** A Compose container: its service is an alias on each of its networks. */
function member(
  project: string,
  service: string,
  addresses: Readonly<Record<string, string>>,
  parts: Partial<ContainerFact> = {},
): ContainerFact {
  const id = parts.id ?? `${project}-${service}-1`;
  const endpoints = Object.entries(addresses).map(([networkName, ipv4]): EndpointFact =>
    anEndpoint({ networkName, names: [id, service], ipv4 }),
  );
  return aContainer({ id, name: id, labels: labelsOf(project, service), endpoints, ...parts });
}

const shopDb = member("shop", "db", { shared: "10.1.0.2", shop_net: "10.2.0.2" });
const blogDb = member("blog", "db", { shared: "10.1.0.3" });
const shopWeb = member("shop", "web", { shared: "10.1.0.4", shop_net: "10.2.0.4" });
const farApi = member("far", "api", { far_net: "10.3.0.2" });
const stranger = aContainer({
  id: "stranger",
  name: "stranger",
  endpoints: [anEndpoint({ networkName: "shared", names: ["stranger"], ipv4: "10.1.0.9" })],
});
const ALL = [shopDb, blogDb, shopWeb, farApi, stranger];

function directoryOf(containers: readonly ContainerFact[], visible: VisibleSetting = "network"): Directory {
  const networks = ["shared", { name: "shop_net", project: "shop" }, { name: "far_net", project: "far" }];
  return aDirectory(containers, { networks, makeNames: makeNames(visible) });
}

function makeNames(visible: VisibleSetting): NonNullable<DirectoryParts["makeNames"]> {
  return ({ networkOf }) => [{ place: "projects", source: new ProjectNames(visible, networkOf) }];
}

const NO_IMAGE_LABELS = { labels: {}, source: "known" as const };

interface Asking {
  readonly name: string;
  readonly type?: number;
  readonly behaviour?: Behaviour;
}

function ask(directory: Directory, asker: ContainerFact, { name, type, behaviour }: Asking): string {
  return answerTo(directory.viewOf(asker), name, type, behaviour);
}

test("a service is found below its project, on the networks of the container", () => {
  const directory = directoryOf(ALL);
  assert.equal(ask(directory, stranger, { name: "db.shop" }), "10.1.0.2");
  assert.equal(ask(directory, stranger, { name: "DB.Blog" }), "10.1.0.3");
  assert.equal(ask(directory, stranger, { name: "web.shop", type: TYPE.AAAA }), "empty");
  assert.equal(ask(directory, stranger, { name: "web.shop", type: TYPE.TXT }), "empty");
  for (const name of ["nobody.shop", "shop", "x.db.shop", "api.far"])
    assert.equal(ask(directory, stranger, { name }), "forwarded", name);
});

test("replicas are all answered, and follow their containers; health applies as for the service", () => {
  const second = member("shop", "db", { shared: "10.1.0.7" }, { id: "shop-db-2", health: "unhealthy" });
  const before = directoryOf([...ALL, second]);
  assert.equal(ask(before, stranger, { name: "db.shop" }), "10.1.0.2 10.1.0.7");
  const directory = succeed(before, { health: "exclude" }, { makeNames: makeNames("network") });
  assert.equal(ask(directory, stranger, { name: "db.shop" }), "10.1.0.2");
  directory.removeContainer("shop-db-1");
  assert.equal(ask(directory, stranger, { name: "db.shop" }), "10.1.0.7");
  directory.removeContainer("shop-db-2");
  assert.equal(ask(directory, stranger, { name: "db.shop" }), "forwarded");
});

test("the setting visible adds networks, as for NAME.NETWORK", () => {
  assert.equal(ask(directoryOf(ALL, "all"), stranger, { name: "api.far" }), "10.3.0.2");
  assert.equal(ask(directoryOf(ALL, "project"), stranger, { name: "api.far" }), "forwarded");
  const inFar = member("far", "client", { shared: "10.1.0.8" });
  assert.equal(ask(directoryOf([...ALL, inFar], "project"), inFar, { name: "api.far" }), "10.3.0.2");
  assert.equal(ask(directoryOf([...ALL, inFar]), inFar, { name: "api.far" }), "forwarded");
});

test("Docker's own names come first, NAME.NETWORK included", () => {
  const named = aContainer({
    id: "named",
    name: "db.shop",
    endpoints: [anEndpoint({ networkName: "shared", names: ["db.shop"], ipv4: "10.1.0.50" })],
  });
  assert.equal(ask(directoryOf([...ALL, named]), stranger, { name: "db.shop" }), "10.1.0.50");
  const project = member("shared", "db", { shop_net: "10.2.0.51" });
  const client = member("x", "client", { shared: "10.1.0.8", shop_net: "10.2.0.8" });
  assert.equal(ask(directoryOf([...ALL, project, client]), client, { name: "db.shared" }), "10.1.0.2 10.1.0.3");
});

test("labels of an image claim no project, and docker compose run is no replica", () => {
  const image = { labels: {}, imageLabels: { labels: labelsOf("shop", "db"), source: "known" as const } };
  const claiming = member("shop", "db", { shared: "10.1.0.66" }, { id: "claiming", ...image });
  const oneOff = member("shop", "db", { shared: "10.1.0.67" }, { id: "one-off" });
  const labels = { ...oneOff.labels, [COMPOSE_LABEL.oneOff]: "True" };
  const directory = directoryOf([...ALL, claiming, { ...oneOff, labels }]);
  assert.equal(ask(directory, stranger, { name: "db.shop" }), "10.1.0.2");
  const trusting = succeed(
    directory,
    { labels: { ...LABEL_DEFAULTS, trustsImages: true } },
    { makeNames: makeNames("network") },
  );
  assert.equal(ask(trusting, stranger, { name: "db.shop" }), "10.1.0.2 10.1.0.66");
});

test("labels that are no names, and projects that exaggerate, harm nobody", () => {
  const long = "x".repeat(64);
  const odd = [long, "a..b", "", "*", "\u0000", "a b", `${"x.".repeat(126)}x`].flatMap((text, index) => [
    member(text, "db", { shared: `10.9.0.${index}` }, { id: `odd-${index}` }),
    member("shop", text, { shared: `10.9.1.${index}` }, { id: `odd-service-${index}` }),
  ]);
  const directory = directoryOf([...ALL, ...odd]);
  assert.equal(ask(directory, stranger, { name: "db.shop" }), "10.1.0.2");
  assert.equal(ask(directory, stranger, { name: "any.shop" }), "forwarded");
});

test("of a short name in two projects, a container gets that of its own project", () => {
  const directory = directoryOf(ALL);
  const blogClient = member("blog", "client", { shared: "10.1.0.8" });
  assert.equal(ask(directory, shopWeb, { name: "db" }), "10.1.0.2");
  assert.equal(ask(directory, blogClient, { name: "db" }), "10.1.0.3");
  assert.equal(ask(directory, stranger, { name: "db" }), "10.1.0.2 10.1.0.3");
  assert.equal(ask(directory, farApi, { name: "db" }), "forwarded");
  assert.equal(ask(directory, blogClient, { name: "db.shared" }), "10.1.0.2 10.1.0.3", "NAME.NETWORK is all of it");
  const off = { ...DEFAULT_BEHAVIOUR, prefersOwnProject: false };
  assert.equal(ask(directory, blogClient, { name: "db", behaviour: off }), "10.1.0.2 10.1.0.3");
  directory.removeContainer("blog-db-1");
  assert.equal(ask(directory, blogClient, { name: "db" }), "10.1.0.2", "only another project has it");
  directory.putContainer(blogDb);
  assert.equal(ask(directory, blogClient, { name: "db" }), "10.1.0.3");
});

test("an image's label chooses no project for its container", () => {
  const claim = { labels: {}, imageLabels: { labels: labelsOf("blog", "client"), source: "known" as const } };
  const claiming = member("blog", "client", { shared: "10.1.0.8" }, claim);
  assert.equal(ask(directoryOf(ALL), claiming, { name: "db" }), "10.1.0.2 10.1.0.3");
});

test("the setting turns it off, as strict mode does", () => {
  const context = { networkOf: () => undefined } as never;
  const namesWith = (values: object): unknown => {
    const made = open().makeNames?.(mergeSettings([{ source: "flag", values, where: String }]), context);
    return (made as PlacedNames).source.namesFor(stranger, undefined);
  };
  assert.notEqual(namesWith({}), undefined);
  assert.notEqual(namesWith({ strict: true, "project-names": true }), undefined);
  assert.equal(namesWith({ "project-names": false }), undefined);
  assert.equal(namesWith({ strict: true }), undefined);
});

test("a container that does not run has the name on each of its networks", () => {
  const names = new ProjectNames("network", () => undefined);
  const networks = ["one", "two"].map((name) => ({ name, names: [] }));
  const stopped = { id: "db", name: "db", sinceMs: 0, labels: {}, imageLabels: NO_IMAGE_LABELS, networks };
  assert.deepEqual(
    names.namesOf(stopped, labelsOf("Shop", "store")),
    ["one", "two"].map((network) => ({ network, name: "store.shop" })),
  );
  assert.deepEqual(names.namesOf(stopped, {}), []);
});

test("strict mode chooses no project for a short name", () => {
  const directory = directoryOf(ALL, "all");
  const behaviour = STRICT_BEHAVIOUR;
  assert.equal(ask(directory, shopWeb, { name: "db", behaviour }), "10.1.0.2 10.1.0.3");
  assert.equal(ask(directory, stranger, { name: "db", behaviour }), "10.1.0.2 10.1.0.3");
});

test("the doctor warns about projects named like networks or public domains, where project names are on", async () => {
  const status = (value: boolean): never => ({ settings: { "project-names": { value } } }) as never;
  const facts = [
    member("app", "web", { app_net: "10.1.0.2" }),
    member("de", "web", { app_net: "10.1.0.3" }),
    member("app_net", "db", { app_net: "10.1.0.4" }),
    member("shop-eu", "db", { app_net: "10.1.0.5" }),
  ];
  const isKnownDomain = async (domain: string): Promise<boolean> =>
    await Promise.resolve(["app", "de"].includes(domain));
  const all = { facts, isKnownDomain };
  const findings = await containersFindings(all, { status: status(true) });
  assert.deepEqual(
    findings.map(
      ({ state, detail }) => `${state} ${/project "([^"]+)" has the name of a (\w+)/.exec(detail)?.slice(1).join(" ")}`,
    ),
    ["warning app public", "warning de public", "warning app_net network"],
  );
  assert.deepEqual(await containersFindings(all, { status: status(false) }), []);
  assert.deepEqual(await containersFindings(all, { status: undefined }), []);
});

test("of two networks, that of which does not keep its containers apart is answered; the only one is, whatever it does", () => {
  const client = member("x", "client", { closed: "10.1.0.9", open: "10.2.0.9" });
  const answers = (addresses: Readonly<Record<string, string>>, apartBy: string | undefined): string => {
    const closed = { name: "closed", ...(apartBy !== undefined && { apartBy }) };
    const parts = { networks: [closed, "open"], makeNames: makeNames("network") };
    return ask(aDirectory([client, member("shop", "db", addresses)], parts), client, { name: "db.shop" });
  };
  const both = { closed: "10.1.0.2", open: "10.2.0.2" };
  assert.equal(answers(both, "enable_icc=false"), "10.2.0.2");
  assert.equal(answers(both, undefined), "10.1.0.2");
  assert.equal(answers({ closed: "10.1.0.2" }, "enable_icc=false"), "10.1.0.2");
});

test("they are listed with their network, and with what comes before them", async () => {
  const [web, api, db] = [
    composed("shop", "web", "a", 2),
    composed("shop", "api", "ab", 3),
    composed("shop", "db", "b", 4),
  ];
  const shared = await sharedDeclarations("records: { api.shop: 10.9.9.8 }");
  const ports = portsOf([web, api, db], [], { shared, makeNames: makeNames("all") });
  assert.deepEqual(await rowsOf(ports, web, "api.shop", "web.shop", "db.shop"), [
    "api.shop: resolves from declared for everybody to 10.9.9.8",
    "api.shop: shadowed declared for everybody from project name on a to 10.0.0.3+shop-api-1",
    "db.shop: resolves from project name on b to 10.0.0.4+shop-db-1",
    "web.shop: resolves from project name on a to 10.0.0.2+shop-web-1",
  ]);
});

test("labels of any text", () => tryAnyLabels({ makeNames: makeNames("all") }));
