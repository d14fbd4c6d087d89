// Proves when containers of which nothing is known but their addresses are held, and when they are released.

import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";

import { type EnforcementState, HeldUntilKnown } from "../../../src/features/policy/enforce/enforcement.ts";

const A = Uint8Array.of(10, 0, 0, 1);
const B = Uint8Array.of(10, 0, 0, 2);

let isHolding: boolean;
let kernel: string[];
let states: Map<string, EnforcementState>;
let reported: string[];
let held: HeldUntilKnown;

beforeEach(() => {
  isHolding = true;
  kernel = [];
  states = new Map();
  reported = [];
  held = new HeldUntilKnown({
    isHolding: () => isHolding,
    hold: async (addresses, keepsOthers) => {
      kernel.push(`${addresses.map((each) => each.join(".")).join(" ")}${keepsOthers ? "" : " alone"}`);
      await Promise.resolve();
    },
    stateOf: (id) => states.get(id),
    onHeld: (id) => reported.push(id),
    onError: (error) => reported.push(String(error)),
  });
});

async function settle(): Promise<void> {
  await new Promise((resolve) => setImmediate(resolve));
}

test("a container is held until it is known, and until the kernel has the policy that it has", async () => {
  held.late("a", [A]);
  held.late("b", [B]);
  await settle();
  states.set("a", { kind: "pending" });
  held.known("a");
  held.known("b");
  held.assigned();
  await settle();
  states.set("a", { kind: "failed", reason: "why" });
  held.refresh();
  await settle();
  assert.equal(kernel.at(-1), "10.0.0.1");
  states.set("a", { kind: "enforced" });
  held.refresh();
  await settle();
  assert.equal(kernel.at(-1), "");
  assert.deepEqual(reported.toSorted(), ["a", "b"]);
});

test("a container that is known is held until it has its policies, whatever becomes of others meanwhile", async () => {
  held.late("a", [A]);
  await settle();
  held.known("a");
  // The kernel has the policy of another container.
  held.refresh();
  await settle();
  assert.equal(kernel.at(-1), "10.0.0.1");
  states.set("a", { kind: "pending" });
  held.assigned();
  await settle();
  assert.equal(kernel.at(-1), "10.0.0.1");
  states.set("a", { kind: "enforced" });
  held.refresh();
  await settle();
  assert.equal(kernel.at(-1), "");
});

test("where no policy holds connections nobody is held, until there is one", async () => {
  isHolding = false;
  held.late("a", [A]);
  await settle();
  assert.deepEqual(kernel, []);
  isHolding = true;
  held.refresh();
  await settle();
  isHolding = false;
  held.refresh();
  await settle();
  assert.deepEqual(kernel, ["10.0.0.1", ""]);
});

test("what an earlier process held goes when all containers are known or late", async () => {
  held.late("a", [A]);
  await settle();
  held.releaseOthers();
  await settle();
  assert.deepEqual(kernel, ["10.0.0.1", "10.0.0.1 alone"]);
});
