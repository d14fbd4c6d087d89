// Proves that names which are none are named as such, and that the printed fix fixes it.

import { after, before, test } from "node:test";

import { assertFixed, openBrokenShop } from "./breakage.ts";
import { NAME_ROWS } from "./name-rows.ts";
import type { Shop } from "./shop.ts";

let shop: Shop;

before(async () => (shop = await openBrokenShop()));
after(async () => await shop[Symbol.asyncDispose]());

for (const row of NAME_ROWS) test(row.what, async () => await assertFixed(shop, row));
