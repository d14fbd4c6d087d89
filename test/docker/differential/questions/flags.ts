// Questions about everything in a query except its name: flags, opcodes, classes and EDNS.

import { CROWD_LONG_ALIAS } from "../topology.ts";
import { CLASS, FLAG, TYPE, opt } from "../octets.ts";
import { type Question, byTcp, byUdp, odd, query } from "../question.ts";
import { ODD_OPTS, OPTS, everyOption } from "./opts.ts";

// Answered locally, answered without records, and forwarded, with and without success.
const NAMES: readonly (readonly [string, number])[] = [
  ["alpha", TYPE.A],
  ["alpha", TYPE.AAAA],
  ["Alpha.net1", TYPE.MX],
  ["x3.ok.test", TYPE.A],
  ["alpha", TYPE.TXT],
  ["x.servfail.test", TYPE.A],
];

export function flagQuestions(): Question[] {
  return [...headers(), ...classes(), ...edns(OPTS), ...odd(edns(ODD_OPTS)), ...odd(options()), ...sizes()];
}

function both(from: string, label: string, message: Buffer): Question[] {
  return [byUdp(from, label, message), byTcp(from, label, message)];
}

function headers(): Question[] {
  const flags = [0, FLAG.RD, FLAG.AA, FLAG.TC, FLAG.RA, FLAG.Z, FLAG.AD, FLAG.CD, 0x7f0 & ~0x800, 0xf, 0x7ff, 0x5];
  const opcodes = Array.from({ length: 16 }, (_, opcode) => opcode);
  return NAMES.flatMap(([name, type]) => [
    ...flags.flatMap((bits) => both("plain", `flags ${bits} ${type} ${name}`, query({ name, type, flags: bits }))),
    ...opcodes.flatMap((opcode) => [
      byUdp("plain", `opcode ${opcode} ${type} ${name}`, query({ name, type, opcode })),
      byTcp("plain", `opcode ${opcode} all flags ${type} ${name}`, query({ name, type, opcode, flags: 0x7ff })),
      byUdp("plain", `opcode ${opcode} no flags ${type} ${name}`, query({ name, type, opcode, flags: 0 })),
    ]),
  ]);
}

function classes(): Question[] {
  const values = [...Object.values(CLASS), 0, 2, 5, 65535];
  return [...NAMES, ["1.0.0.127.in-addr.arpa", TYPE.PTR] as const].flatMap(([name, type]) => {
    return values.map((value) => byUdp("plain", `class ${value} ${type} ${name}`, query({ name, type, class: value })));
  });
}

function edns(opts: typeof OPTS): Question[] {
  return Object.entries(opts).flatMap(([name, records]) =>
    NAMES.flatMap(([queried, type]) => {
      const label = `EDNS ${name}: ${type} ${queried}`;
      return both("plain", label, query({ name: queried, type, records }));
    }),
  );
}

// Answered locally, and forwarded.
function options(): Question[] {
  return Object.entries(everyOption()).flatMap(([label, records]) =>
    ["alpha", "x3.ok.test"].map((name) => byUdp("plain", `EDNS ${label}: ${name}`, query({ name, records }))),
  );
}

function sizes(): Question[] {
  const names = ["crowd", "Crowd.Dual", CROWD_LONG_ALIAS, `${CROWD_LONG_ALIAS}.Dual`];
  const records = Object.entries(OPTS).filter(([name]) =>
    /^(none|\d+|do|two.*|.*address|version 1|cookie)$/.test(name),
  );
  const announced = [600, 700, 764, 765, 1279, 1280, 1281, 1450, 2000, 3000, 3072, 10_000];
  const exact = announced.map((size) => [`${size}`, [opt({ size })]] as const);
  const local = names.flatMap((name) =>
    [TYPE.A, TYPE.AAAA].flatMap((type) =>
      [...records, ...exact].flatMap(([label, opts]) => {
        return both("crowd0", `size ${label}: ${type} ${name}`, query({ name, type, records: opts }));
      }),
    ),
  );
  // An OPT record in any other section announces no size.
  const misplaced = (
    [
      [1, 1, 0, 0],
      [1, 0, 1, 0],
    ] as const
  ).map((counts) => {
    return byUdp(
      "crowd0",
      `OPT in section ${counts.indexOf(1, 1)}`,
      query({ name: "crowd", counts, records: [opt({ size: 4096 })] }),
    );
  });
  return [...local, ...misplaced];
}
