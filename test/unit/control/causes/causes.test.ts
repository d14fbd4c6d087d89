// Proves the causes of a failure, and that there is none where it does not apply.

import assert from "node:assert/strict";
import { test } from "node:test";

import type { Cause } from "../../../../src/api/causes.ts";
import type { ContainerFact } from "../../../../src/container/facts/fact.ts";
import { splitLabels } from "../../../../src/container/facts/labels.ts";
import { clientCause } from "../../../../src/control/causes/client-causes.ts";
import { causesOf } from "../../../../src/control/causes/causes.ts";
import { commandOf } from "../../../../src/base/lib/text.ts";
import {
  type StoppedContainer,
  runningContainer,
  stoppedContainer,
  KnownContainers,
} from "../../../../src/control/causes/known-container.ts";
import { NOT_QUERIED, type RouteState, type Situation, cause } from "../../../../src/control/causes/situation.ts";
import { aContainer, anEndpoint } from "../../../support/scripted/builders.ts";

const FILES = "/srv/shop/compose.yaml -f /srv/shop/other.yaml";
const RESOLVER = { nameservers: ["127.0.0.11"], search: [], options: ["ndots:0"] };
const ROUTE: RouteState = {
  domain: ".",
  by: undefined,
  isLocal: false,
  servers: [{ server: "host(10.0.0.1)", isDown: false, reason: undefined }],
  withheld: [],
  missing: [],
};
const NOW = Date.parse("2026-01-01T12:00:00Z");

const web = composed("web", "front");
const api = composed("api", "front");
const db = composed("db", "back", { alias: "Postgres" });
const plain = aContainer({ id: "plain", name: "plain", endpoints: [anEndpoint({ networkName: "bridge", names: [] })] });

/** A container as Compose creates it in a project, on one of its networks. */
function composed(
  service: string,
  network: string,
  { project = "shop", alias = service, ...parts }: { project?: string; alias?: string } & Partial<ContainerFact> = {},
): ContainerFact {
  const name = `${project}-${service}-1`;
  const labels = {
    "com.docker.compose.project": project,
    "com.docker.compose.service": service,
    "com.docker.compose.project.config_files": `/srv/${project}/compose.yaml,/srv/${project}/other.yaml`,
  };
  const networkName = network === "shared" ? network : `${project}_${network}`;
  return aContainer({
    id: name,
    name,
    labels,
    endpoints: [anEndpoint({ networkName, names: [name, service, alias] })],
    ...parts,
  });
}

function stopped(parts: Partial<StoppedContainer> = {}): StoppedContainer {
  return {
    id: "gone",
    name: "shop-cache-1",
    state: "exited",
    exitCode: 137,
    atMs: NOW - 720_000,
    ...splitLabels({ "com.docker.compose.project": "shop", "com.docker.compose.service": "cache" }, {}),
    networks: [{ name: "shop_front", aliases: ["redis"] }],
    ...parts,
  };
}

const onBridge = { names: ["Job", "0123"], links: [], ipv4: "172.17.0.3", ipv6: undefined };

type Parts = Partial<Omit<Situation, "known">> & {
  readonly containers?: readonly ContainerFact[];
  readonly gone?: readonly StoppedContainer[];
};

function causes(name: string, parts: Parts = {}): Cause[] {
  return causesOf(situationOf(name, parts));
}

function situationOf(name: string, { containers = [web, api, db, plain], gone = [], ...parts }: Parts): Situation {
  return {
    client: runningContainer(web),
    owner: runningContainer(web),
    name,
    typeName: "A",
    failure: "NXDOMAIN",
    isFromUpstream: false,
    isTruncated: false,
    isSpecial: false,
    route: ROUTE,
    known: new KnownContainers([
      ...containers.map((each) => runningContainer(each)),
      ...gone.map((each) => stoppedContainer(each)),
    ]),
    resolvers: ["127.0.0.11"],
    resolvConf: RESOLVER,
    moves: [],
    prefersOwnProject: false,
    nowMs: NOW,
    ...parts,
  };
}

