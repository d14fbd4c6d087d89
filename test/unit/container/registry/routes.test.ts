// Proves how routes of several layers are merged: the longest suffix wins, and for equal suffixes the operator, then the
// container's creator, then the image's author, and Docker's list last.

import assert from "node:assert/strict";
import { test } from "node:test";

import type { EndpointFact, NameserversFact } from "../../../../src/container/facts/fact.ts";
import { DNS_LABEL } from "../../../../src/container/registry/label-routes.ts";
import {
  type ContainerRules,
  type RouteLayer,
  routesOf,
  routeLayer,
} from "../../../../src/container/registry/routes.ts";
import type { Labels } from "../../../../src/container/facts/labels.ts";
import { LABEL_DEFAULTS } from "../../../../src/base/model/name-choices.ts";
import { parseRoute, serverText, NO_RULES } from "../../../../src/base/model/server-text.ts";
import type { Route, Server, Upstreams } from "../../../../src/base/model/view.ts";
import { presentation } from "../../../../src/base/dns/name.ts";
import { routeOf } from "../../../../src/query/lookup/forwarding-rules.ts";
import { aContainer, aQuery, anEndpoint } from "../../../support/scripted/builders.ts";
import { aDirectory } from "../../support/names.ts";
import { placed } from "../../support/reply.ts";

const DOCKERS: readonly Server[] = [{ from: "host", address: "10.9.0.1", port: 53 }];
const NONE: ContainerRules = { find: () => ({ reason: "none is known" }), fallsBack: false };
const HOSTS: readonly Server[] = [
  { from: "host", address: "10.8.0.1", port: 53 },
  { from: "host", address: "10.8.0.2", port: 53 },
];

test("without any route Docker's list is used for every name", () => {
  assert.deepEqual(shown(routes()), ["host(10.9.0.1)"]);
});

test("a route for every name replaces Docker's list", () => {
  assert.deepEqual(shown(routes(["10.0.0.1", "10.0.0.2:5353"])), ["host(10.0.0.1) host(10.0.0.2:5353)"]);
});

test("a route for one domain leaves every other name to Docker's list", () => {
  assert.deepEqual(shown(routes(["/corp.example/10.0.0.1"])), ["/corp.example/host(10.0.0.1)", "host(10.9.0.1)"]);
});

test("longer suffixes come before shorter ones, whatever their layer", () => {
  assert.deepEqual(shown(routes(["/example/10.0.0.1"], ["/a.b.example/10.0.0.3", "/b.example/10.0.0.2"])), [
    "/a.b.example/host(10.0.0.3)",
    "/b.example/host(10.0.0.2)",
    "/example/host(10.0.0.1)",
    "host(10.9.0.1)",
  ]);
});

test("several routes for one domain are one list; of several layers only the first with this domain applies", () => {
  assert.deepEqual(shown(routes(["/lan/10.0.0.1", "/lan/10.0.0.2"], ["/lan/10.0.0.3", "10.0.0.4"])), [
    "/lan/host(10.0.0.1) host(10.0.0.2)",
    "host(10.0.0.4)",
  ]);
});

test("one route may have several domains", () => {
  assert.deepEqual(shown(routes(["/one/two/10.0.0.1"])), [
    "/one/host(10.0.0.1)",
    "/two/host(10.0.0.1)",
    "host(10.9.0.1)",
  ]);
});

test("the word host stands for the host's servers, in its place in the list", () => {
  assert.deepEqual(shown(routes(["10.0.0.1", "host", "container:10.0.0.2"])), [
    "host(10.0.0.1) host(10.8.0.1) host(10.8.0.2) 10.0.0.2",
  ]);
});

test("without external access no server is queried from the host; those queried from inside stay", () => {
  const layers = [["host", "10.0.0.1", "container:10.0.0.2"], ["/lan/10.0.0.3"]].map(layerOf);
  const found = routesOf({ layers, containers: NONE, fallback: DOCKERS, host: HOSTS, hasExternalAccess: false });
  assert.deepEqual(shown(found), ["/lan/none", "10.0.0.2"]);
});

test("a domain without a server is local; with one anywhere in the same layer it is not", () => {
  assert.deepEqual(shown(routes(["/lan/"])), ["/lan/local", "host(10.9.0.1)"]);
  assert.deepEqual(shown(routes(["/lan/", "/lan/10.0.0.1"])), ["/lan/host(10.0.0.1)", "host(10.9.0.1)"]);
  assert.deepEqual(shown(routes(["//"])), ["local"]);
  assert.deepEqual(shown(routes(["/lan/"], ["/lan/10.0.0.1"])), ["/lan/local", "host(10.9.0.1)"]);
});

test("a name takes the route with the longest suffix of whole labels, in any letter case", () => {
  const upstreams = { routes: routes(["/example/10.0.0.1", "/corp.example/10.0.0.2"]), isNdotsSet: false };
  for (const [name, server] of [
    ["corp.example", "10.0.0.2"],
    ["a.b.CORP.Example", "10.0.0.2"],
    ["notcorp.example", "10.0.0.1"],
    ["example", "10.0.0.1"],
    ["corp.example.org", "10.9.0.1"],
    [".", "10.9.0.1"],
  ] as const) {
    assert.equal(serverFor(name, upstreams), server, name);
  }
});

