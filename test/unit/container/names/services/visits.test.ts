// Zones with very many members: how many of them one query visits is bounded, whatever they are and whatever is asked.

import assert from "node:assert/strict";
import { test } from "node:test";

import { LIMITS } from "../../../../../src/base/limits.ts";
import { DnsZone } from "../../../../../src/container/names/source/dns-zone.ts";
import { ZoneLookup } from "../../../../../src/container/names/services/lookup.ts";
import { EVERYWHERE, type ZoneMember } from "../../../../../src/container/names/services/member.ts";
import { ZoneMembers } from "../../../../../src/container/names/services/members.ts";
import { NOTHING, ReachableAddresses } from "../../../../../src/container/names/services/reachable-addresses.ts";

const ZONE = new DnsZone("cluster.local");
const MANY = 3 * LIMITS.zoneVisits;

// The answers of a zone, and which members were visited for the last one.
class CountedZone {
  readonly #members = new ZoneMembers();
  readonly #lookup: ZoneLookup;
  readonly #visited = new Set<string>();
  #size = 0;

  constructor(isReachable: boolean) {
    const reachable = new ReachableAddresses(
      (endpoint) => (isReachable ? endpoint : NOTHING),
      () => 0,
    );
    this.#lookup = new ZoneLookup({ members: this.#members, remote: undefined, reachable, servers: [] });
  }

  add(count: number, partsOf: (n: number) => Partial<ZoneMember>): this {
    for (let n = 0; n < count; n++) this.#members.add(this.#counted(partsOf(n)));
    return this;
  }

  // How many members' addresses the name has; undefined: there is no such name.
  ask(name: string): number | undefined {
    this.#visited.clear();
    const found = this.#lookup.find(ZONE, name.split(".").toReversed(), 60);
    return found && [...found.sets.values()].flat().length;
  }

  get visited(): number {
    return this.#visited.size;
  }

  #counted(parts: Partial<ZoneMember>): ZoneMember {
    const id = String(this.#size++);
    const v4 = [Uint8Array.of(10, this.#size >> 16, (this.#size >> 8) & 255, this.#size & 255)];
    const endpoints = [{ networkId: EVERYWHERE, v4, v6: [] }];
    const member = { id, isReady: true, project: "shop", service: "web", hosts: [`h${id}`], ports: [], endpoints };
    return new Proxy<ZoneMember>(
      { ...member, ...parts },
      {
        get: (target, key): unknown => {
          this.#visited.add(id);
          return Reflect.get(target, key);
        },
      },
    );
  }
}

const on = (machine: string): Partial<ZoneMember> => ({ remote: { machine, reach: "container", unless: [] } });

test("a host name leads to its members: no other of the service is visited", () => {
  const zone = new CountedZone(true).add(MANY, () => ({}));
  assert.deepEqual([zone.ask("nosuch.web.shop.svc"), zone.visited], [undefined, 0]);
  assert.deepEqual([zone.ask("nosuch.*.any.svc"), zone.visited], [undefined, 0]);
  for (const name of ["h1.web.shop.svc", `h${MANY - 1}.web.shop.svc`, "h7.*.*.endpoints"])
    assert.deepEqual([zone.ask(name), zone.visited], [1, 1], name);
  assert.equal(zone.ask("web.shop.svc"), LIMITS.zoneAnswerMembers);
  assert.ok(zone.visited <= LIMITS.zoneAnswerMembers + 1, `${zone.visited}`);
});

test("of the members that do not count, so many are visited", () => {
  const names = ["web.shop.svc", "*.*.svc", "same.web.shop.svc", "same.*.*.svc", "_http._tcp.web.shop.svc"];
  const starting = new CountedZone(true).add(MANY, () => ({ isReady: false, hosts: ["same"] }));
  const hidden = new CountedZone(false).add(MANY, () => ({ hosts: ["same"] }));
  for (const [what, zone] of Object.entries({ starting, hidden })) {
    for (const name of what === "hidden" ? [...names, "shop.svc", "*.svc", "web.shop.endpoints"] : names) {
      assert.equal(zone.ask(name), undefined, `${what}: ${name}`);
      assert.ok(zone.visited <= LIMITS.zoneVisits, `${what}: ${name} visits ${zone.visited}`);
    }
  }
});

test("a wildcard stands for so many services", () => {
  const zone = new CountedZone(true).add(MANY, (n) => ({ project: `p${n % 2}`, service: `s${n}`, hosts: [`h${n}`] }));
  const last = LIMITS.zoneVisits / 2;
  assert.equal(zone.ask(`h${last}.*.*.svc`), 1);
  assert.equal(zone.ask(`h${MANY - 1}.*.*.svc`), undefined, "it is in a service that is not visited");
  assert.equal(zone.ask(`h${MANY - 1}.s${MANY - 1}.*.svc`), 1);
});

test("members of another machine that do not count hide none of a third one", () => {
  const hosts = ["same"];
  const zone = new CountedZone(true)
    .add(MANY, () => ({ ...on("m2"), isReady: false, hosts }))
    .add(2, () => ({ ...on("m3"), hosts }));
  for (const name of ["web.shop.svc", "same.web.shop.svc", "*.*.svc"]) {
    assert.equal(zone.ask(name), 2, name);
    assert.ok(zone.visited <= LIMITS.machineVisits + 3, `${name} visits ${zone.visited}`);
  }
});
