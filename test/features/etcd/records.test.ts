// What records of etcd mean. The expected values are those that CoreDNS documents for the same keys, and those that its
// source computes; where dns11 differs on purpose, the test says so.

import assert from "node:assert/strict";
import { test } from "node:test";

import { StoredWorld } from "./stored-world.ts";

test("one key: an address, and a service that points to the key", () => {
  const world = new StoredWorld({ "test/shop/web": { host: "10.0.0.1", port: 8080, ttl: 60 } });
  assert.deepEqual(world.ask("web.shop.test"), [0, "A 10.0.0.1"]);
  assert.deepEqual(world.ask("Web.SHOP.test"), [0, "A 10.0.0.1"]);
  assert.deepEqual(world.ask("web.shop.test", "AAAA"), [0]);
  assert.deepEqual(world.ask("web.shop.test", "SRV"), [0, "SRV 10 100 8080 web.shop.test"]);
  assert.deepEqual(world.additional("web.shop.test", "SRV"), ["web.shop.test A 10.0.0.1"]);
  assert.equal(world.reply("web.shop.test")?.answers[0]?.ttl, 60);
  assert.match(world.reply("web.shop.test")?.flags ?? "", /aa/);
});

test("several keys one label below a name are its records; weights are shares of their priority", () => {
  const world = new StoredWorld({
    "test/shop/db/x1": { host: "10.0.0.1", port: 5432, weight: 50 },
    "test/shop/db/x2": { host: "10.0.0.2", port: 5432 },
    "test/shop/db/x3": { host: "fd00::3", port: 5433, priority: 20 },
  });
  assert.deepEqual(world.ask("db.shop.test"), [0, "A 10.0.0.1", "A 10.0.0.2"]);
  assert.deepEqual(world.ask("db.shop.test", "AAAA"), [0, "AAAA fd000000000000000000000000000003"]);
  assert.deepEqual(world.ask("db.shop.test", "SRV"), [
    0,
    "SRV 10 33 5432 x1.db.shop.test",
    "SRV 10 66 5432 x2.db.shop.test",
    "SRV 20 100 5433 x3.db.shop.test",
  ]);
  assert.deepEqual(world.additional("db.shop.test", "SRV"), [
    "x1.db.shop.test A 10.0.0.1",
    "x2.db.shop.test A 10.0.0.2",
    "x3.db.shop.test AAAA fd000000000000000000000000000003",
  ]);
  assert.deepEqual(world.ask("x2.db.shop.test"), [0, "A 10.0.0.2"]);
});

test("targetstrip, a port of -1, and a share below one percent", () => {
  const world = new StoredWorld({
    "test/shop/a/b1": { host: "10.0.0.1", port: 80, targetstrip: 1 },
    "test/shop/none/x": { host: "10.0.0.2", port: -1 },
    "test/shop/low/x": { host: "10.0.0.3", port: 1, weight: 1 },
    "test/shop/low/y": { host: "10.0.0.4", port: 1, weight: 65_535 },
    "test/shop/all": { host: "10.0.0.5", port: 1, targetstrip: 9 },
  });
  assert.deepEqual(world.ask("a.shop.test", "SRV"), [0, "SRV 10 100 80 a.shop.test"]);
  assert.deepEqual(world.ask("none.shop.test", "SRV"), [0]);
  assert.deepEqual(world.ask("low.shop.test", "SRV"), [0, "SRV 10 1 1 x.low.shop.test", "SRV 10 99 1 y.low.shop.test"]);
  assert.deepEqual(world.ask("all.shop.test", "SRV"), [0, "SRV 10 100 1 all.shop.test"], "more than it has: unchanged");
});

test("a host name is a CNAME, followed in etcd and elsewhere; a service keeps its own records", () => {
  const world = new StoredWorld({
    "test/shop/www": { host: "web.shop.test" },
    "test/shop/web/1": { host: "10.0.0.1" },
    "test/shop/out": { host: "other.example", port: 443 },
    "test/shop/both/1": { host: "web.shop.test" },
    "test/shop/both/2": { host: "10.0.0.9" },
  });
  assert.deepEqual(world.ask("www.shop.test"), [0, "A 10.0.0.1", "CNAME web.shop.test"]);
  assert.deepEqual(world.ask("www.shop.test", "CNAME"), [0, "CNAME web.shop.test"]);
  assert.deepEqual(world.ask("out.shop.test"), ["forwarded"]);
  assert.deepEqual(world.ask("out.shop.test", "SRV"), [0, "SRV 10 100 443 other.example"]);
  // CoreDNS puts the CNAME beside the other record, which no resolver has to accept.
  assert.deepEqual(world.ask("both.shop.test"), [0, "A 10.0.0.1", "A 10.0.0.9"]);
});

