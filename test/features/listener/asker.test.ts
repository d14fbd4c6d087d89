/**
 * Who may ask the listener: an address counts with its link, an address of several containers counts for none, and what moves from one
 * container to another is nobody's in between.
 */
import assert from "node:assert/strict";
import { test } from "node:test";

import { type Asker, NO_ASKERS, askersOf, unchangedAddresses } from "../../../src/features/listener/listener-table.ts";

const WEB: Asker = { containerId: "web", link: 7, address: "10.0.0.2" };
const DB: Asker = { containerId: "db", link: 9, address: "10.0.0.3" };

test("each asker has its link with its address", () => {
  const { byKey, byAddress, ambiguous } = askersOf([WEB, DB, { ...WEB, link: 8, address: "fd00::2" }], []);
  assert.deepEqual([...byKey.keys()], ["7 10.0.0.2", "9 10.0.0.3", "8 fd00::2"]);
  assert.deepEqual(Object.fromEntries(byAddress), { "10.0.0.2": "web", "10.0.0.3": "db", "fd00::2": "web" });
  assert.deepEqual(ambiguous, []);
});

test("an address of two containers is neither's, however often it is listed", () => {
  const both = { ...DB, address: WEB.address };
  for (const all of [
    [WEB, both, DB],
    [both, WEB, DB, WEB],
  ]) {
    const { byKey, byAddress, ambiguous } = askersOf(all, []);
    assert.deepEqual([...byKey.keys()], ["9 10.0.0.3"]);
    assert.deepEqual([...byAddress.keys()], ["10.0.0.3"]);
    assert.deepEqual(ambiguous, ["10.0.0.2"]);
  }
});

test("an address that moves to another container is nobody's while the rules change", () => {
  const before = askersOf([WEB, DB], []);
  const heir = { ...WEB, containerId: "heir", link: 11 };
  assert.deepEqual([...unchangedAddresses(before, askersOf([heir, DB], [])).keys()], ["10.0.0.3"]);
  assert.deepEqual([...unchangedAddresses(before, NO_ASKERS).keys()], []);
  assert.deepEqual([...unchangedAddresses(NO_ASKERS, before).keys()], []);
});
