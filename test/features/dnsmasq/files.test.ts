// Proves what the files of a dnsmasq folder mean as settings, and that an option without a meaning here is named with file and line.

import assert from "node:assert/strict";
import { test } from "node:test";

import type { DeclaredName } from "../../../src/base/model/declared-name.ts";
import { BadSettings } from "../../../src/config/bad-settings.ts";
import { type ReadFiles, readDnsmasqFiles } from "../../../src/features/dnsmasq/files.ts";
import { routeText } from "../../../src/base/model/server-text.ts";
import { LIMITS } from "../../../src/base/limits.ts";

function read(...lines: readonly string[]): ReadFiles {
  return readDnsmasqFiles([{ path: "a.conf", text: lines.join("\n") }]);
}

function routes(...lines: readonly string[]): readonly string[] | undefined {
  return read(...lines).values.dns?.map((route) => routeText(route));
}

function records(...lines: readonly string[]): readonly string[] {
  const values: Readonly<Record<string, unknown>> = read(...lines).values;
  const names = (values["records"] ?? []) as readonly DeclaredName[];
  return names.map(({ name, records: all, alias, ttlSeconds }) => {
    const texts = [...all.map(({ text }) => text), ...(alias === undefined ? [] : [`CNAME ${alias}`])];
    return `${name} ${texts.join("; ")}${ttlSeconds === undefined ? "" : ` ${ttlSeconds}s`}`;
  });
}

function mistakes(...lines: readonly string[]): readonly string[] {
  try {
    read(...lines);
  } catch (error) {
    assert.ok(error instanceof BadSettings);
    return error.lines;
  }
  return [];
}

test("the files of OpenShift's nodes, word for word", () => {
  const { values, places, withoutMeaning } = readDnsmasqFiles([
    {
      path: "origin-dns.conf",
      text: `no-resolv
domain-needed
no-negcache
max-cache-ttl=1
enable-dbus
dns-forward-max=10000
cache-size=10000
bind-dynamic
min-port=1024
except-interface=lo
# End of config
`,
    },
    {
      path: "origin-upstream-dns.conf",
      text: "server=172.22.122.3\nserver=172.22.122.2\nserver=172.22.122.4\n",
    },
    { path: "node-dnsmasq.conf", text: "server=/in-addr.arpa/127.0.0.1\nserver=/cluster.local/127.0.0.1\n" },
  ]);
  const { dns, ...others } = values;
  assert.deepEqual(
    dns?.map((route) => routeText(route)),
    ["172.22.122.3", "172.22.122.2", "172.22.122.4", "/in-addr.arpa/127.0.0.1", "/cluster.local/127.0.0.1"],
  );
  assert.deepEqual(others, {
    "forward.domain-needed": true,
    "cache.max-negative-ttl": 0,
    "cache.max-ttl": 1000,
    "forward.max-concurrent": 10_000,
    "cache.size": 10_000 * 1024,
  });
  assert.equal(places["cache.size"], "origin-dns.conf:7");
  assert.deepEqual(withoutMeaning, [
    "origin-dns.conf:5: enable-dbus",
    "origin-dns.conf:8: bind-dynamic",
    "origin-dns.conf:9: min-port",
    "origin-dns.conf:10: except-interface",
  ]);
});

test("the file of a master of OpenShift 3.5, and the command line of a kube-dns pod", () => {
  assert.deepEqual(routes("no-resolv", "domain-needed", "server=/cluster.local/172.30.0.1"), [
    "//",
    "/cluster.local/172.30.0.1",
  ]);
  assert.deepEqual(routes("cache-size=1000", "no-resolv", "server=127.0.0.1#10053", "log-facility=-"), [
    "127.0.0.1:10053",
  ]);
});

for (const [lines, expected] of [
  [["server=10.0.0.1"], ["host", "10.0.0.1"]],
  [["server=/a.test/b.test/10.0.0.1#5353"], ["host", "/a.test/10.0.0.1:5353", "/b.test/10.0.0.1:5353"]],
  [
    ["server=/a.test/10.0.0.1", "server=/a.test/10.0.0.2"],
    ["host", "/a.test/10.0.0.1", "/a.test/10.0.0.2"],
  ],
  [
    ["local=/lan/", "server=/home/"],
    ["host", "/lan/", "/home/"],
  ],
  [["address=/ads.test/"], ["host", "/ads.test/"]],
  [
    ["no-resolv", "server=10.0.0.1", "server=/a.test/10.0.0.2", "server=/b.a.test/#"],
    ["10.0.0.1", "/a.test/10.0.0.2", "/b.a.test/10.0.0.1"],
  ],
  [["server=fe80::1%eth0"], ["host", "fe80::1%eth0"]],
  [["rev-server=192.168.0.0/16,10.0.0.1"], ["host", "/168.192.in-addr.arpa/10.0.0.1"]],
  [["rev-server=fd00::/8,10.0.0.1"], ["host", "/d.f.ip6.arpa/10.0.0.1"]],
  [["no-resolv"], ["//"]],
  [["resolv-file=/run/dns/resolv.conf"], ["host"]],
  [["domain-needed"], undefined],
] as const) {
  test(`servers: ${lines.join(" ")}`, () => assert.deepEqual(routes(...lines), expected));
}

