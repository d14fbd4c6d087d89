/**
 * Containers as upstream servers: which address is queried from where, what happens where there is none, and that no
 * query goes round.
 */
import assert from "node:assert/strict";
import { test } from "node:test";

import { presentation } from "../../../../src/base/dns/name.ts";
import { LABEL_DEFAULTS } from "../../../../src/base/model/name-choices.ts";
import type { MissingContainerSetting } from "../../../../src/base/model/upstream-policy.ts";
import { parseRoute, serverText, NO_RULES } from "../../../../src/base/model/server-text.ts";
import type { NameSettings } from "../../../../src/container/names/source/name-settings.ts";
import type { Directory } from "../../../../src/container/registry/directory.ts";
import type { ContainerFact } from "../../../../src/container/facts/fact.ts";
import { DNS_LABEL } from "../../../../src/container/registry/label-routes.ts";
import { aContainer, anEndpoint } from "../../../support/scripted/builders.ts";
import { aDirectory } from "../../support/names.ts";

/** Each container is on the given networks, with an address that follows from its name and theirs. */
function container(name: string, networks: readonly string[], parts: Partial<ContainerFact> = {}): ContainerFact {
  return aContainer({
    id: `id-${name}`,
    name,
    endpoints: networks.map((networkName) => anEndpoint({ networkName, ipv4: addressOf(name, networkName) })),
    nameservers: {
      kind: "listed",
      servers: [{ from: "host", address: "10.9.0.1" }],
      isNdotsSet: false,
      isOwn: false,
    },
    ...parts,
  });
}

function addressOf(name: string, network: string): string {
  return `10.${network.charCodeAt(0)}.${name.charCodeAt(0)}.${name.length}`;
}

function withLabel(name: string, networks: readonly string[], label: string): ContainerFact {
  return container(name, networks, { labels: { [DNS_LABEL]: label } });
}

interface WorldParts {
  readonly dns?: readonly string[];
  readonly missing?: MissingContainerSetting;
  readonly names?: Partial<NameSettings>;
}

function world(
  facts: readonly ContainerFact[],
  { dns = [], missing = "fail", names = {} }: WorldParts = {},
): Directory {
  const rules = { ...NO_RULES, everyone: dns.map((text) => parseRoute(text)) };
  const networks = ["a", "b", "c", { name: "dark", isInternal: true }, { name: "vlan", driver: "macvlan" }];
  return aDirectory(facts, { names, rules, missingContainer: missing, networks });
}

/** The routes of a container as `dns11 status` prints them, and what is missing. */
function shown(directory: Directory, fact: ContainerFact): { readonly routes: string[]; readonly missing: string[] } {
  const { routes } = directory.viewOf(fact).upstreams;
  return {
    routes: routes.map(({ suffix, servers }) => {
      const list = servers.map((server) => serverText(server)).join(" ") || "none";
      return suffix.length === 0 ? list : `/${presentation(suffix, 0, suffix.length)}/${list}`;
    }),
    missing: routes.flatMap(({ missing = [] }) => missing.map(({ server, reason }) => `${server}: ${reason}`)),
  };
}

const DNS = container("dns", ["a", "b"]);

test("it is queried from inside where a network is shared, and from the host otherwise", () => {
  const [inside, outside] = [container("web", ["b"]), container("job", ["c"])];
  const directory = world([DNS, inside, outside], { dns: ["container:dns", "/lab/container:dns@a:5353"] });
  assert.deepEqual(shown(directory, inside).routes, [
    `/lab/container:dns@a(host(${addressOf("dns", "a")}:5353))`,
    `container:dns@b(${addressOf("dns", "b")})`,
  ]);
  assert.equal(shown(directory, outside).routes[1], `container:dns@a(host(${addressOf("dns", "a")}))`);
});

test("the host reaches no internal network and none without a bridge; its servers are not for containers without a way out", () => {
  const web = container("web", ["a"]);
  const lost = world([container("dns", ["dark", "vlan"]), web], { dns: ["container:dns"] });
  assert.deepEqual(shown(lost, web).routes, ["none"]);
  assert.match(shown(lost, web).missing.join(), /on none that the host reaches; connect web to its network/);
  const dark = container("web", ["dark"]);
  assert.deepEqual(shown(world([DNS, dark], { dns: ["container:dns"] }), dark).routes, ["none"]);
});

test("a label reaches only containers on a network of its own, whatever labels may do", () => {
  const [web, job] = [
    withLabel("web", ["b"], "container:dns"),
    withLabel("job", ["c"], "container:dns@a /x/container:dns"),
  ];
  for (const servers of ["container", "host", "any"] as const) {
    const directory = world([DNS, web, job], { names: { labels: { ...LABEL_DEFAULTS, servers } } });
    assert.deepEqual(shown(directory, web).routes, [`container:dns@b(${addressOf("dns", "b")})`]);
    assert.deepEqual(shown(directory, job).routes, ["/x/none", "none"], servers);
    assert.match(shown(directory, job).missing[0] ?? "", /a label reaches no other; connect job to its network/);
  }
});

