// Proves what a client without EDNS gets of an answer whose CNAMEs leave no room for an address: addresses, and that there is more.

import assert from "node:assert/strict";
import { test } from "node:test";

import * as fc from "fast-check";

import { type RelayOptions, relay, rotateAddresses } from "../../../../src/query/wire/relay.ts";
import { type FreshReply, readFreshReply } from "../../../../src/query/wire/shared-reply.ts";
import { TYPE, aName, aPointer, aQuery, aRecord, aReplyTo } from "../../../support/scripted/builders.ts";
import { type Reply, readReply } from "../../support/reply.ts";

const NAME = "start.test";
const PLAIN: RelayOptions = {
  ...{ limit: 512, hasOpt: false, isDnssecOk: false, wantsAuthentic: true, isLocalName: false },
  endsChain: true,
};
const AD = 0x20;

interface Chain {
  readonly links: number;
  /** Octets of each label of a link's target, of which it has three. */
  readonly label: number;
  readonly addresses: number;
  readonly type?: number;
  readonly rcode?: number;
}

function replyOf({ links, label, addresses, type = TYPE.A, rcode = 0 }: Chain): FreshReply {
  const query = aQuery({ name: NAME, type });
  const target = (link: number): string =>
    [0, 1, 2].map((part) => String.fromCharCode(97 + link + part).repeat(label)).join(".");
  const owner = (link: number): Buffer => (link === 0 ? aPointer(12) : aName(target(link)));
  const records = Array.from({ length: links }, (_, link) =>
    aRecord({ owner: owner(link), type: TYPE.CNAME, ttl: 100 - link, data: aName(target(link + 1)) }),
  );
  const size = type === TYPE.AAAA ? 16 : 4;
  for (let i = 0; i < addresses; i++)
    records.push(aRecord({ owner: owner(links), type, ttl: 90, data: Buffer.alloc(size, i + 1) }));
  const message = aReplyTo(query, rcode, records);
  message[3] = (message[3] as number) | AD;
  return readFreshReply(message) ?? assert.fail("the reply cannot be read");
}

function given(chain: Chain, options: Partial<RelayOptions> = {}, seconds = 0): Reply {
  const reply = replyOf(chain);
  const { type = TYPE.A } = chain;
  const block = Buffer.alloc(4096);
  aQuery({ name: NAME, type }).copy(block, 7);
  const length = relay(block, 7, { ...PLAIN, ...options }, reply, { seconds });
  rotateAddresses(block, 7, reply, type);
  assert.ok(length <= (options.limit ?? PLAIN.limit));
  return readReply(block.subarray(7, 7 + length));
}

const LONG: Chain = { links: 4, label: 60, addresses: 3 };

test("without room for an address it gets them without the chain, truncated, with the shortest TTL, and not as validated", () => {
  for (const type of [TYPE.A, TYPE.AAAA]) {
    const { flags, answers } = given({ ...LONG, type }, {}, 7);
    assert.equal(flags, "qr tc rd ra");
    assert.deepEqual(
      answers.map(({ owner, type: of, ttl }) => [owner, of, ttl]),
      Array.from({ length: 3 }, () => [NAME, type, 83]),
    );
    assert.deepEqual(new Set(answers.map(({ data }) => data[0])), new Set([1, 2, 3]));
  }
});

test("another address comes first each time", () => {
  const firsts = new Set(Array.from({ length: 200 }, () => given(LONG).answers[0]?.data[0]));
  assert.deepEqual(firsts, new Set([1, 2, 3]));
});

test("as many as fit", () => {
  const { answers, flags } = given({ ...LONG, addresses: 200, type: TYPE.AAAA });
  assert.equal(answers.length, Math.floor((512 - 28) / 28));
  assert.ok(flags.includes("tc"));
});

const types = ({ answers }: Reply): number[] => [...new Set(answers.map(({ type }) => type))];

test("with EDNS or a policy, of other types, or where there is no address, it gets what fits, as before", () => {
  assert.deepEqual(types(given(LONG, { endsChain: false })), [TYPE.CNAME]);
  assert.deepEqual(types(given({ ...LONG, addresses: 0 })), [TYPE.CNAME]);
  assert.deepEqual(types(given({ ...LONG, rcode: 2 })), [TYPE.CNAME]);
  assert.deepEqual(types(given({ ...LONG, type: TYPE.MX })), [TYPE.CNAME]);
});

test("where one address fits after the chain, and where all do, the chain stays", () => {
  const some = given({ links: 2, label: 30, addresses: 40 });
  assert.deepEqual([types(some), some.flags.includes("tc")], [[TYPE.CNAME, TYPE.A], true]);
  const all = given({ links: 2, label: 10, addresses: 3 });
  assert.deepEqual([types(all), all.flags.includes("tc"), all.answers.length], [[TYPE.CNAME, TYPE.A], false, 5]);
});

test("whatever the chain, an address is given if there is one, and the reply fits and can be read", () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 0, max: 8 }),
      fc.integer({ min: 1, max: 63 }),
      fc.integer({ min: 0, max: 60 }),
      fc.constantFrom(TYPE.A, TYPE.AAAA),
      (links, label, addresses, type) => {
        const { answers } = given({ links, label, addresses, type });
        assert.equal(
          answers.some((each) => each.type === type),
          addresses > 0,
        );
      },
    ),
  );
});