function first(name: string, parts: Parts = {}): Cause {
  return causes(name, parts)[0] ?? assert.fail("no cause");
}

test("a name below a zone of dns11's own: no upstream server is said to deny it, or to fail, unless it did", () => {
  const ownZone = { zone: "shop.test", source: "names in etcd" };
  for (const [failure, why] of [
    [
      "NXDOMAIN",
      /^"nobody\.shop\.test" is below "shop\.test", which has names in etcd only, and it, or what it points to, does not exist$/,
    ],
    ["SERVFAIL", /fails: where its records come from may be away, or names may point to each other$/],
  ] as const) {
    const found = causes("nobody.shop.test", { ownZone, failure });
    assert.deepEqual(
      found.map(({ code }) => code),
      ["not-forwarded"],
    );
    assert.match(found[0]?.sentence ?? "", why);
  }
  assert.equal(first("www.shop.test", { ownZone, isFromUpstream: true }).code, "does-not-exist", "of its CNAME");
  assert.deepEqual(causes("www.shop.test", { ownZone, failure: "NODATA" }), []);
});

test("a name that dns11 denies itself is not said to be denied by servers", () => {
  const { code, sentence } = first("2.1.0.10.in-addr.arpa", { isDenied: true });
  assert.equal(code, "does-not-exist");
  assert.doesNotMatch(sentence, /upstream|according/);
});

test("a name on another network of the project, with and without the network, in any letter case", () => {
  for (const name of ["db", "postgres", "DB.shop_back"]) {
    const { code, sentence, fix, lastingFix, isBreaking } = first(name);
    assert.deepEqual([code, isBreaking], ["other-network", true], name);
    assert.equal(sentence, `"${name}" is container shop-db-1 on network shop_back; shop-web-1 is not on shop_back`);
    assert.equal(fix, `docker network connect --alias web shop_back shop-web-1`);
    assert.deepEqual(lastingFix, {
      file: "/srv/shop/compose.yaml",
      service: "web",
      key: "services.web.networks",
      change: "set it to [front, back]; if it is there, create the container again",
      command: `docker compose -p shop -f ${FILES} up -d --force-recreate web`,
    });
  }
});

test("an answer of a container has no cause", () => {
  assert.deepEqual(causes("api", { failure: undefined }), []);
});

test("a stopped container by its name, service and alias, with its exit code, age and fix", () => {
  for (const name of ["shop-cache-1", "cache", "redis", "cache.shop_front"]) {
    const { code, sentence, fix, lastingFix } = first(name, { gone: [stopped()] });
    assert.equal(code, "not-running", name);
    assert.equal(
      sentence,
      `"${name}" is container shop-cache-1, which exited with code 137, 12 min ago (network shop_front)`,
    );
    assert.equal(fix, "docker start shop-cache-1");
    assert.equal(lastingFix, null, "it was stopped on purpose");
  }
  assert.notEqual(first("cache.two", { gone: [stopped()] }).code, "not-running");
  const failed = first("cache", { gone: [stopped({ exitCode: 1 })] });
  assert.deepEqual([failed.fix, failed.lastingFix], ["docker logs --tail 20 shop-cache-1", null]);
  assert.match(failed.advice ?? "", /code 1; when that is mended, start it: docker start shop-cache-1$/);
  assert.match(first("cache", { gone: [stopped({ state: "created", atMs: undefined })] }).sentence, /never started/);
});

test("the project's own stopped container comes before a running one of another project", () => {
  const other = composed("cache", "net", { project: "other" });
  const [one, two] = causes("cache", { containers: [web, other], gone: [stopped()] });
  assert.deepEqual([one?.code, two?.code], ["not-running", "other-project"]);
});

