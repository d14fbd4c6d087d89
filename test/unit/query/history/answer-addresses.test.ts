// Proves that addresses are found in any reply, also a damaged one, without reading beyond it.

import assert from "node:assert/strict";
import { test } from "node:test";

import * as fc from "fast-check";

import { HEADER_BYTES } from "../../../../src/base/dns/header.ts";
import { addressAt, addressSize, findAddresses } from "../../../../src/query/history/query-history.ts";
import { runs } from "../../../support/rig/runs.ts";
import { TYPE, aName, aQuery, aRecord, aReplyTo } from "../../../support/scripted/builders.ts";
import { anOutcome } from "../../support/outcome.ts";

const NAME = "web";
const NAME_END = HEADER_BYTES + aName(NAME).length;

test("a damaged reply yields at most two addresses, and what follows it is never read", () => {
  const type = fc.constantFrom(TYPE.A, TYPE.AAAA);
  const damage = fc.array(fc.record({ at: fc.nat(200), byte: fc.nat(255) }), { maxLength: 6 });
  fc.assert(
    fc.property(type, fc.nat(5), damage, fc.nat(120), (kind, count, bytes, cut) => {
      const record = aRecord({ owner: Buffer.of(0xc0, 12), type: kind, data: Buffer.alloc(addressSize(kind), 7) });
      const reply = aReplyTo(
        aQuery({ name: NAME, type: kind }),
        0,
        Array.from({ length: count }, () => record),
      );
      for (const { at, byte } of bytes) if (at > NAME_END && at < reply.length) reply[at] = byte;
      const length = Math.max(NAME_END, reply.length - cut);
      const outcome = anOutcome({ reply: reply.subarray(0, length), nameEnd: NAME_END, type: kind });
      const found = [...addressAt.subarray(0, findAddresses(outcome))];
      assert.ok(found.every((at) => at > outcome.nameEnd && at + addressSize(kind) <= outcome.at + length));
    }),
    { numRuns: runs(200) },
  );
});

test("a long chain of aliases is given up", () => {
  const alias = aRecord({ owner: Buffer.of(0xc0, 12), type: TYPE.CNAME, data: aName("x") });
  const address = aRecord({ owner: Buffer.of(0xc0, 12), type: TYPE.A, data: Buffer.of(10, 0, 0, 1) });
  const chain = (length: number): number => {
    const reply = aReplyTo(aQuery({ name: NAME }), 0, [...Array.from({ length }, () => alias), address]);
    return findAddresses(anOutcome({ reply, nameEnd: NAME_END, type: TYPE.A }));
  };
  assert.deepEqual([chain(7), chain(8)], [1, 0]);
});
