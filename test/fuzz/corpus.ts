// Owns the fuzzer's corpus: a small set of names, valid queries for it, upstream replies, and hostile messages.

import { addressBytes, reverseLabels } from "../../src/base/model/address.ts";
import type { View } from "../../src/base/model/view.ts";
import { presentation } from "../../src/base/dns/name.ts";
import {
  TYPE,
  aName,
  aNetwork,
  aPointer,
  aQuery,
  aRecord,
  aReplyTo,
  aView,
  anOpt,
  u16,
  upstreams,
} from "../support/scripted/builders.ts";

import { ZoneWorld, aMember } from "../unit/support/zone.ts";

const MANY = Array.from({ length: 300 }, (_, index) => ({
  names: ["many"],
  ipv4: `10.7.${index >> 8}.${index & 0xff}`,
  ipv6: `fd77::7:${(index + 1).toString(16)}`,
}));

export const NONCE = "00112233445566778899aabbccddeeff";

// Two networks that share names, one with dots in its name; links that resolve and links that do not.
export function aWorld(isNdotsSet: boolean): View {
  const one = aNetwork({
    name: "one",
    members: [
      { names: ["Web", "shared", "0123456789ab"], ipv4: "172.20.0.2", ipv6: "fd11::1:2" },
      { names: ["db", "shared"], ipv4: "172.20.0.3", ipv6: "fd11::" },
      { names: ["mail.example.org"], ipv4: "172.20.0.4" },
      { names: ["x".repeat(64), "long"], ipv4: "172.20.0.5" },
      // The reverse name of this address is longer than any question.
      { names: [Array.from({ length: 9 }, () => "w".repeat(63)).join(".")], ipv4: "172.20.0.7" },
      { names: [`${"y".repeat(63)}.${"z".repeat(63)}.${"y".repeat(63)}`], ipv4: "172.20.0.6" },
      ...MANY,
    ],
    links: ["web:Site", "nosuch:db", "db:b.c"],
  });
  const two = aNetwork({ name: "br.net1", members: [{ names: ["c1.net1", "shared"], ipv4: "10.3.0.1" }] });
  const view = aView([one, two], upstreams({ isNdotsSet }));
  return { ...view, names: [...view.names, ...zoneNames()] };
}

// A zone with two services, one of them with ports.
function zoneNames(): View["names"] {
  const labels = { "io.dns11.ports": "http=80,dns=53/udp" };
  const members = [1, 2].map((number) =>
    aMember(`zoned-${number}`, {
      service: "web",
      number,
      labels,
      on: { zoned: [`10.8.0.${number}`, `fd88::${number}`] },
    }),
  );
  const client = aMember("zoned-client", { service: "client", on: { zoned: "10.8.0.9" } });
  return new ZoneWorld([...members, client], { networks: [{ name: "zoned" }] }).directory.viewOf(client).names;
}

const NAMES = [
  "web",
  "WEB.One",
  "shared",
  "many",
  "many.one",
  "Site",
  "db",
  "b.c.one",
  "mail.example.org",
  "c1.net1.br.net1",
  "long",
  "nope",
  "example.org",
  ".",
  `${NONCE}.dns11.invalid`,
  "2.0.20.172.in-addr.arpa",
  "5.0.20.172.in-addr.arpa",
  "6.0.20.172.IN-ADDR.arpa",
  "7.0.20.172.in-addr.arpa",
  `${nibbles("fd11::1:2")}.ip6.arpa`,
  `${nibbles("fd11::")}.ip6.arpa`,
  `${"y".repeat(63)}.${"z".repeat(63)}.${"y".repeat(63)}`,
  "Cluster.local",
  "web.dev.svc.cluster.local",
  "*.dev.endpoints.cluster.local",
  "_http._tcp.web.dev.svc.cluster.local",
  "10-8-0-1.dev.pod.cluster.local",
  "dns-version.cluster.local",
  "nope.dev.svc.cluster.local",
  "1.0.8.10.in-addr.arpa",
];