// The operator's settings, the container's creator, its image: the first with a route applies.
const LADDER = ["one", "two", "everyone", "label", "own", "image"] as const;

for (const [index, first] of LADDER.entries()) {
  test(`${first} takes precedence over ${LADDER.slice(index + 1).join(", ") || "Docker's list"}`, () => {
    const speaking = new Set<string>(LADDER.slice(index));
    const names = { labels: { ...LABEL_DEFAULTS, trustsImages: true } };
    const directory = aDirectory([], { names, networks: ["one", "two"] });
    directory.setHost(HOSTS);
    const networks = (["one", "two"] as const)
      .filter((name) => speaking.has(name))
      .map((name) => [name, layerOf([`container:10.0.0.${LADDER.indexOf(name)}`])] as const);
    directory.setRules({
      ...NO_RULES,
      everyone: speaking.has("everyone") ? layerOf(["container:10.0.0.2"]) : [],
      networks: new Map(networks),
    });
    const own: NameserversFact = { kind: "listed", ...listed("10.0.0.4"), isOwn: true };
    const dockers: NameserversFact = { kind: "listed", ...listed("10.0.0.9"), isOwn: false };
    const view = directory.viewOf(
      aContainer({
        endpoints: [joined("two"), joined("one")],
        labels: speaking.has("label") ? { [DNS_LABEL]: "10.0.0.3" } : {},
        imageLabels: { labels: { [DNS_LABEL]: "10.0.0.5" }, source: "known" },
        nameservers: speaking.has("own") ? own : dockers,
      }),
    );
    assert.deepEqual(shown(view.upstreams.routes), [`10.0.0.${index}`]);
  });
}

test("an image's label is ignored, and the creator's applies if the settings have no route", () => {
  const directory = aDirectory([]);
  directory.setHost(HOSTS);
  directory.setRules({ ...NO_RULES, everyone: layerOf(["/lan/10.0.0.2"]) });
  const container = (labels: Labels, imageLabels: Labels): readonly Route[] =>
    directory.viewOf(
      aContainer({
        endpoints: [joined("one")],
        labels,
        imageLabels: { labels: imageLabels, source: "known" },
        nameservers: { kind: "host", isNdotsSet: false },
      }),
    ).upstreams.routes;
  const label = { [DNS_LABEL]: "/lan/10.0.0.4 /a.lan/10.0.0.5 /corp/host" };
  const hosts = "host(10.8.0.1) host(10.8.0.2)";
  assert.deepEqual(shown(container({}, label)), ["/lan/host(10.0.0.2)", hosts]);
  assert.deepEqual(shown(container(label, {})), ["/a.lan/10.0.0.5", "/lan/host(10.0.0.2)", `/corp/${hosts}`, hosts]);
});

test("a container's --dns is for every name: routes for domains stay", () => {
  const directory = aDirectory([]);
  directory.setRules({ ...NO_RULES, everyone: layerOf(["/lan/10.0.0.2"]) });
  const nameservers: NameserversFact = { kind: "listed", ...listed("10.0.0.1"), isOwn: true };
  const { upstreams } = directory.viewOf(aContainer({ endpoints: [joined("one")], nameservers }));
  assert.deepEqual(shown(upstreams.routes), ["/lan/host(10.0.0.2)", "10.0.0.1"]);
});

function routes(...texts: readonly (readonly string[])[]): Route[] {
  const layers = texts.map(layerOf);
  return routesOf({ layers, containers: NONE, fallback: DOCKERS, host: HOSTS, hasExternalAccess: true });
}

function layerOf(texts: readonly string[]): RouteLayer {
  return texts.map((text) => parseRoute(text));
}

function listed(address: string): Omit<Extract<NameserversFact, { kind: "listed" }>, "kind" | "isOwn"> {
  return { servers: [{ from: "container", address }], isNdotsSet: false };
}

function joined(networkName: string): EndpointFact {
  return anEndpoint({ networkName });
}

// As `dns11 status` prints them.
function shown(all: readonly Route[]): string[] {
  return all.map(({ suffix, servers, isLocal }) => {
    const target = isLocal ? "local" : servers.map((server) => serverText(server)).join(" ") || "none";
    return suffix.length === 0 ? target : `/${presentation(suffix, 0, suffix.length)}/${target}`;
  });
}

function serverFor(name: string, upstreams: Upstreams): string | undefined {
  const { question } = placed(aQuery({ name }));
  return routeOf(question, upstreams).servers[0]?.address;
}

test("a route has its origin, and the servers withheld for want of external access", () => {
  const layers = [
    routeLayer("its label", layerOf(["/lan/10.0.0.1"])),
    routeLayer("the settings", layerOf(["/lan/10.0.0.2", "/corp/"])),
  ];
  const found = routesOf({
    layers,
    containers: NONE,
    fallback: DOCKERS,
    fallbackBy: "Docker",
    host: HOSTS,
    hasExternalAccess: false,
  });
  assert.deepEqual(
    found.map(({ by, withheld }) => [by, withheld?.map((server) => serverText(server))]),
    [
      ["its label", ["host(10.0.0.1)"]],
      ["the settings", undefined],
      ["Docker", ["host(10.9.0.1)"]],
    ],
  );
});