for (const [lines, expected] of [
  [["address=/a.test/10.0.0.1"], ["a.test A 10.0.0.1", "*.a.test A 10.0.0.1"]],
  [
    ["address=/a.test/10.0.0.1", "address=/a.test/fd00::1"],
    ["a.test A 10.0.0.1; AAAA fd00::1", "*.a.test A 10.0.0.1; AAAA fd00::1"],
  ],
  [["address=/a.test/#"], ["a.test A 0.0.0.0; AAAA ::", "*.a.test A 0.0.0.0; AAAA ::"]],
  [
    ["host-record=h1.lan,h1,10.0.0.1,60"],
    ["h1.lan A 10.0.0.1 60s", "h1 A 10.0.0.1 60s", "1.0.0.10.in-addr.arpa PTR h1.lan"],
  ],
  [["cname=c.lan,d.lan,h1.lan,30"], ["c.lan CNAME h1.lan 30s", "d.lan CNAME h1.lan 30s"]],
  [["srv-host=_x._tcp.lan,h1.lan,80,5,7"], ["_x._tcp.lan SRV 5 7 80 h1.lan"]],
  [["srv-host=_x._tcp.lan"], ["_x._tcp.lan SRV 0 0 1 ."]],
  [["mx-host=lan,h1.lan,50"], ["lan MX 50 h1.lan"]],
  [['txt-record=t.lan,"v=spf1, # a \\"b\\"",c'], ['t.lan TXT v=spf1, # a "b"c']],
  [['txt-record=t.lan,"v=DKIM1\\; k=rsa\\n."'], ["t.lan TXT v=DKIM1\\; k=rsa\n."]],
  [
    ["address=/a.test/10.0.0.1", "address=/a.test/fd00::1", "mx-host=b.a.test,a.test", "host-record=a.test,10.0.0.2"],
    [
      "a.test A 10.0.0.2; AAAA fd00::1",
      "*.a.test A 10.0.0.1; AAAA fd00::1",
      "b.a.test A 10.0.0.1; AAAA fd00::1; MX 1 a.test",
      "2.0.0.10.in-addr.arpa PTR a.test",
    ],
  ],
  [
    ["address=/a.test/10.0.0.1", "cname=a.test,b.a.test", "address=/b.a.test/fd00::1", "txt-record=c.b.a.test,c"],
    [
      "a.test CNAME b.a.test",
      "*.a.test A 10.0.0.1",
      "b.a.test AAAA fd00::1",
      "*.b.a.test AAAA fd00::1",
      "c.b.a.test AAAA fd00::1; TXT c",
    ],
  ],
  [["ptr-record=9.0.0.10.in-addr.arpa,p.lan", "local-ttl=5"], ["9.0.0.10.in-addr.arpa PTR p.lan 5s"]],
  [["caa-record=lan,0,issue,ca.example"], ['lan CAA 0 issue "ca.example"']],
  [["  host-record = h.lan , 10.0.0.1   # not this"], ["h.lan A 10.0.0.1", "1.0.0.10.in-addr.arpa PTR h.lan"]],
] as const) {
  test(`records: ${lines.join(" ")}`, () => assert.deepEqual(records(...lines), expected));
}

for (const [key, line, value] of [
  ["forward.bogus-priv", "bogus-priv", true],
  ["forward.order", "strict-order", "sequential"],
  ["forward.order", "all-servers", "parallel"],
  ["cache.negative-ttl-without-soa", "neg-ttl=60", 60_000],
  ["cache.min-ttl", "min-cache-ttl=10", 10_000],
  ["cache.size", "cache-size=0", 0],
  ["cache.size", "cache-size=1", 65_536],
  ["cache.max-stale", "use-stale-cache", 86_400_000],
  ["cache.max-stale", "use-stale-cache=3600", 3_600_000],
  ["resolv-conf", "resolv-file=/run/dns/resolv.conf", "/run/dns/resolv.conf"],
] as const) {
  test(`settings: ${line}`, () => assert.equal(read(line).values[key], value));
}

