// Proves that what happens to upstream servers is named, and that the printed fix fixes it.

import { after, before, test } from "node:test";

import { assertFixed, openBrokenShop } from "./breakage.ts";
import { SERVER_ROWS } from "./server-rows.ts";
import type { Shop } from "./shop.ts";

let shop: Shop;

before(async () => (shop = await openBrokenShop()));
after(async () => await shop[Symbol.asyncDispose]());

for (const row of SERVER_ROWS) test(row.what, async () => await assertFixed(shop, row));