test("a name that exists only in another project", () => {
  const queue = composed("queue", "net", { project: "other" });
  const { code, sentence, lastingFix } = first("queue", { containers: [web, queue] });
  assert.equal(code, "other-project");
  assert.match(sentence, /is container other-queue-1 \(project other\) on network other_net/);
  assert.equal(
    lastingFix?.change,
    'set it to [front, other_net], and declare networks.other_net with "external: true"; if it is there, create the container again',
  );
});

test("a container on the default bridge has no DNS name", () => {
  const { code, sentence, fix } = first("plain");
  assert.equal(code, "no-dns-name");
  assert.match(sentence, /"plain" is container plain, which has no DNS name/);
  assert.equal(fix, "docker network connect shop_front plain");
});

test("a similar name on its own networks, but on no other, and not for names with dots", () => {
  const { code, sentence, isBreaking } = first("apu");
  assert.deepEqual([code, isBreaking], ["similar-name", true]);
  assert.match(sentence, /"apu", but there is "api"/);
  assert.equal(first("dbx").code, "unknown-name");
  assert.equal(first("apu.example").code, "does-not-exist");
});

test("services of two projects with one name on one network: whose they are, and which one to remove", () => {
  const networks = (service: string, project: string): ContainerFact => composed(service, "shared", { project });
  const [mine, other] = [networks("db", "shop"), networks("db", "other")];
  const asker = composed("web", "shared");
  const parts = { containers: [asker, mine, other], owner: runningContainer(asker), failure: undefined };
  const { code, sentence, fix } = first("db", parts);
  assert.equal(code, "ambiguous");
  assert.match(sentence, /2 services on network shared: shop-db-1 \(project shop\), other-db-1 \(project other\)/);
  assert.equal(fix, "docker network disconnect shared other-db-1");
  assert.deepEqual(causes("db", { ...parts, containers: [asker, mine] }), []);
  const replica = composed("db", "shared", { id: "shop-db-2", name: "shop-db-2" });
  assert.deepEqual(causes("db", { ...parts, containers: [asker, mine, replica] }), [], "one service, two replicas");
});

test("an alias that several projects share on purpose is not ambiguous", () => {
  const blue = composed("blue", "shared", { alias: "app" });
  const green = composed("green", "shared", { alias: "app", project: "next" });
  const asker = composed("web", "shared");
  const parts = { containers: [asker, blue, green], owner: runningContainer(asker), failure: undefined };
  assert.deepEqual(causes("app", parts), []);
});

test("a container that has moved since its client queried it, if the answer is a container's", () => {
  const move = {
    containerId: "shop-api-1",
    container: "shop-api-1",
    networkName: "shop_front",
    names: ["api"],
    from: "172.20.0.9",
  };
  const moves = [{ ...move, to: "172.20.0.2", atMs: 0, agoMs: 30_000 }];
  const { code, sentence, fix, isBreaking } = first("api", { failure: undefined, moves });
  assert.deepEqual([code, fix, isBreaking], ["moved", "docker restart shop-web-1", false]);
  assert.match(
    sentence,
    /^"api" moved from 172\.20\.0\.9 to 172\.20\.0\.2 30 s ago .*shop-web-1 has not queried it since/,
  );
  assert.notEqual(first("api", { moves }).code, "moved");
});

test("a paused container", () => {
  const paused = composed("api", "front", { isPaused: true });
  const { code, fix } = first("api", { failure: undefined, containers: [web, paused] });
  assert.deepEqual([code, fix], ["paused", "docker unpause shop-api-1"]);
});

test("an upstream's wildcard that answers for a container elsewhere", () => {
  const { code, sentence, fix } = first("db", { failure: undefined, isFromUpstream: true });
  assert.equal(code, "shadowed");
  assert.match(sentence, /an upstream server answers for "db"; "db" is container shop-db-1 on network shop_back/);
  assert.equal(fix, "docker network connect --alias web shop_back shop-web-1");
  assert.deepEqual(causes("example.com", { failure: undefined, isFromUpstream: true }), []);
});