test("without the container names fail, or the next route applies; other servers of the list stay", () => {
  const web = withLabel("web", ["a"], "10.0.0.7");
  const dns = ["container:dns", "/lab/container:dns"];
  assert.deepEqual(shown(world([web], { dns }), web).routes, ["/lab/none", "none"]);
  assert.match(
    shown(world([web], { dns }), web).missing[0] ?? "",
    /^container:dns: no running container is named "dns"; start it/,
  );
  assert.deepEqual(shown(world([web], { dns, missing: "fallback" }), web).routes, ["/lab/10.0.0.7", "10.0.0.7"]);
  assert.equal(shown(world([web], { dns, missing: "fallback" }), web).missing.length, 2);
  assert.deepEqual(shown(world([web], { dns: ["container:dns", "10.0.0.8"] }), web).routes, ["host(10.0.0.8)"]);
  const elsewhere = world([DNS, web], { dns: ["container:dns@dark"] });
  assert.match(shown(elsewhere, web).missing.join(), /"dns" is not on network "dark"; use one of a, b/);
});

test("before all containers are known, the next route applies", () => {
  const web = container("web", ["a"]);
  const directory = world([web], { dns: ["container:dns"] });
  directory.setComplete(false);
  assert.deepEqual(shown(directory, web), { routes: ["host(10.9.0.1)"], missing: [] });
  assert.equal(directory.setComplete(true), true);
  assert.deepEqual(shown(directory, web).routes, ["none"]);
});

test("a server has what it would have without the routes that name it, and so have two that back each other up", () => {
  const other = container("other", ["a"]);
  const web = container("web", ["a"]);
  const directory = world([DNS, other, web], { dns: ["container:dns", "container:other", "/lab/container:dns"] });
  for (const server of [DNS, other]) assert.equal(shown(directory, server).routes.at(-1), "host(10.9.0.1)");
  assert.deepEqual(shown(directory, DNS), { routes: ["/lab/host(10.9.0.1)", "host(10.9.0.1)"], missing: [] });
  assert.equal(shown(directory, other).routes[0], `/lab/container:dns@a(${addressOf("dns", "a")})`);
  assert.equal(shown(directory, web).routes[1]?.split(" ").length, 2);
});

test("all of a cycle is passed over, of whatever length; the reason shows the way", () => {
  const ring = ["ua", "vb", "wc", "xd"].map((name, at, all) =>
    withLabel(name, ["a"], `container:${all[(at + 1) % all.length] ?? ""}`),
  );
  const directory = world(ring);
  for (const fact of ring) assert.deepEqual(shown(directory, fact).routes, ["host(10.9.0.1)"]);
  assert.match(
    shown(directory, ring[0] as ContainerFact).missing.join(),
    /ua -> vb -> wc -> xd -> ua; give one of these/,
  );
  // Who only leads into a cycle is no part of it.
  const web = withLabel("web", ["a"], "container:ua");
  directory.putContainer(web);
  assert.deepEqual(shown(directory, web), { routes: [`container:ua@a(${addressOf("ua", "a")})`], missing: [] });
});

test("servers of different domains may name each other, unless a name goes round", () => {
  const [one, two] = [
    withLabel("one", ["a"], "/two.test/container:two"),
    withLabel("two", ["a"], "/one.test/container:one"),
  ];
  assert.deepEqual(shown(world([one, two]), one).missing, []);
  const wider = withLabel("two", ["a"], "/test/container:one");
  const directory = world([one, wider]);
  assert.match(shown(directory, one).missing.join(), /one -> two -> one/);
  assert.deepEqual(shown(directory, one).routes, ["/two.test/host(10.9.0.1)", "host(10.9.0.1)"]);
  const narrow = withLabel("two", ["a"], "/test/container:one /two.test/10.0.0.7");
  assert.deepEqual(shown(world([one, narrow]), one).missing, []);
});

test("a chain without an end is no server", () => {
  const chain = Array.from({ length: 100 }, (_, at) => withLabel(`c${at}`, ["a"], `container:c${at + 1}`));
  const directory = world(chain);
  assert.match(shown(directory, chain[0] as ContainerFact).missing.join(), /more than 32 containers/);
});

test("a container changes other views if it is named, and its name, start, address or routes change", () => {
  const directory = world([DNS], { dns: ["container:dns"] });
  assert.equal(directory.putContainer(container("web", ["a"])), false);
  assert.equal(directory.putContainer({ ...DNS, isPaused: true }), false);
  assert.equal(directory.putContainer({ ...DNS, startedAt: "later" }), true);
  assert.equal(directory.putContainer(container("dns", ["a"])), true);
  assert.equal(directory.putContainer(withLabel("dns", ["a"], "container:web")), true);
  assert.equal(directory.putContainer(container("web", ["b"])), true, "a label names it");
  assert.equal(directory.putContainer({ ...DNS, name: "renamed" }), true);
  assert.equal(directory.removeContainer(DNS.id), false);
  assert.equal(directory.putContainer(DNS), true);
  assert.equal(directory.removeContainer(DNS.id), true);
});

test("for whoever asks at an address of the host, the host asks containers, also those of its own network, and no node", () => {
  const directory = world([DNS, container("k", ["a"])], {
    dns: ["/x/container:dns", "/y/container:dns@a", "/z/node:k"],
  });
  const asker = container("listen:lan", ["a"], { nameservers: { kind: "host", isNdotsSet: false } });
  const { routes } = directory.upstreamsFromHost(asker);
  const servers = routes.flatMap((route) => route.servers);
  assert.ok(servers.length > 0);
  assert.deepEqual(
    servers.filter(({ from }) => from !== "host"),
    [],
  );
  assert.match(routes.flatMap(({ missing = [] }) => missing.map(({ reason }) => reason)).join(), /a node is asked for/);
});
