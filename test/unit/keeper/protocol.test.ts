/**
 * Protocol: messages survive encoding, and invalid ones are rejected.
 */
import assert from "node:assert/strict";
import { test } from "node:test";

import {
  type FromKeeper,
  type ToKeeper,
  decodeFromKeeper,
  decodeToKeeper,
  encode,
} from "../../../src/keeper/protocol.ts";
import type { HeldNamespace } from "../../../src/base/model/held-namespace.ts";

const NAMESPACE: HeldNamespace = {
  id: "4:4026532281",
  netlink: 20,
  tables: [
    { family: "ip", name: "dns11" },
    { family: "ip6", name: "dns11" },
  ],
  zone: 4711,
  spared: [40001, 40002],
  pairs: [
    { udp: 21, tcp: 22, listening: { address: "127.0.0.11", udpPort: 1053, tcpPort: 1054 } },
    { udp: 23, tcp: 24, listening: { address: "::1", udpPort: 1055, tcpPort: 1056 } },
  ],
  programs: [25, 26],
  gate: 20,
  isOwned: true,
  isLocked: false,
  alone: "refuse",
};

test("every message survives encoding and decoding", () => {
  const toKeeper: ToKeeper[] = [
    { is: "hello", version: 1 },
    { is: "hold", key: 7, namespace: NAMESPACE },
    { is: "release", key: 7 },
    { is: "beat" },
    { is: "refuse", reason: "it is in another mount namespace" },
    { is: "yield" },
    { is: "end" },
    { is: "take" },
    { is: "taken" },
  ];
  for (const message of toKeeper) assert.deepEqual(decodeToKeeper(encode(message)), message);
  const fromKeeper: FromKeeper[] = [
    { is: "hello", version: 1, keeper: 11, main: 10, refusing: 3 },
    { is: "alive" },
    { is: "wanted", successor: 4711 },
    { is: "back" },
    { is: "gone", successor: 12 },
    { is: "held", namespace: NAMESPACE },
    { is: "all", count: 1 },
    { is: "refused", reason: "because" },
  ];
  for (const message of fromKeeper) assert.deepEqual(decodeFromKeeper(encode(message)), message);
});

test("invalid messages are rejected", () => {
  const { bytes, descriptors } = encode({ is: "hold", key: 1, namespace: NAMESPACE });
  const { namespace: encoded } = JSON.parse(bytes.toString()) as {
    namespace: Omit<HeldNamespace, "pairs"> & { readonly pairs: readonly object[] };
  };
  const valid = Buffer.from(JSON.stringify({ is: "hold", key: 1, namespace: encoded }));
  assert.notEqual(decodeToKeeper({ bytes: valid, descriptors }), undefined);
  const broken: unknown[] = [
    null,
    [],
    "beat",
    {},
    { is: "what" },
    { is: "hello", version: "1" },
    { is: "hold", key: -1, namespace: encoded },
    { is: "hold", key: 1 },
    { is: "hold", key: 1, namespace: { ...encoded, zone: 65_536 } },
    { is: "hold", key: 1, namespace: { ...encoded, isOwned: 1 } },
    { is: "hold", key: 1, namespace: { ...encoded, isLocked: undefined } },
    { is: "hold", key: 1, namespace: { ...encoded, hasGate: "yes" } },
    { is: "hold", key: 1, namespace: { ...encoded, alone: "open" } },
    { is: "hold", key: 1, namespace: { ...encoded, id: 4 } },
    { is: "hold", key: 1, namespace: { ...encoded, tables: [{ family: "inet", name: "dns11" }] } },
    { is: "hold", key: 1, namespace: { ...encoded, tables: "dns11" } },
    { is: "hold", key: 1, namespace: { ...encoded, spared: [0.5] } },
    { is: "hold", key: 1, namespace: { ...encoded, programs: 1 } },
    { is: "hold", key: 1, namespace: { ...encoded, pairs: encoded.pairs.slice(1) } },
    { is: "hold", key: 1, namespace: { ...encoded, pairs: Array.from({ length: 1_000 }, () => encoded.pairs[0]) } },
    { is: "hold", key: 1, namespace: { ...encoded, pairs: [{ ...encoded.pairs[0], udpPort: -1 }, encoded.pairs[1]] } },
    { is: "release", key: 1e300 },
  ];
  for (const message of broken) {
    assert.equal(decodeToKeeper({ bytes: Buffer.from(JSON.stringify(message)), descriptors }), undefined);
  }
  assert.equal(decodeToKeeper({ bytes: Buffer.from("{"), descriptors: [] }), undefined);
  assert.equal(decodeFromKeeper({ bytes: Buffer.from('{"is":"gone"}'), descriptors: [] }), undefined);
  const withoutDescriptors = Buffer.from(JSON.stringify({ is: "hold", key: 1, namespace: encoded }));
  assert.equal(decodeToKeeper({ bytes: withoutDescriptors, descriptors: [] }), undefined);
});