const TYPES = Object.values(TYPE);

export const QUERIES: readonly Buffer[] = NAMES.flatMap((name) => [
  ...TYPES.map((type) => aQuery({ name, type })),
  ...[TYPE.A, TYPE.AAAA, TYPE.PTR, TYPE.TXT].flatMap((type) => [
    aQuery({ name, type, opt: { udpSize: 1232 } }),
    aQuery({
      name,
      type,
      opt: {
        udpSize: 65_535,
        isDnssecOk: true,
        options: [
          [10, Buffer.alloc(8)],
          [12, Buffer.alloc(200)],
        ],
      },
    }),
    aQuery({ name, type, flags: 0x2000, opt: { version: 1 } }),
    aQuery({ name, type, answers: [aRecord({ owner: aPointer(12), type: TYPE.A, data: Buffer.alloc(4) })] }),
    aQuery({ name, type, authorities: [aSoa()], additionals: [anOpt(), anOpt({ udpSize: 512 })] }),
  ]),
]);

const LABELS_127 = Array.from({ length: 127 }, () => "b").join(".");
const LONGEST = [63, 63, 63, 61].map((size) => "a".repeat(size)).join(".");
const ALL = 0xffff;

// The offset of the record data in a message that queries "web" and has one record of the root after that.
const DATA_AT = 12 + aName("web").length + 4 + 11;

// Pointers, each to the one before, and the first to the question.
function pointers(count: number): Buffer {
  const targets = Array.from({ length: count }, (_, index) => (index === 0 ? 12 : DATA_AT + (index - 1) * 2));
  return Buffer.concat(targets.map((target) => aPointer(target)));
}

// A name that takes this many pointers to read.
function farPointer(count: number): Buffer {
  return aPointer(DATA_AT + (count - 2) * 2);
}

function withChain(count: number): Buffer {
  const chain = aRecord({ type: 10, data: pointers(count - 1) });
  return aQuery({ answers: [chain], additionals: [aRecord({ owner: farPointer(count), type: TYPE.A })] });
}

export const HOSTILE: readonly Buffer[] = [
  aQuery({ counts: [ALL, ALL, ALL, ALL] }),
  aQuery({ counts: [1, ALL, ALL, ALL], opt: {} }),
  aQuery({ name: aPointer(12) }),
  aQuery({ name: aPointer(0) }),
  aQuery({ name: aPointer(4) }),
  aQuery({ name: Buffer.concat([aPointer(14), aPointer(12)]) }),
  aQuery({ name: Buffer.concat([Buffer.from("\x01a"), aPointer(12)]) }),
  aQuery({
    name: Buffer.concat([Buffer.from("\x03web"), aPointer(12 + 6 + 4 + 11)]),
    additionals: [aRecord({ type: 10, data: aName("one") })],
  }),
  aQuery({ name: aPointer(12 + 2 + 4 + 11), additionals: [aRecord({ type: 10, data: aName(LONGEST) })] }),
  aQuery({
    name: aPointer(12 + 2 + 4 + 11),
    additionals: [aRecord({ type: 10, data: aName(LABELS_127) }), aRecord({ owner: aPointer(12), type: TYPE.A })],
  }),
  ...[2, 3, 125, 126, 127, 200].map((count) => withChain(count)),
  aQuery({ name: LABELS_127 }),
  aQuery({ name: `${LABELS_127}.b` }),
  aQuery({ name: LONGEST, type: TYPE.AAAA, opt: {} }),
  aQuery({ name: `${LONGEST}a` }),
  aQuery({ name: Buffer.from(`\x3f${"a".repeat(62)}\x00`) }),
  aQuery({
    name: Buffer.concat([Buffer.of(63), Buffer.from(Array.from({ length: 63 }, (_, octet) => octet)), Buffer.of(0)]),
  }),
  aQuery({ typeAndClass: Buffer.alloc(0), counts: [1, 1, 1, 2] }),
  aQuery({ opt: { options: Array.from({ length: 100 }, () => [8, Buffer.of(0, 1, 33, 0)] as const) } }),
  Buffer.alloc(512),
  Buffer.alloc(512, 0xff),
  Buffer.alloc(512, 0xc0),
  Buffer.alloc(12),
  Buffer.alloc(0),
];