test("a name that resolves by now is no breakage, nor one with an IPv6 address only", () => {
  const now = first("api");
  assert.deepEqual([now.code, now.isBreaking], ["resolves-now", false]);
  const six = composed("six", "front");
  const endpoints = six.endpoints.map((each) => ({ ...each, ipv4: undefined, ipv6: "fd00::2" }));
  const parts = { containers: [web, { ...six, endpoints }], failure: "NODATA" };
  assert.equal(first("six", parts).code, "no-ipv4");
});

test("what upstream servers are, and in what state, for names of the outside world", () => {
  assert.equal(first("nx.example").code, "does-not-exist");
  assert.equal(first("x.invalid", { isSpecial: true }).code, "not-forwarded");
  const route = (parts: Partial<RouteState>): Parts => ({ failure: "SERVFAIL", route: { ...ROUTE, ...parts } });
  assert.equal(first("a.test", route({})).code, "upstream-error");
  assert.equal(
    first("a.test", { ...route({ domain: "test", isLocal: true, by: "the setting dns" }) }).code,
    "not-forwarded",
  );
  const down = [{ server: "host(10.0.0.1)", isDown: true, reason: "does not answer" }];
  assert.match(
    first("a.test", route({ servers: down })).sentence,
    /the only upstream server is down .*does not answer/,
  );
  const failing = (...whats: string[]): Cause => {
    const servers = whats.map((what, index) => ({
      server: `host(10.0.0.${index + 1})`,
      isDown: what === "late",
      reason: "does not answer",
      failed: { what, ...(what === "late" && { tookMs: 6_040 }) },
    }));
    return first("a.test", route({ servers }));
  };
  assert.match(failing("SERVFAIL").sentence, /^host\(10\.0\.0\.1\) answered SERVFAIL for "a\.test", but is up/);
  assert.match(
    failing("SERVFAIL", "REFUSED").sentence,
    /10\.0\.0\.1\) SERVFAIL, host\(10\.0\.0\.2\) REFUSED, but are up/,
  );
  assert.equal(failing("REFUSED", "REFUSED").code, "upstream-refused");
  assert.match(failing("silent").sentence, /has not answered for "a\.test" in time, but is up/);
  const late = failing("late");
  assert.equal(late.code, "upstream-slow");
  assert.match(late.sentence, /answered for "a\.test" after 6\.0 s, when nobody waits any more/);
  assert.equal(first("a.test", route({ servers: [] })).code, "no-upstream");
  const internal = first("a.test", route({ servers: [], withheld: ["host(10.0.0.1)"] }));
  assert.equal(internal.code, "internal-network");
  assert.ok([internal, first("a.test", route({}))].every(({ isBreaking }) => !isBreaking));
});

test("a server by TLS that cannot be asked is the cause, with what to do, unless another one is up", () => {
  const server = { server: "host(tls://10.0.0.1#dns.test)", isDown: true, reason: "does not answer" };
  const text = "its certificate is for other.test, and not for dns.test";
  const byTls = { ...server, tls: { kind: "name", text, advice: "write another name" } } as const;
  const other = { server: "host(10.0.0.2)", isDown: true, reason: "does not answer" };
  const of = (...servers: RouteState["servers"]): Cause =>
    first("a.test", { failure: "SERVFAIL", route: { ...ROUTE, servers } });
  const found = of(byTls, other);
  assert.equal(found.code, "tls-name");
  assert.equal(found.sentence, `${server.server} cannot be asked by TLS, and is not asked without: ${text}`);
  assert.deepEqual([found.advice, found.about], ["write another name", server.server]);
  assert.equal(of(byTls, { ...other, isDown: false }).code, "upstream-error");
});

test("a failing server is the cause only if no container has the name", () => {
  const parts = { failure: "SERVFAIL" };
  assert.equal(first("db", parts).code, "other-network");
});

test("a resolv.conf with other nameservers", () => {
  const other = { ...RESOLVER, nameservers: ["10.0.0.1"] };
  assert.match(causes("x", { resolvConf: other }).at(-1)?.sentence ?? "", /lists 10\.0\.0\.1 instead of 127\.0\.0\.11/);
  const none = { ...RESOLVER, nameservers: [] };
  assert.match(causes("x", { resolvConf: none }).at(-1)?.sentence ?? "", /lists no nameserver/);
});