test("CNAMEs that form a loop end with an error, and nothing else", () => {
  const world = new StoredWorld({
    "test/shop/a": { host: "b.shop.test" },
    "test/shop/b": { host: "a.shop.test" },
    "test/shop/c/1": { host: "c.shop.test" },
    "test/shop/c/2": { host: "d.shop.test" },
    "test/shop/d": { host: "c.shop.test" },
    "test/shop/ok": { host: "10.0.0.1" },
  });
  assert.equal(world.reply("a.shop.test")?.rcode, 2);
  assert.equal(world.reply("c.shop.test")?.rcode, 2);
  assert.deepEqual(world.reply("a.shop.test")?.authorities, [], "a failure has no SOA");
  assert.deepEqual(world.ask("ok.shop.test"), [0, "A 10.0.0.1"]);
});

test("a CNAME to the name itself is left out", () => {
  const world = new StoredWorld({
    "test/shop/self": { host: "Self.shop.test", port: 1 },
    "test/shop/beside/1": { host: "beside.shop.test" },
    "test/shop/beside/2": { host: "10.0.0.1" },
  });
  assert.deepEqual(world.ask("self.shop.test"), [0]);
  assert.deepEqual(world.ask("self.shop.test", "CNAME"), [0]);
  assert.equal(world.reply("self.shop.test")?.authorities[0]?.owner, "shop.test", "the SOA of the zone");
  assert.deepEqual(world.ask("self.shop.test", "SRV"), [0, "SRV 10 100 1 Self.shop.test"]);
  assert.deepEqual(world.additional("self.shop.test", "SRV"), []);
  assert.deepEqual(world.ask("beside.shop.test"), [0, "A 10.0.0.1"]);
});

test("a name whose own key is a CNAME keeps it beside names below; its services stay", () => {
  const world = new StoredWorld({
    "test/shop/www": { host: "outside.example" },
    "test/shop/www/api": { host: "10.0.0.1", port: 80 },
    "test/shop/www/v6": { host: "fd00::1" },
    "test/shop/alias": { host: "api.www.shop.test" },
    "test/shop/alias/below": { host: "10.0.0.2" },
  });
  assert.deepEqual(world.ask("www.shop.test"), ["forwarded"]);
  assert.deepEqual(world.ask("www.shop.test", "CNAME"), [0, "CNAME outside.example"]);
  assert.deepEqual(world.ask("api.www.shop.test"), [0, "A 10.0.0.1"]);
  assert.ok(world.ask("www.shop.test", "SRV").includes("SRV 10 33 80 api.www.shop.test"));
  assert.deepEqual(world.ask("alias.shop.test"), [0, "A 10.0.0.1", "CNAME api.www.shop.test"]);
  assert.deepEqual(world.ask("below.alias.shop.test"), [0, "A 10.0.0.2"]);
});

test("where a service or a mail server is a CNAME, the chain is with its addresses", () => {
  const world = new StoredWorld({
    "test/shop/in/a": { host: "mx.shop.test", port: 25, mail: true },
    "test/shop/in/b": { host: "web.shop.test", port: 25, mail: true },
    "test/shop/mx": { host: "relay.shop.test" },
    "test/shop/relay": { host: "web.shop.test" },
    "test/shop/web": { host: "10.0.0.1" },
    "test/shop/out": { host: "mail.shop.test", port: 25 },
    "test/shop/mail": { host: "mail.example" },
    "test/shop/lost": { host: "loop.shop.test", port: 25 },
    "test/shop/loop": { host: "loop2.shop.test" },
    "test/shop/loop2": { host: "loop.shop.test" },
  });
  for (const type of ["SRV", "MX"]) {
    assert.deepEqual(world.additional("in.shop.test", type), [
      "mx.shop.test CNAME relay.shop.test",
      "relay.shop.test CNAME web.shop.test",
      "web.shop.test A 10.0.0.1",
    ]);
  }
  assert.deepEqual(world.additional("out.shop.test", "SRV"), ["mail.shop.test CNAME mail.example"]);
  assert.deepEqual(world.additional("lost.shop.test", "SRV"), []);
});