function filled(bytes: number, head: Buffer, record: Buffer): Buffer {
  const left = Math.floor((bytes - head.length) / record.length);
  return Buffer.concat([head, ...Array.from({ length: left }, () => record)]);
}

const HEAD = aQuery({ counts: [1, ALL, ALL, ALL] });
const ONE_OPT_65K = 65_535 - 12 - 5 - 4 - 11;

// A name with the maximum number of pointers.
const FAR = farPointer(126);

// One record with as many names as fit: the rendezvous servers of HIP, two octets each.
function withNames(name: Buffer): Buffer {
  const chain = aRecord({ type: 10, data: pointers(125) });
  const room = 65_535 - aQuery({ answers: [chain], additionals: [aRecord({ type: TYPE.HIP })] }).length - 4;
  const data = Buffer.concat([Buffer.alloc(4), Buffer.alloc(room - (room % 2), name)]);
  return aQuery({ answers: [chain], additionals: [aRecord({ type: TYPE.HIP, data })] });
}

// The maximum size over TCP; each of them costs as much as hundreds of others.
export const HUGE: readonly Buffer[] = [
  withNames(FAR),
  withNames(aPointer(12)),
  filled(65_535, HEAD, aRecord({ owner: aPointer(12), type: TYPE.A, data: Buffer.alloc(4) })),
  filled(65_535, aQuery({ counts: [1, 1, 1, 2] }), aRecord({ type: TYPE.TXT, data: Buffer.from("\x01a") })),
  aQuery({
    opt: { options: Array.from({ length: Math.floor(ONE_OPT_65K / 4) }, () => [3, Buffer.alloc(0)] as const) },
  }),
  aQuery({ additionals: [aRecord({ type: TYPE.TXT, data: Buffer.alloc(ONE_OPT_65K) })], name: "web" }),
  aQuery({
    additionals: [aRecord({ type: 10, data: Buffer.concat([aName(LONGEST), Buffer.alloc(ONE_OPT_65K + 3 - 255)]) })],
    name: aPointer(12 + 2 + 4 + 11),
  }),
  Buffer.alloc(65_535, aQuery()),
  Buffer.alloc(65_535, 0xc0),
];

export const REPLIES: readonly Buffer[] = [
  aReplyTo(aQuery({ name: "example.org" }), 0, [
    aRecord({ owner: aPointer(12), type: TYPE.CNAME, data: aName("www.example.org") }),
    aRecord({ owner: "www.example.org", type: TYPE.A, data: Buffer.alloc(4) }),
    aRecord({ owner: aPointer(12), type: TYPE.AAAA, data: Buffer.alloc(16) }),
    aRecord({ owner: aPointer(12), type: TYPE.MX, data: Buffer.concat([u16(10), aPointer(12)]) }),
    aRecord({ owner: aPointer(12), type: TYPE.SRV, data: Buffer.concat([u16(1), u16(1), u16(1), aPointer(12)]) }),
    aRecord({ owner: aPointer(12), type: TYPE.TXT, data: Buffer.from("\x03abc\x00") }),
    aSoa(),
    anOpt({
      options: [
        [15, Buffer.from("\0\x16no")],
        [8, Buffer.of(0, 1, 24, 0, 192, 0, 2)],
      ],
    }),
  ]),
  aReplyTo(aQuery({ name: "nope" }), 3, [aSoa()]),
  ...chainsOfAliases(),
];

