// Malformed queries: each field of a message wrong in every way that a parser may notice.

import { RECORDS } from "../raw-records.ts";
import { FLAG, SIGNATURE, TYPE, hex, opt, padding, pointerTo, record, strings, u16, wireName } from "../octets.ts";
import { type QueryParts, type Question, byTcp, byUdp, odd, query } from "../question.ts";
import { BROKEN_DATA } from "./broken-data.ts";

const NAMES = ["alpha", "x4.ok.test"] as const;
const A_RECORD = record({ owner: "x.test", type: TYPE.A, data: Buffer.of(192, 0, 2, 1) });

export function malformedQuestions(): Question[] {
  return [
    ...NAMES.flatMap((name) => aroundName(name)),
    ...names(),
    ...odd(pointers()),
    ...odd(records()),
    ...lengths(),
  ];
}

function both(label: string, message: Buffer): Question[] {
  return [byUdp("plain", label, message), byTcp("plain", label, message)];
}

function aroundName(name: string): Question[] {
  const whole = query({ name });
  const cut = Array.from({ length: whole.length }, (_, length) => whole.subarray(0, length));
  const counted = (counts: QueryParts["counts"] & {}, label: string, behind: readonly Buffer[] = []): Question[] => {
    return both(`${label}: ${counts.join(" ")} ${name}`, query({ name, counts, records: behind }));
  };
  const second = Buffer.concat([wireName("beta"), u16(1, 1)]);
  return [
    ...cut.flatMap((message) => both(`cut to ${message.length} of ${name}`, message)),
    ...both(`a reply ${name}`, query({ name, flags: FLAG.QR })),
    ...both(`a reply, header only ${name}`, query({ name, flags: FLAG.QR }).subarray(0, 12)),
    ...both(`junk behind ${name}`, query({ name, tail: hex("00 ff c0 0c") })),
    ...both(`junk behind OPT ${name}`, query({ name, records: [opt()], tail: hex("00") })),
    ...[0, 2, 3, 255, 65535].flatMap((questions) => counted([questions, 0, 0, 0], "questions")),
    ...counted([2, 0, 0, 0], "two questions", [second]),
    ...[1, 2, 256, 65535].flatMap((count) => [
      ...counted([1, count, 0, 0], "answers, none there"),
      ...counted([1, 0, count, 0], "authorities, none there"),
      ...counted([1, 0, 0, count], "additionals, none there"),
      ...counted([1, count, 0, 0], "answers, one there", [A_RECORD]),
      ...counted([1, 0, count, 0], "authorities, one there", [A_RECORD]),
      ...counted([1, 0, 0, count], "additionals, one there", [A_RECORD]),
    ]),
    ...counted([1, 0, 0, 2], "OPT and nothing", [opt({ size: 4096 })]),
    ...counted([1, 0, 0, 3], "three additionals", [A_RECORD, opt(), A_RECORD]),
    ...counted([1, 1, 1, 2], "all sections", [A_RECORD, A_RECORD, opt(), A_RECORD]),
    ...counted([1, 1, 1, 1], "all sections, one record", [A_RECORD]),
    ...counted([0, 0, 0, 1], "no question but OPT", [opt()]),
    ...counted([0, 1, 1, 2], "a header alone"),
    ...both(`a header alone, no question ${name}`, query({ counts: [0, 0, 0, 0] }).subarray(0, 12)),
    ...both(`class missing ${name}`, query({ name }).subarray(0, -2)),
    ...both(`class missing, OPT announced ${name}`, query({ name, counts: [1, 0, 0, 1] }).subarray(0, -2)),
    ...both(`type missing, all announced ${name}`, query({ name, counts: [1, 1, 1, 2] }).subarray(0, -4)),
  ];
}

function names(): Question[] {
  const label63 = "n".repeat(63);
  const octets: Readonly<Record<string, Buffer>> = {
    "label of 63": wireName(`${label63}.ok.test`),
    "label of 64": wireName(`${label63}n.ok.test`),
    "label of 128": wireName(`${"n".repeat(128)}.ok.test`),
    "name of 255": wireName(`${`${label63}.`.repeat(3)}${"n".repeat(53)}.ok.test`),
    "name of 256": wireName(`${`${label63}.`.repeat(3)}${"n".repeat(54)}.ok.test`),
    "name of 300": wireName(`${`${label63}.`.repeat(4)}${"n".repeat(34)}.ok.test`),
    "127 labels": wireName(`${"a.".repeat(122)}ok.test`),
    "128 labels": wireName(`${"a.".repeat(128)}ok.test`),
    "a zero octet": wireName("a\\000b.ok.test"),
    "high octets": wireName("\\200\\255.ok.test"),
    "a dot in a label": wireName("x\\.y.ok.test"),
    "label type 01": hex("41 61 00"),
    "label type 10": hex("81 61 00"),
    "reserved length in the middle": hex("05 616c706861 40 00"),
    "no end": hex("05 616c706861"),
    "longer than there is": hex("3f 616c706861 00"),
  };
  const types = [TYPE.A, TYPE.MX, TYPE.PTR, TYPE.TXT];
  return Object.entries(octets).flatMap(([label, name]) =>
    types.flatMap((type) => both(`${label} ${type}`, query({ name, type }))),
  );
}

