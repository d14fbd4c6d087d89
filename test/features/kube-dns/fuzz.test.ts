// Fuzz of ConfigMaps of kube-dns, from good ones that are damaged. Each is read or refused with a short reason.

import assert from "node:assert/strict";
import { test } from "node:test";

import { readConfigMap } from "../../../src/features/kube-dns/config-map.ts";
import { damaged } from "../../fuzz/damage.ts";
import { Random } from "../../fuzz/random.ts";
import { INPUTS, SEED, routesOf } from "../../fuzz/routes.ts";

const MAP_KEYS = ["stubDomains", "upstreamNameservers", "federations", "Corefile", "__proto__", ""];
const MAPS = [{ "acme.local": ["1.2.3.4"] }, ["8.8.8.8", "8.8.4.4"]];

test("ConfigMaps of kube-dns", () => {
  let read = 0;
  for (let index = 0; index < INPUTS; index++) {
    const random = new Random(SEED, index);
    const keys = Array.from({ length: 1 + random.below(2) }, () => {
      const key = random.once(6) ? random.pick(MAP_KEYS) : random.pick(MAP_KEYS.slice(0, 2));
      const good = MAPS[MAP_KEYS.indexOf(key)] ?? MAPS[0];
      const value = random.once(3) ? good : damaged(good, random);
      const json = JSON.stringify(value);
      return { key, path: `map/${key}`, text: random.once(6) ? json.slice(0, random.below(json.length)) : json };
    });
    const routes = routesOf(() => readConfigMap(keys).values.dns ?? [], index, /^map\/.*: /);
    if (routes !== undefined) read += 1;
  }
  assert.ok(read > INPUTS / 20 && read < INPUTS, `${read} of ${INPUTS} were read`);
});