test("texts, mail servers and reverse names", () => {
  const world = new StoredWorld(
    {
      "test/shop/info": { text: "hello" },
      "test/shop/info/2": { text: "again", ttl: 9 },
      "test/shop/in/a": { host: "mx1.shop.test", mail: true, priority: 30 },
      "test/shop/in/b": { host: "10.0.0.8", mail: true },
      "test/shop/mx1": { host: "10.0.0.7" },
      "test/shop/long": { text: "x".repeat(300) },
      "test/shop/owned": { host: "mx1.shop.test", text: "heritage=external-dns" },
      "arpa/in-addr/10/0/0/127": { host: "reverse.shop.test." },
    },
    { zones: ["shop.test", "0.0.10.in-addr.arpa"] },
  );
  assert.deepEqual(world.ask("info.shop.test", "TXT"), [0, "TXT again", "TXT hello"]);
  assert.equal(world.reply("info.shop.test", "TXT")?.answers[0]?.ttl, 9, "records of one set have one TTL");
  assert.deepEqual(world.ask("in.shop.test", "MX"), [0, "MX 10 b.in.shop.test", "MX 30 mx1.shop.test"]);
  assert.deepEqual(world.additional("in.shop.test", "MX"), ["b.in.shop.test A 10.0.0.8", "mx1.shop.test A 10.0.0.7"]);
  assert.equal(world.reply("long.shop.test", "TXT")?.answers[0]?.data.length, 302, "two strings");
  assert.deepEqual(world.ask("127.0.0.10.in-addr.arpa", "PTR"), [0, "PTR reverse.shop.test"]);
  assert.deepEqual(world.ask("128.0.0.10.in-addr.arpa", "PTR"), [3]);
  // CoreDNS has no CNAME where a record has a text, which external-dns writes to all of its records.
  assert.deepEqual(world.ask("owned.shop.test"), [0, "A 10.0.0.7", "CNAME mx1.shop.test"]);
  assert.deepEqual(world.ask("owned.shop.test", "TXT"), [0, "TXT heritage=external-dns"]);
});

test("groups: the group of the shortest keys counts, unless they differ", () => {
  const world = new StoredWorld({
    "test/shop/dom": { host: "10.0.0.1", group: "g1" },
    "test/shop/dom/a": { host: "10.0.0.2", group: "g1" },
    "test/shop/dom/b": { host: "10.0.0.3", group: "g2" },
    "test/shop/dom/c": { host: "10.0.0.4" },
    "test/shop/mixed/a": { host: "10.0.0.5", group: "g1" },
    "test/shop/mixed/b": { host: "10.0.0.6", group: "g2" },
  });
  assert.deepEqual(world.ask("dom.shop.test"), [0, "A 10.0.0.1", "A 10.0.0.2", "A 10.0.0.4"]);
  assert.deepEqual(world.ask("mixed.shop.test"), [0, "A 10.0.0.5", "A 10.0.0.6"]);
});

test("the zone itself: dns/apex, dns/ns and the SOA; names between others are empty, all others do not exist", () => {
  const world = new StoredWorld({
    "test/shop/dns/apex/x1": { host: "10.0.0.1" },
    "test/shop/dns/ns/one": { host: "10.0.0.53" },
    "test/shop/deep/down/x": { host: "10.0.0.2" },
    "test/shop/www": { host: "10.0.0.3" },
  });
  assert.deepEqual(world.ask("shop.test"), [0, "A 10.0.0.1"]);
  assert.deepEqual(world.ask("shop.test", "NS"), [0, "NS one.ns.dns.shop.test"]);
  assert.deepEqual(world.additional("shop.test", "NS"), ["one.ns.dns.shop.test A 10.0.0.53"]);
  assert.deepEqual(world.ask("shop.test", "SOA"), [0, "SOA ns.dns.shop.test"]);
  assert.deepEqual(world.ask("deep.shop.test"), [0], "one label below has a record of a name, not of this one");
  const missing = world.reply("nobody.shop.test");
  assert.deepEqual([missing?.rcode, missing?.authorities[0]?.owner], [3, "shop.test"]);
  assert.deepEqual(world.ask("shop2.test"), ["forwarded"]);
  assert.deepEqual(world.ask("test"), ["forwarded"]);
});

test("subtree: names answer with all records below them, the zone as well, and their own only without any", () => {
  const values = {
    "test/shop/deep/down/x": { host: "10.0.0.2" },
    "test/shop/deep/down/under/y": { host: "10.0.0.3" },
    "test/shop/deep": { host: "10.0.0.4" },
  };
  const world = new StoredWorld(values, { quirks: ["subtree"] });
  assert.deepEqual(world.ask("deep.shop.test"), [0, "A 10.0.0.2", "A 10.0.0.3"]);
  assert.deepEqual(world.ask("shop.test"), [0, "A 10.0.0.2", "A 10.0.0.3", "A 10.0.0.4"]);
  const plain = new StoredWorld(values);
  assert.deepEqual(plain.ask("deep.shop.test"), [0, "A 10.0.0.4"]);
  assert.deepEqual(plain.ask("shop.test"), [0]);
});

