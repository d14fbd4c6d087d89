// Random questions, the same in every run: valid queries with random damage, and queries whose replies are damaged.

import { TYPE, opt, option, padding, record, u16 } from "../octets.ts";
import { randomSource, mutated } from "../mutant.ts";
import { type Question, byTcp, byUdp, odd, query } from "../question.ts";
import { RECORDS } from "../raw-records.ts";

const QUERIES = 400;
const REPLIES = 300;

const GOOD: readonly Buffer[] = [
  query({ name: "alpha" }),
  query({ name: "shared.net1" }),
  query({ name: "x1.ok.test", type: TYPE.TXT }),
  query({ name: "alpha", type: TYPE.MX, records: [opt({ options: [option(10, Buffer.alloc(8, 1)), padding(9)] })] }),
  query({ name: "x2.ok.test", records: [opt({ options: [option(8, u16(1, 0x1800, 0xc000))] })] }),
  query({ name: "alpha", records: [record({ owner: "x.test", ...(RECORDS["soa"] ?? { type: TYPE.SOA }) }), opt()] }),
  query({ name: "alpha", counts: [1, 1, 0, 0], records: [record({ ...(RECORDS["https"] ?? { type: TYPE.A }) })] }),
];

export function mutantQuestions(): Question[] {
  const queries = Array.from({ length: QUERIES }, (_, seed) => {
    const draw = randomSource(seed);
    const message = mutated(GOOD[draw(GOOD.length)] ?? Buffer.alloc(12), draw, 2);
    return (draw(3) === 0 ? byTcp : byUdp)("plain", `mutant ${seed}`, message);
  });
  const replies = Array.from({ length: REPLIES }, (_, seed) => {
    const message = query({ name: `${seed}.mutant.test` });
    return (seed % 4 === 0 ? byTcp : byUdp)("plain", `reply of mutant ${seed}`, message);
  });
  return [...odd(queries), ...replies];
}