for (const [line, problem] of [
  ["dnssec", 'a.conf:1: dnssec: "dnssec" is not supported: remove it, or leave this folder to dnsmasq'],
  ["adress=/a.test/10.0.0.1", /^a\.conf:1: adress: .*did you mean address\?/],
  ["conf-dir=/etc/more.d", /conf-dir: "conf-dir" is not supported/],
  ["addn-hosts=/etc/more-hosts", /is not supported/],
  ["server=10.0.0.1@eth0", /an interface or source address \(@\) is not supported/],
  ["server=//10.0.0.1", /an empty domain .*use domain-needed/],
  ["server=/*.a.test/10.0.0.1", /a wildcard is not supported/],
  ["server=container:web", /"container:web" is not the address of a server/],
  ["server=host", /"host" is not the address of a server/],
  ["server=/a.test/10.0.0.1#99999", /invalid port/],
  ["server", /names no server/],
  ["address=10.0.0.1", /names no domain/],
  ["address=/#/10.0.0.1", /# for every domain is not supported/],
  ["address=/a.test/ten", /"ten" is not an IP address/],
  ["rev-server=10.0.0.0/9,10.0.0.1", /use a multiple of 8/],
  ["host-record=10.0.0.1,h.lan", /names before the addresses/],
  ["host-record=h.lan,10.0.0.1,10.0.0.2", /several addresses of one family, of which dnsmasq has the last one only/],
  ['txt-record=t.lan,"v=spf1 # all', /^a\.conf:1: txt-record: has a quotation mark \("\) without an end/],
  ["srv-host=_x._tcp,h.lan,80", /has no domain/],
  ["cache-size=many", "a.conf:1: cache-size: use a whole number"],
  ["max-cache-ttl=0", /a\.conf:1: max-cache-ttl: invalid duration/],
  ["use-stale-cache=0", /0 \(for ever\) is not supported/],
  ["resolv-file=resolv.conf", /use an absolute path/],
  ["__proto__=1", /is not supported/],
] as const) {
  test(`a mistake: ${line}`, () => {
    const [found, ...more] = mistakes(line);
    assert.deepEqual(more, []);
    if (typeof problem === "string") assert.equal(found, problem);
    else assert.match(found ?? "", problem);
  });
}

test("options about DHCP, TFTP and dnsmasq's own process mean nothing", () => {
  const lines = ["no-ping", "leasefile-ro", "shared-network=eth0,10.0.0.1", "script-on-renewal", "quiet-tftp"];
  const others = [
    "dhcp-range=10.0.0.2,10.0.0.9",
    "tag-if=set:a,tag:b",
    "no-dhcpv4-interface=eth0",
    "dumpfile=/run/dump",
  ];
  const { withoutMeaning, values } = read(...lines, ...others);
  assert.deepEqual([withoutMeaning.length, values], [lines.length + others.length, {}]);
});

test("all mistakes are reported at once, those of names with them", () => {
  assert.deepEqual(
    mistakes("dnssec", "server=/a.test/10.0.0.1", "cname=c.lan,c.lan", "filterwin2k").map((line) => line.slice(0, 12)),
    ["a.conf:1: dn", "a.conf:4: fi", "a.conf:3: c."],
  );
});

test("an address for a whole domain and a server for names below it are a mistake, because dnsmasq would ask the server", () => {
  for (const server of ["server=/b.a.test/10.0.0.2", "server=/a.test/10.0.0.2", "local=/b.a.test/"])
    assert.match(
      mistakes("address=/a.test/10.0.0.1", server)[0] ?? "",
      /a\.conf:2: .*a\.test have an address \(a\.conf:1\)/,
    );
  assert.deepEqual(mistakes("address=/a.test/10.0.0.1", "local=/a.test/", "server=/test/10.0.0.2"), []);
});

test("the number of domains with servers is bounded, that of blocked names is not", () => {
  const lines = Array.from({ length: LIMITS.dnsmasqDomains + 1 }, (_, n) => `n${n}.test`);
  const [first] = mistakes(...lines.map((name) => `local=/${name}/`));
  assert.match(first ?? "", new RegExp(`a\\.conf:${LIMITS.dnsmasqDomains + 1}: local: .*use address=/NAME/# instead`));
  assert.equal(records(...lines.map((name) => `address=/${name}/#`)).length, 2 * lines.length);
});