// What real servers send: chains of aliases, signed ones, a DNAME, referrals, negative answers, with unrelated records
// beside them.
function chainsOfAliases(): Buffer[] {
  const queried = "www.example.org";
  const alias = (owner: string | Buffer, target: string): Buffer =>
    aRecord({ owner, type: TYPE.CNAME, ttl: 60, data: aName(target) });
  const address = (owner: string | Buffer): Buffer =>
    aRecord({ owner, type: TYPE.A, ttl: 30, data: Buffer.of(192, 0, 2, 1) });
  const signature = (owner: string): Buffer =>
    aRecord({ owner, type: 46, data: Buffer.concat([Buffer.alloc(18), aName("example.org"), Buffer.alloc(8)]) });
  const soa = aRecord({
    owner: aPointer(16),
    type: TYPE.SOA,
    ttl: 900,
    data: Buffer.concat([aName("ns"), aName("mail"), Buffer.alloc(20, 1)]),
  });
  const server = aRecord({ owner: "example.org", type: TYPE.NS, data: aName("ns.example.org") });
  const of = (rcode: number, answers: Buffer[], authorities: Buffer[] = [], additionals: Buffer[] = []): Buffer =>
    aQuery({ flags: 0x8180 | rcode, name: queried, answers, authorities, additionals });
  return [
    of(0, [address(aPointer(12)), address(aPointer(12))], [], [anOpt()]),
    of(0, [alias(aPointer(12), "a.example.net"), alias("a.example.net", "b.example.net"), address("B.example.NET")]),
    of(0, [address("b.example.net"), alias("a.example.net", "b.example.net"), alias(aPointer(12), "a.example.net")]),
    of(
      0,
      [alias(aPointer(12), "a.org"), signature(queried), address("a.org"), signature("a.org")],
      [server],
      [anOpt()],
    ),
    of(0, [
      aRecord({ owner: "example.org", type: TYPE.DNAME, data: aName("example.net") }),
      address("www.example.net"),
    ]),
    of(0, [address(aPointer(12)), address("victim.test")], [server], [address("ns.example.org"), address("no.test")]),
    of(0, [address("victim.test")]),
    of(0, [], [server]),
    of(0, [], [aRecord({ owner: ".", type: TYPE.NS, data: aName("a.root-servers.net") })]),
    of(3, [alias(aPointer(12), "gone.example.org")], [soa], [anOpt()]),
    of(3, [], [soa]),
    of(0, [aRecord({ owner: aPointer(12), type: TYPE.SRV, data: Buffer.concat([Buffer.alloc(6), aName("a.test")]) })]),
  ];
}

// Thousands of records whose names have the maximum number of pointers, and one record with thousands of such names.
export const HUGE_REPLIES: readonly Buffer[] = [
  withNames(FAR),
  filled(65_535, HEAD, aRecord({ owner: aPointer(12), type: TYPE.A, data: Buffer.alloc(4) })),
  chained(aRecord({ owner: FAR, type: 10 })),
  chained(aRecord({ owner: FAR, type: TYPE.CNAME, data: FAR })),
  chained(aRecord({ owner: FAR, type: TYPE.SOA, data: Buffer.concat([FAR, FAR, Buffer.alloc(20)]) })),
  // As many questions as a header can announce.
  Buffer.concat([u16(1), u16(0x8180), u16(ALL), Buffer.alloc(6), Buffer.alloc(60_000, Buffer.of(0, 0, 1, 0, 1))]),
];

function chained(record: Buffer): Buffer {
  const head = aQuery({ answers: [aRecord({ type: 10, data: pointers(125) })], counts: [1, ALL, ALL, ALL] });
  return filled(65_535, head, record);
}

function aSoa(): Buffer {
  return aRecord({ type: TYPE.SOA, data: Buffer.concat([aName("ns"), aName("mail"), Buffer.alloc(20)]) });
}

function nibbles(address: string): string {
  const labels = Buffer.from(reverseLabels(addressBytes(address) ?? Buffer.alloc(0)));
  return presentation(labels, 0, labels.length);
}