test("names that a search list puts before, and those after it only if the name was not found", () => {
  const resolvConf = { ...RESOLVER, search: ["corp.test"], options: ["ndots:2"] };
  const last = (name: string, parts: Parts): string => causes(name, { resolvConf, ...parts }).at(-1)?.sentence ?? "";
  assert.match(last("a.b", { failure: undefined }), /query "a\.b\.corp\.test" before "a\.b".*ndots:2/);
  assert.match(last("a.b.c", {}), /then query "a\.b\.c\.corp\.test"/);
  assert.equal(last("a.b.c", { failure: undefined }), "");
  assert.doesNotMatch(last("a.b.", {}), /corp/);
});

test("names in a command are quoted for a shell", () => {
  assert.equal(commandOf("docker", "start", "a; rm -rf /", "it's"), "docker start 'a; rm -rf /' 'it'\\''s'");
});

test("the default bridge: the cause mentions the setting where it would help, and with it the bridge is a network like others", () => {
  const job = aContainer({ id: "job", name: "job", endpoints: [], onDefaultBridge: onBridge });
  const bridged = { ...web, onDefaultBridge: onBridge };
  const containers = [web, bridged, job];
  const without = first("job", { containers });
  assert.deepEqual([without.code, without.sentence.includes("default-bridge: names")], ["no-dns-name", false]);
  const owner = runningContainer(bridged);
  const { code, sentence } = first("job", { containers, owner });
  assert.deepEqual([code, sentence.includes("default-bridge: names")], ["no-dns-name", true]);
  const known = new KnownContainers([web, job].map((each) => runningContainer(each, "names")));
  const [named] = causesOf({ ...situationOf("job", {}), known });
  assert.deepEqual([named?.code, named?.fix], ["other-network", "docker network connect bridge shop-web-1"]);
});

test("servers of a resolv.conf that dns11 captures are not another resolver", () => {
  const resolvConf = { ...RESOLVER, nameservers: ["10.0.0.1"] };
  const codes = (resolvers: readonly string[]): string[] =>
    causes("db", { resolvConf, resolvers }).map((each) => each.code);
  assert.ok(codes(["127.0.0.11"]).includes("resolv-conf"));
  assert.ok(!codes(["10.0.0.1"]).includes("resolv-conf"));
});

test("what a feature knows of a name comes before what else is known of names that no container has", () => {
  const ofFeature = cause("no-healthy-task", "it has no task");
  const held = { whose: "the swarm", reason: "Docker's resolver: timed out" };
  for (const parts of [{}, { held }, { isSpecial: true }, { failure: NOT_QUERIED }])
    assert.equal(first("sick.mesh", { ...parts, ofFeature }), ofFeature);
  assert.equal(first("db", { ofFeature }).code, "other-network", "a container has it");
});

