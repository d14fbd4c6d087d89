// Proves that what the own files, settings and rules of a container do is named, and that the printed fix fixes it.

import { after, before, test } from "node:test";

import { assertFixed, openBrokenShop } from "./breakage.ts";
import { CLIENT_ROWS } from "./name-rows.ts";
import type { Shop } from "./shop.ts";

let shop: Shop;

before(async () => (shop = await openBrokenShop()));
after(async () => await shop[Symbol.asyncDispose]());

for (const row of CLIENT_ROWS) test(row.what, async () => await assertFixed(shop, row));
