// Proves that what is wrong with the networks of containers is named, and that its printed fix fixes it.

import { after, before, test } from "node:test";

import { assertFixed, openBrokenShop } from "./breakage.ts";
import { NETWORK_ROWS } from "./container-rows.ts";
import type { Shop } from "./shop.ts";

let shop: Shop;

before(async () => (shop = await openBrokenShop()));
after(async () => await shop[Symbol.asyncDispose]());

for (const row of NETWORK_ROWS) test(row.what, async () => await assertFixed(shop, row));