test("a name that only Docker's resolver may know, while it does not answer", () => {
  const held = { whose: "the swarm", reason: "Docker's resolver: timed out" };
  const { code, sentence } = first("rr.mesh", { failure: "SERVFAIL", held });
  assert.equal(code, "not-forwarded");
  assert.match(sentence, /may be a name of the swarm, so it is not forwarded while Docker's resolver: timed out/);
});

test("where the servers of a name come from decides what to change", () => {
  const down = [{ server: "host(10.0.0.1)", isDown: true, reason: "does not answer" }];
  const change = (parts: Partial<RouteState>, owner = runningContainer(web)): Cause =>
    first("a.test", { failure: "SERVFAIL", owner, route: { ...ROUTE, servers: down, ...parts } });
  const places = [{ server: "host(10.0.0.1)", file: "/etc/resolv.conf", line: 3 }];
  assert.match(
    change({ by: "the host's current resolv.conf", places }).advice ?? "",
    /^on the Docker host, replace host\(10\.0\.0\.1\) in line 3 of \/etc\/resolv\.conf/,
  );
  assert.match(
    change({ by: "the setting dns", settingsFile: "/etc/dns11.yaml" }).advice ?? "",
    /"dns" in \/etc\/dns11\.yaml, then run: dns11 reload$/,
  );
  assert.match(change({ by: "the setting dns" }).advice ?? "", /--dns of dns11 run/);
  const own = change({ by: "--dns of the container" });
  assert.deepEqual([own.lastingFix?.key, own.fix], ["services.web.dns", null]);
  assert.match(
    change({ by: "--dns of the container" }, runningContainer(plain)).advice ?? "",
    /^create plain again with another --dns/,
  );
  assert.equal(change({ by: "label io.dns11.dns of the container" }).lastingFix?.key, "services.web.labels");
  assert.match(change({ by: "Docker's list for this container" }).advice ?? "", /dockerd/);
});

test("a server that does not answer over TCP is named, not the zone", () => {
  const servers = [{ server: "host(10.0.0.1)", isDown: false, reason: undefined, isTcpBlocked: true }];
  assert.equal(first("a.test", { failure: "SERVFAIL", route: { ...ROUTE, servers } }).code, "tcp-blocked");
});

test("a container that has lost the name of its service, and one that is meant to have none", () => {
  const lost = composed("db", "front", {
    endpoints: [anEndpoint({ networkName: "shop_front", names: ["shop-db-1"] })],
  });
  const { code, fix } = first("db", { containers: [web, lost] });
  assert.deepEqual(
    [code, fix],
    [
      "lost-alias",
      "docker network disconnect shop_front shop-db-1 && docker network connect --alias db shop_front shop-db-1",
    ],
  );
  assert.notEqual(first("db", { containers: [web, { ...lost, isStarting: true }] }).code, "lost-alias");
  const oneOff = { ...lost, labels: { ...lost.labels, "com.docker.compose.oneoff": "True" } };
  assert.equal(first("db", { containers: [web, oneOff] }).code, "unknown-name");
});

test("a network is said to be in the file if Compose has connected this container, or one of the same text, to it", () => {
  const on = (name: string, networks: readonly string[], isComposed: boolean, hash = "1"): ContainerFact =>
    composed("web", "front", {
      id: name,
      name,
      labels: { ...web.labels, "com.docker.compose.config-hash": hash },
      endpoints: networks.map((networkName) => anEndpoint({ networkName, names: [name, "web", "www"], isComposed })),
    });
  const one = on("shop-web-1", ["shop_front"], true);
  const change = (other: ContainerFact): string | undefined =>
    first("db", { containers: [one, other, db], owner: runningContainer(one) }).lastingFix?.change;
  const said = '"back" was there when Compose made it: create it again';
  const both = ["shop_front", "shop_back"];
  assert.equal(change(on("shop-web-2", both, true)), said);
  assert.notEqual(change(on("shop-web-2", both, false)), said, "an operator has connected it");
  assert.notEqual(change(on("shop-web-2", both, true, "2")), said, "of another text");
  const { fix } = first("db", { containers: [one, on("shop-web-2", both, true), db], owner: runningContainer(one) });
  assert.equal(fix, "docker network connect --alias web --alias www shop_back shop-web-1", "with its other aliases");
});

test("no alias takes away a name that a container of another project has", () => {
  const other = composed("web", "net", { project: "other" });
  const queue = composed("queue", "net", { project: "other" });
  const { fix } = first("queue", { containers: [web, other, queue] });
  assert.equal(fix, "docker network connect other_net shop-web-1");
});

test("an alias that is no name is in no command", () => {
  const former = ["--help", "a b", "x'; rm -rf /; '", "ok.alias", "*.shop"].map((alias) => ({
    ...{ containerId: "shop-web-1", container: "shop-web-1", compose: undefined, networkName: "shop_back" },
    ...{ names: [alias], isComposed: true, address: "172.20.0.9", atMs: 0 },
  }));
  assert.equal(
    first("db", { former }).fix,
    "docker network connect --alias web --alias ok.alias --alias '*.shop' shop_back shop-web-1",
  );
});

test("labels that Compose would not write are in no command", () => {
  const labels = (parts: Record<string, string>): ContainerFact =>
    composed("web", "front", { labels: { ...web.labels, ...parts } });
  for (const parts of [
    { "com.docker.compose.service": "--help" },
    { "com.docker.compose.project": "a b" },
    { "com.docker.compose.project.config_files": "compose.yaml" },
    { "com.docker.compose.project.config_files": "/srv/\u001b[2Jcompose.yaml" },
    { "com.docker.compose.project.config_files": "/a,/b,/c,/d,/e" },
  ]) {
    const owner = runningContainer(labels(parts));
    assert.equal(first("db", { owner }).lastingFix?.command, undefined, JSON.stringify(parts));
  }
  const spaced = runningContainer(labels({ "com.docker.compose.project.config_files": "/srv/my shop/$(id).yaml" }));
  assert.match(first("db", { owner: spaced }).lastingFix?.command ?? "", / -f '\/srv\/my shop\/\$\(id\)\.yaml' up /);
});

test("a container that was renamed, by its new name, where it could be reached by the old one", () => {
  const queue = aContainer({
    id: "q",
    name: "backlog",
    endpoints: [anEndpoint({ networkName: "shop_front", names: ["backlog"] })],
  });
  const formerNames = [{ containerId: "q", name: "Queue", atMs: performance.now() - 12_500 }];
  // It resembles the old name, and has nothing to do with it.
  const queues = composed("queues", "front");
  const parts = { containers: [web, queues, queue], formerNames };
  const { code, sentence, fix } = first("queue", parts);
  assert.deepEqual([code, fix], ["renamed", "docker rename backlog Queue"]);
  assert.equal(sentence, '"queue" is container backlog now: it was renamed 12 s ago');
  assert.equal(first("queue.shop_front", parts).code, "renamed");
  assert.notEqual(first("queue.shop_back", parts).code, "renamed");
  assert.equal(first("queue", { ...parts, containers: [web, queues] }).code, "similar-name", "it is gone");
  const elsewhere = { ...queue, endpoints: [anEndpoint({ networkName: "shop_back", names: ["backlog"] })] };
  assert.equal(first("queue", { ...parts, containers: [web, elsewhere] }).code, "unknown-name");
  const again = {
    ...queue,
    id: "r",
    name: "queue",
    endpoints: [anEndpoint({ networkName: "shop_front", names: ["queue"] })],
  };
  assert.equal(first("queue", { ...parts, containers: [web, queue, again] }).code, "resolves-now");
});

test("a container that was removed lately, and one that crashes", () => {
  const former = [
    {
      ...{ containerId: "gone", container: "shop-cache-1", compose: undefined, networkName: "shop_front" },
      ...{
        names: ["shop-cache-1", "cache"],
        isComposed: true,
        address: "172.20.0.9",
        atMs: performance.now() - 12_500,
      },
    },
  ];
  assert.match(first("cache", { former }).sentence, /^"cache" was container shop-cache-1, which was removed 12 s ago/);
  assert.equal(first("cache.shop_front", { former }).code, "removed");
  const crashing = composed("cache", "front", { restarts: 4, startedAt: new Date(NOW - 2_000).toISOString() });
  const parts = { containers: [web, crashing] };
  assert.match(first("cache", parts).sentence, /over and over: 4 times so far, the last time 2 s ago$/);
  assert.equal(first("cache", { ...parts, failure: undefined }).code, "crash-loop", "while its name resolves");
  assert.equal(first("cache", { ...parts, nowMs: NOW + 120_000 }).code, "resolves-now");
  assert.equal(first("cache", { ...parts, nowMs: NOW - 120_000 }).code, "resolves-now", "the clock was set back");
  const waiting = stopped({ state: "restarting", exitCode: 1, atMs: NOW - 1_000 });
  assert.match(first("cache", { gone: [waiting] }).sentence, /it has ended with code 1, 1 s ago, and Docker waits/);
});

test("what is no name says what the host in it is", () => {
  for (const [name, host] of [
    ["db:5432", "db"],
    ["http://api", "api"],
    ["postgres://u:p@db:5432/shop", "db"],
    ["redis://cache.shop_back:6379", "cache.shop_back"],
  ] as const) {
    const { code, advice } = first(name);
    assert.equal(code, "not-a-name", name);
    assert.ok(advice?.startsWith(`give shop-web-1 "${host}" where`), advice);
  }
  for (const name of ["_db._tcp", "1:2:3", "a/b", "ab:"]) assert.notEqual(first(name).code, "not-a-name", name);
});

test("programs that resolve nothing: theirs ends over and over, or their network was that of a container that is gone", () => {
  const labels = web.labels;
  const shared = (id: string, startedAt: string): ContainerFact =>
    aContainer({ id: "side", name: "side", labels, networkMode: `container:${id}`, startedAt, endpoints: [] });
  const of = (fact: ContainerFact, gone: readonly StoppedContainer[] = [], other = web): Cause | undefined => {
    const all = [runningContainer(other), runningContainer(fact), ...gone.map((each) => stoppedContainer(each))];
    const known = new KnownContainers(all);
    return clientCause(known.byId("side") ?? assert.fail(), known, NOW);
  };
  const later = "2026-01-01T11:00:00Z";
  const earlier = "2026-01-01T10:00:00Z";
  assert.match(of(shared("0123456789abcdef", later))?.fix ?? "", /^docker compose .* --force-recreate web$/);
  assert.equal(of({ ...shared("0123456789abcdef", later), labels: {} })?.fix, null);
  assert.equal(of(shared("gone", later), [stopped()])?.fix, "docker start shop-cache-1 && docker restart side");
  assert.equal(of(shared(web.id, later), [], { ...web, startedAt: earlier }), undefined);
  assert.equal(of(shared(web.id, earlier), [], { ...web, startedAt: later })?.fix, "docker restart side");
  const waits = stoppedContainer(stopped({ state: "restarting", exitCode: 7, restarts: 4 }));
  assert.match(
    clientCause(waits, new KnownContainers([]), NOW)?.sentence ?? "",
    /^container shop-cache-1 ends and is started again, over and over: 4 times so far, it has ended with code 7, /,
  );
});

test("a character that settings have left in a name is named, and so is a variable", () => {
  for (const [name, what, advice] of [
    ["api\\013", /has a carriage return, .* \(\\013\)$/, /"api": its environment/],
    ['\\"api\\"', /has a quotation mark/, /"api": its environment/],
    ["'api'", /has a quotation mark/, /"api"/],
    ["api\\010", /has a line feed/, /"api"/],
    ["${DB_HOST}", /has a variable that nobody has put a value for \(\$\{DB_HOST\}\)$/, /^set DB_HOST where/],
    ["\\$DB_HOST", /has a variable/, /^set DB_HOST where/],
  ] as const) {
    const { code, sentence, advice: shown = "", isBreaking } = first(name);
    assert.deepEqual([code, isBreaking], ["not-a-name", true], name);
    assert.match(sentence, what);
    assert.match(shown, advice);
  }
  assert.equal(first("_dmarc.example.com").code, "does-not-exist");
});

test("what is put after the name of a service", () => {
  for (const name of ["api.local", "api.docker", "API.front."]) {
    const { code, advice = "", isBreaking } = first(name);
    assert.deepEqual([code, isBreaking], ["similar-name", true], name);
    assert.match(advice, /^change the name to "api" where shop-web-1 is given it/);
  }
  assert.match(first("api.front").sentence, /; with its network it is "api\.shop_front"$/);
  for (const name of ["nobody.local", "api.example", "api.front.local"])
    assert.equal(first(name).code, "does-not-exist", name);
});
