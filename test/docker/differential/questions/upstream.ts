// Questions that only an upstream server can answer: which servers are queried, in which order, which reply ends the query,
// and whether replies arrive unchanged.

import { SIGNATURE, TYPE, opt } from "../octets.ts";
import { RAW_CASES } from "../raw-replies.ts";
import { type Question, SLOW_WAIT_MS, WAIT_MS, byTcp, byUdp, query } from "../question.ts";

export function upstreamQuestions(): Question[] {
  return [...everyContainer(), ...ladders(), ...raw(), ...slow()];
}

const EVERYWHERE = [
  ...["plain", "linker", "multi", "preferring", "sixOnly", "innerOnly", "innerGiven", "dotted", "fromBridge", "ndots0"],
  ...["ndots5", "ndotsBad", "given", "itself", "itselfToo", "loopback", "sixServer", "bothServers"],
];

// What every container gets from upstream, and which queries its options keep from being forwarded.
function everyContainer(): Question[] {
  const names = [
    "x9.ok.test",
    "x.nx.test",
    "single",
    "SINGLE",
    ".",
    "nobody.net1",
    "two.labels",
    "x.refused.test",
    "alpha.NET1",
  ];
  const types = [TYPE.A, TYPE.AAAA, TYPE.TXT, TYPE.MX, TYPE.PTR, TYPE.SRV];
  return EVERYWHERE.flatMap((from) =>
    names.flatMap((name) =>
      types.map((type) => (type === TYPE.A ? byTcp : byUdp)(from, `${from}: ${type} ${name}`, query({ name, type }))),
    ),
  );
}

const WORDS = [
  ...["ok", "nodata", "nx", "nxaa", "servfail", "refused", "formerr", "notimp", "yxdomain", "notauth", "rcode15", "tc"],
  ...["garbage", "short", "cut", "strayfirst", "twice", "late", "cname", "big", "oversize"],
];
const STRAY_WORDS = ["empty", "straygarbage"];

function ladders(): Question[] {
  const rungs = WORDS.flatMap((word) => [
    `${word}.ok.ok.ok`,
    `servfail.${word}.ok.ok`,
    `refused.servfail.${word}.ok`,
    `servfail.refused.servfail.${word}`,
  ]);
  const strays = STRAY_WORDS.map((word) => {
    const name = `${word}.ok.ok.ok.x.ladder.test`;
    return byUdp("plain", `stray: ${word}`, query({ name }));
  });
  const all = ["plain", "given", "itselfToo"].flatMap((from) =>
    rungs.flatMap((rung) => {
      const name = `${rung}.x.ladder.test`;
      return [
        byUdp(from, `${from}: ${name}`, query({ name })),
        byUdp(from, `${from}: ${name} with EDNS`, query({ name, type: TYPE.TXT, records: [opt({ size: 1232 })] })),
        byTcp(from, `${from}: ${name}`, query({ name })),
      ];
    }),
  );
  return [...strays, ...all];
}

function raw(): Question[] {
  return RAW_CASES.flatMap((name) => {
    const queried = `${name}.raw.test`;
    const waitMs = name === "nothing" ? SLOW_WAIT_MS : WAIT_MS;
    const large = [opt({ size: 4096, isDnssecOk: true })];
    return [
      byUdp("plain", `raw ${name}`, query({ name: queried }), waitMs),
      byUdp("plain", `raw ${name} with EDNS`, query({ name: queried, records: large }), waitMs),
      byUdp("plain", `raw ${name} with EDNS of 512`, query({ name: queried, records: [opt({ size: 512 })] }), waitMs),
      byTcp("plain", `raw ${name}`, query({ name: queried.toUpperCase() }), waitMs),
    ];
  });
}

function slow(): Question[] {
  const names = [
    ...["silent.ok.ok.ok", "silent.silent.ok.ok", "silent.silent.silent.ok", "wrongid.ok.ok.ok", "toolate.ok.ok.ok"],
    ...["wrongid.servfail.silent.ok", "silent.garbage.ok.ok"],
  ];
  return [
    ...names.flatMap((rung) => {
      const name = `${rung}.x.ladder.test`;
      return [byUdp("plain", name, query({ name }), SLOW_WAIT_MS), byTcp("given", name, query({ name }), SLOW_WAIT_MS)];
    }),
    byUdp("sixServer", "signed, and one server alone", query({ name: "x.ok.test", records: [SIGNATURE] })),
    byUdp("lostFirst", "no way to the first server", query({ name: "x.ok.test" }), SLOW_WAIT_MS),
  ];
}