test("text-only: a record with a text has no CNAME", () => {
  const world = new StoredWorld({ "test/shop/a": { host: "b.example", text: "t" } }, { quirks: ["text-only"] });
  assert.deepEqual(world.ask("a.shop.test"), [0]);
  assert.deepEqual(world.ask("a.shop.test", "TXT"), [0, "TXT t"]);
});

test("wildcards: in queries as in SkyDNS, in keys as in DNS", () => {
  const world = new StoredWorld({
    "test/shop/east/web": { host: "10.0.0.1" },
    "test/shop/west/web": { host: "10.0.0.2" },
    "test/shop/apps/*": { host: "10.0.0.3" },
    "test/shop/apps/real": { host: "10.0.0.4" },
  });
  assert.deepEqual(world.ask("web.*.shop.test"), [0, "A 10.0.0.1", "A 10.0.0.2"]);
  assert.deepEqual(world.ask("web.any.shop.test"), [0, "A 10.0.0.1", "A 10.0.0.2"]);
  assert.deepEqual(world.ask("x.apps.shop.test"), [0, "A 10.0.0.3"]);
  assert.deepEqual(world.ask("y.x.apps.shop.test"), [0, "A 10.0.0.3"]);
  assert.deepEqual(world.ask("real.apps.shop.test"), [0, "A 10.0.0.4"]);
});

test("TTL: 300 without one, the smaller of lease and record, a lease counts from 30 seconds to a day", () => {
  const world = new StoredWorld({ "test/shop/plain": { host: "10.0.0.1" } });
  world.put("test/shop/leased", { host: "10.0.0.2" }, "7");
  world.put("test/shop/short", { host: "10.0.0.3", ttl: 5 }, "7");
  world.put("test/shop/long", { host: "10.0.0.4" }, "8");
  world.put("test/shop/unknown", { host: "10.0.0.5", ttl: 100 }, "9");
  world.names.setLease("7", 90);
  world.names.setLease("8", 1_000_000);
  const ttl = (name: string): number | undefined => world.reply(`${name}.shop.test`)?.answers[0]?.ttl;
  assert.deepEqual(["plain", "leased", "short", "long", "unknown"].map(ttl), [300, 90, 5, 86_400, 30]);
});

test("a change replaces a record, a removal ends it, and a list forgets what is not in it", () => {
  const world = new StoredWorld({ "test/shop/a": { host: "10.0.0.1" }, "test/shop/b/x": { host: "10.0.0.2" } });
  world.put("test/shop/a", { host: "10.0.0.9" });
  world.remove("test/shop/b/x");
  assert.deepEqual(world.ask("a.shop.test"), [0, "A 10.0.0.9"]);
  assert.deepEqual(world.ask("b.shop.test"), [3], "what was above it is gone, too");
  world.names.begin();
  assert.deepEqual(world.ask("a.shop.test"), [0, "A 10.0.0.9"], "until the list is complete");
  world.put("test/shop/c", { host: "10.0.0.3" });
  world.names.commit();
  assert.deepEqual([world.ask("a.shop.test"), world.ask("c.shop.test")], [[3], [0, "A 10.0.0.3"]]);
});

test("whoever repeats answers hears of each change in the step in which it counts", () => {
  const world = new StoredWorld({ "test/shop/web": { host: "10.0.0.1" } });
  let changes = 0;
  world.names.onChange = () => changes++;
  const changesOf = (step: () => void): number => {
    changes = 0;
    step();
    return changes;
  };
  assert.equal(
    changesOf(() => world.put("test/shop/db", { host: "10.0.0.2" })),
    1,
  );
  assert.equal(
    changesOf(() => world.put("test/shop/db", "no JSON")),
    1,
  );
  assert.equal(
    changesOf(() => world.remove("test/shop/web")),
    1,
  );
  assert.equal(
    changesOf(() => world.names.setLease("7", 30)),
    1,
  );
  assert.equal(
    changesOf(() => world.names.setLease("7", 30)),
    0,
  );
  assert.equal(
    changesOf(() => world.names.setCurrent(false)),
    1,
  );
  // A list counts as a whole.
  assert.equal(
    changesOf(() => world.list({ "test/shop/a": { host: "10.0.0.3" }, "test/shop/b": { host: "10.0.0.4" } })),
    1,
  );
});
