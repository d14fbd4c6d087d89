/**
 * A policy from recorded traffic: what becomes a rule, what a wildcard may stand for, and what no container can smuggle in.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { assert as holds, property, string } from "fast-check";

import type { EgressConnection, EgressReport } from "../../../../src/api/egress.ts";
import type { QueryReport } from "../../../../src/api/queries.ts";
import { learnedPolicy, safeWildcard } from "../../../../src/features/policy/traffic/learned-policy.ts";
import { Traffic, judgedTraffic } from "../../../../src/features/policy/traffic/traffic.ts";
import { type Policy, POLICY_DEFAULTS } from "../../../../src/features/policy/model/policy.ts";
import { readRule } from "../../../../src/features/policy/model/policy-rule.ts";

function aQuery(name: string | null, parts: Partial<QueryReport> = {}): QueryReport {
  return {
    container: "app",
    seq: 1,
    time: "",
    name,
    type: "A",
    rcode: "NOERROR",
    answers: 1,
    addresses: ["192.0.2.7"],
    ttl: 60,
    transport: "udp",
    result: "forwarded",
    source: null,
    upstream: "host(127.0.0.1)",
    ms: 1,
    ...parts,
  };
}

function aConnection(parts: Partial<EgressConnection> = {}): EgressConnection {
  const at = new Date(5_000).toISOString();
  return {
    address: "192.0.2.7",
    protocol: "tcp",
    port: 443,
    names: [],
    owner: null,
    first: at,
    last: at,
    count: 1,
    ...parts,
  };
}

function aReport(...connections: EgressConnection[]): EgressReport {
  const container = {
    container: "app",
    containerId: "app",
    project: "shop",
    service: "app",
    isRunning: true,
    sharedWith: null,
    missingSince: null,
    notRecorded: [],
    connections,
  };
  return { hasNames: true, leavesOutAnswers: true, containers: [container] };
}

function trafficOf(queries: readonly QueryReport[], ...connections: EgressConnection[]): Traffic {
  const traffic = new Traffic();
  for (const query of queries) traffic.addQuery(query);
  traffic.addConnections(aReport(...connections), 0);
  return traffic;
}

function rulesOf(traffic: Traffic, wildcards = false): string[] {
  const { text } = learnedPolicy(traffic, { name: "shop", scope: "project=shop", wildcards }, "now");
  return [...text.matchAll(/^ {6}- (".*?") # /gm)].map(([, rule = ""]) => JSON.parse(rule) as string);
}

function aPolicy(parts: Partial<Policy> & { readonly rules?: readonly string[] } = {}): Policy {
  const { rules = [], ...more } = parts;
  const allow = rules.map((text, line) => ({ ...readRule(text), line }));
  const place = { name: "shop", where: "p.yaml:3:3", file: "p.yaml", scopes: [], mode: "enforce", deny: [] } as const;
  return { ...POLICY_DEFAULTS, ...place, allow, ...more };
}

test("names have the ports that were connected to, addresses that nobody asked for their own rules, peers none", () => {
  const traffic = trafficOf(
    [
      aQuery("api.test"),
      aQuery("API.test", { type: "AAAA" }),
      aQuery("quiet.test", { type: "TXT" }),
      aQuery("db", { result: "local", source: "network" }),
      aQuery("7.2.0.192.in-addr.arpa", { type: "PTR" }),
      aQuery("failed.test", { rcode: "NXDOMAIN", answers: 0 }),
    ],
    aConnection({ names: ["api.test"] }),
    aConnection({ names: ["api.test"], port: 80 }),
    aConnection({ address: "2001:db8::1", port: 53, protocol: "udp" }),
    aConnection({ address: "198.51.100.1", port: null, protocol: "icmp" }),
    aConnection({ address: "172.18.0.3", port: 5432, names: ["db"], owner: { kind: "container", name: "db" } }),
  );
  assert.deepEqual(rulesOf(traffic), [
    "api.test:443/tcp",
    "api.test:80/tcp",
    "quiet.test",
    "[2001:db8::1]:53/udp",
    "198.51.100.1",
  ]);
});

test("a name that leads to an address that is not public needs the address, too", () => {
  const traffic = trafficOf([aQuery("corp.test")], aConnection({ address: "10.0.0.5", names: ["corp.test"] }));
  assert.deepEqual(rulesOf(traffic), ["corp.test:443/tcp", "10.0.0.5:443/tcp"]);
});

test("connections from before are not learned", () => {
  const traffic = new Traffic();
  traffic.addConnections(aReport(aConnection()), 6_000);
  assert.deepEqual(rulesOf(traffic), []);
});

test("each rule says who needs it, and a domain's names stand together", () => {
  const by = (container: string, name: string): QueryReport => aQuery(name, { container });
  const queries = [by("b", "z.test"), by("a", "z.test"), by("a", "b.example.com"), by("a", "a.example.com")];
  for (const container of ["c", "d", "e"]) queries.push(by(container, "z.test"));
  const traffic = trafficOf(queries, aConnection({ address: "198.51.100.1" }));
  const { text } = learnedPolicy(traffic, { name: "shop", scope: "project=shop" }, "now");
  assert.deepEqual(text.split("\n").slice(-6, -1), [
    "    allow:",
    '      - "a.example.com" # asked by a; no connection seen',
    '      - "b.example.com" # asked by a; no connection seen',
    '      - "z.test" # asked by a, b, c and 2 more; no connection seen',
    '      - "198.51.100.1:443/tcp" # never asked, by app',
  ]);
});

test("where that is wanted, many names of one owner become a wildcard, and the file says so; of strangers, never", () => {
  const queries = (domain: string, type = "A"): QueryReport[] =>
    [1, 2, 3, 4, 5].map((each) => aQuery(`n${each}.${domain}`, { type }));
  assert.deepEqual(rulesOf(trafficOf(queries("cdn.example.com")), true), ["*.cdn.example.com"]);
  assert.equal(rulesOf(trafficOf(queries("cdn.example.com"))).length, 5);
  const whom = { name: "shop", scope: undefined };
  assert.match(
    learnedPolicy(trafficOf(queries("cdn.example.com")), whom, "now").notes.join("\n"),
    /^--wildcards would write \*\.cdn\.example\.com for 5 names, such as n1\./,
  );
  const learned = learnedPolicy(trafficOf(queries("example.com")), { ...whom, wildcards: true }, "now");
  const { notes, text } = learned;
  assert.match(notes.join(), /\*\.example\.com stands for 5 names/);
  assert.match(text, /io\.dns11\.policy=shop/);
  for (const shared of ["github.io", "co.uk", "com", "eu-west-1.amazonaws.com"])
    assert.equal(rulesOf(trafficOf(queries(shared)), true).length, 5, shared);
  assert.equal(rulesOf(trafficOf(queries("example.com", "TXT")), true).length, 5, "a type that wildcards do not allow");
  assert.equal(safeWildcard("com"), undefined);
});

test("no name that a container asks is another rule than that name, whatever it is", () => {
  const odd = ["*.com", "**", "a:443", "10.0.0.0/8", 'x" # y', "x\\010- z", "[::1]", "-a", "a..b", "ü.test", "x/y"];
  for (const name of odd) {
    const rules = rulesOf(trafficOf([aQuery(name)]));
    assert.deepEqual(rules, [], name);
  }
  holds(
    property(string({ maxLength: 80 }), (name) => {
      const { text } = learnedPolicy(trafficOf([aQuery(name)]), { name: "shop", scope: "project=shop" }, "now");
      for (const line of text.split("\n").filter((each) => each.startsWith("      - "))) {
        const [, rule = ""] = /^ {6}- (".*?") # asked by app; no connection seen$/.exec(line) ?? [];
        assert.equal(JSON.parse(rule), name.toLowerCase());
      }
    }),
  );
});

test("a learned policy refuses nothing of what it was learned from", () => {
  const traffic = trafficOf(
    [
      aQuery("api.test"),
      aQuery("corp.test", { addresses: ["10.0.0.5"] }),
      aQuery("web", { source: "network" }),
      aQuery("db.shop.svc.zone.test", { source: "other-machine" }),
      aQuery("store.test", { source: "etcd" }),
    ],
    aConnection({ names: ["api.test"] }),
    aConnection({ address: "10.0.0.5", names: ["corp.test"] }),
    aConnection({ address: "198.51.100.1" }),
  );
  const [app = assert.fail()] = traffic.containers.values();
  const learned = aPolicy({ rules: rulesOf(traffic), addresses: "enforce" });
  assert.deepEqual(judgedTraffic(app, [learned]), { refusals: [], passing: 0 });
});

test("names that other machines decide about need a rule, and answers with private addresses one for these", () => {
  const traffic = trafficOf([
    aQuery("own.svc.zone.test", { source: "zone", addresses: ["10.0.0.4"] }),
    aQuery("far.svc.zone.test", { source: "other-machine", addresses: ["10.0.0.5"] }),
    aQuery("pod.cluster.test", { source: "kubernetes" }),
  ]);
  const [app = assert.fail()] = traffic.containers.values();
  const whats = (rules: string[]): string[] =>
    judgedTraffic(app, [aPolicy({ rules })]).refusals.map(({ what }) => what);
  assert.deepEqual(whats([]), ["far.svc.zone.test A", "pod.cluster.test A"]);
  assert.deepEqual(whats(["far.svc.zone.test", "pod.cluster.test"]), ["far.svc.zone.test A"], "a private address");
  assert.deepEqual(whats(["far.svc.zone.test", "pod.cluster.test", "10.0.0.5"]), []);
});

test("what another policy would refuse is said with its rule and line; addresses count where they are enforced", () => {
  const traffic = trafficOf(
    [aQuery("api.test"), aQuery("db", { source: "network" }), aQuery("corp.test", { addresses: ["10.0.0.5"] })],
    aConnection({ names: ["api.test"], port: 22 }),
    aConnection({ address: "198.51.100.1" }),
  );
  const [app = assert.fail()] = traffic.containers.values();
  const whats = (policy: Policy): string[] => judgedTraffic(app, [policy]).refusals.map(({ what }) => what);
  const rules = ["api.test:443", "corp.test"];
  assert.deepEqual(whats(aPolicy({ rules })), ["corp.test A"], "a private address");
  assert.equal(judgedTraffic(app, [aPolicy({ rules })]).passing, 2);
  assert.deepEqual(whats(aPolicy({ rules, addresses: "enforce", private: "allow" })), [
    "192.0.2.7 22/tcp",
    "198.51.100.1 443/tcp",
  ]);
  const deny = [{ ...readRule("api.test"), line: 9 }];
  const denied = judgedTraffic(app, [aPolicy({ rules, deny, private: "allow" })]).refusals;
  assert.deepEqual(
    denied.map(({ what, because }) => [what, because]),
    [["api.test A", "policy shop: deny api.test (p.yaml:9)"]],
  );
  assert.deepEqual(whats(aPolicy({ rules, peers: "deny", private: "allow" })), ["db A"]);
  assert.deepEqual(judgedTraffic(app, []), { refusals: [], passing: 0 });
});

test("connections are judged by the rules that the kernel gets, with their ports and protocols", () => {
  const refused = (policies: readonly Policy[], ...connections: EgressConnection[]): string[] => {
    const [app = assert.fail()] = trafficOf([], ...connections).containers.values();
    return judgedTraffic(app, policies).refusals.map(({ what, because }) => `${what}: ${because}`);
  };
  const enforce = { addresses: "enforce", private: "allow" } as const;
  const api = (parts: Partial<EgressConnection>) => aConnection({ names: ["api.test"], ...parts });
  const none = "policy shop: no rule allows it (p.yaml:3:3)";
  const closed = (port: string): string => `policy shop allows the name, but not ${port} (p.yaml:3:3)`;
  const tcp = [aPolicy({ rules: ["api.test:443"], ...enforce })];
  assert.deepEqual(refused(tcp, api({}), api({ protocol: "udp" })), [`192.0.2.7 443/udp: ${closed("443/udp")}`]);
  const deny = [{ ...readRule("api.test:22"), line: 9 }];
  assert.deepEqual(
    refused([aPolicy({ rules: ["api.test"], deny, ...enforce })], api({})),
    [`192.0.2.7 443/tcp: ${closed("443/tcp")}`],
    "a denied port closes those that are not named",
  );
  const block = aPolicy({ rules: ["192.0.2.0/24:443"], deny: [{ ...readRule("192.0.2.7:22"), line: 9 }], ...enforce });
  assert.deepEqual(refused([block], aConnection(), aConnection({ protocol: "udp" }), aConnection({ port: 22 })), [
    `192.0.2.7 443/udp: ${none}`,
    "192.0.2.7 22/tcp: policy shop: deny 192.0.2.7:22 (p.yaml:9)",
  ]);
  const icmp = api({ protocol: "icmp", port: null });
  assert.deepEqual(refused([aPolicy({ rules: ["api.test"], ...enforce })], icmp), []);
  assert.deepEqual(refused(tcp, icmp), [`192.0.2.7 icmp: ${closed("icmp")}`]);
  // One by the address and one by the name do not make an open address together.
  const other = aPolicy({ name: "other", rules: ["192.0.2.7:443"], ...enforce });
  assert.equal(refused([...tcp, other], api({})).length, 1);
  const wide = aPolicy({ name: "wide", rules: ["192.0.2.0/24:443"], ...enforce });
  const narrow = aPolicy({ name: "narrow", rules: ["192.0.2.7"], ...enforce });
  assert.equal(refused([wide, narrow], aConnection()).length, 1, "no rule of one is within one of the other");
  const host = aConnection({ owner: { kind: "host", name: "n1" } });
  const open = aPolicy({ name: "open", rules: [], host: "allow", ...enforce });
  assert.deepEqual([refused([open], host).length, refused([open, narrow], host).length], [0, 1]);
  // A policy that only records refuses nothing beside one that is enforced.
  const audit = aPolicy({ name: "audit", rules: [], mode: "audit", ...enforce });
  assert.deepEqual(refused([...tcp, audit], api({})), []);
  const names = aPolicy({ name: "names", rules: ["b.test"], addresses: "names" });
  assert.deepEqual(refused([...tcp, names], api({})), []);
});