function pointers(): Question[] {
  const behind = 12 + 2 + 4;
  const cases: Readonly<Record<string, QueryParts>> = {
    "to itself": { name: pointerTo(12) },
    "to each other": { name: Buffer.concat([pointerTo(14), pointerTo(12)]) },
    "loop with a label": { name: hex("01 61 c00c") },
    "to the end": { name: pointerTo(18) },
    "past the end": { name: pointerTo(0x3fff) },
    "to a name behind": { name: pointerTo(behind), tail: wireName("alpha") },
    "to a name behind, upper case": { name: pointerTo(behind), tail: wireName("ALPHA.net1") },
    "to a suffix behind": {
      name: Buffer.concat([hex("05 616c706861"), pointerTo(12 + 8 + 4)]),
      tail: wireName("net1"),
    },
    "to a name behind, with OPT": {
      name: pointerTo(behind),
      counts: [1, 0, 0, 1],
      tail: Buffer.concat([opt({ size: 4096 }), wireName("alpha")]).subarray(0),
    },
    "to a record's name": {
      name: pointerTo(behind),
      records: [record({ owner: "alpha", type: TYPE.A, data: u16(1, 2) })],
    },
    "to an upstream name behind": { name: pointerTo(behind), tail: wireName("x5.ok.test") },
    "to an upstream name's record": {
      name: pointerTo(behind),
      records: [record({ owner: "x6.ok.test", type: TYPE.A, data: u16(1, 2) })],
    },
    "to a root behind": { name: pointerTo(behind), tail: hex("00") },
    "into the header": { name: pointerTo(2) },
    "into the counts": { name: pointerTo(6) },
    "to a bad label behind": { name: pointerTo(behind), tail: hex("40 00") },
    "to a cut label behind": { name: pointerTo(behind), tail: hex("05 6100") },
    "half a pointer": { name: hex("c0") },
    "to a chain": { name: pointerTo(behind), tail: Buffer.concat([pointerTo(behind + 2), wireName("alpha")]) },
    "to a long chain": { name: pointerTo(behind), tail: chain(behind, 124) },
    "to a chain of 125": { name: pointerTo(behind), tail: chain(behind, 125) },
    "to a chain of 126": { name: pointerTo(behind), tail: chain(behind, 126) },
    "to a name of 300": { name: pointerTo(behind), tail: wireName(`${"n".repeat(60)}.`.repeat(5)) },
  };
  return Object.entries(cases).flatMap(([label, parts]) => [
    ...both(`pointer ${label}`, query(parts)),
    ...both(`pointer ${label}, PTR`, query({ ...parts, type: TYPE.PTR })),
  ]);
}

// A chain of pointers that ends in a name.
function chain(start: number, length: number): Buffer {
  const links = Array.from({ length }, (_, index) => pointerTo(start + (index + 1) * 2));
  return Buffer.concat([...links, wireName("alpha")]);
}

function records(): Question[] {
  const known = Object.entries(RECORDS).map(
    ([label, parts]) => [label, record({ owner: "x.test", ...parts })] as const,
  );
  const all: readonly (readonly [string, Buffer])[] = [
    ...known,
    ...BROKEN_DATA.map(([label, type, data]) => [label, record({ owner: "x.test", type, data })] as const),
    ["length over the end", record({ type: TYPE.A, data: Buffer.of(1, 2, 3, 4), length: 400 })],
    ["length short", record({ type: TYPE.A, data: Buffer.of(1, 2, 3, 4), length: 3 })],
    ["length zero", record({ type: TYPE.A, data: Buffer.of(1, 2, 3, 4), length: 0 })],
    ["owner loops", record({ owner: pointerTo(23), type: TYPE.A, data: u16(1, 2) })],
    ["owner points to the question", record({ owner: pointerTo(12), type: TYPE.A, data: u16(1, 2) })],
    ["owner too long", record({ owner: `${"n".repeat(60)}.`.repeat(5), type: TYPE.A, data: u16(1, 2) })],
    ["owner of a bad label", record({ owner: hex("4100"), type: TYPE.A, data: u16(1, 2) })],
    ["a signed message", SIGNATURE],
    ["a text", record({ owner: "x.test", type: TYPE.TXT, data: strings("a", "b") })],
  ];
  return all.flatMap(([label, octets]) => [
    ...both(`record ${label}, known`, query({ name: "alpha", records: [octets] })),
    byUdp("plain", `record ${label}, forwarded`, query({ name: "x7.ok.test", records: [octets] })),
    byTcp(
      "plain",
      `record ${label} as an answer`,
      query({ name: "x8.ok.test", counts: [1, 1, 0, 0], records: [octets] }),
    ),
    byUdp("plain", `record ${label} before OPT`, query({ name: "alpha", records: [octets, opt()] })),
  ]);
}

function lengths(): Question[] {
  const sizes = [500, 511, 512, 513, 519, 600, 1232, 4095, 4096, 4097, 9000];
  return sizes.flatMap((size) =>
    NAMES.flatMap((name) => {
      const empty = query({ name, records: [opt({ options: [padding(0)] })] });
      const padded = query({ name, records: [opt({ options: [padding(size - empty.length)] })] });
      const trailing = query({ name, tail: Buffer.alloc(size - query({ name }).length, 0x61) });
      return [...both(`${size} octets padded ${name}`, padded), ...both(`${size} octets with junk ${name}`, trailing)];
    }),
  );
}
