// Proves the list of declared names, as one container resolves them.

import assert from "node:assert/strict";
import { test } from "node:test";

import { sharedDeclarations } from "../../support/scripted/declarations.ts";
import { composed, portsOf } from "../../unit/support/control-ports.ts";
import { rowsOf } from "../../unit/support/listed-names.ts";

const WEB = composed("shop", "web", "a", 2);
const API = composed("shop", "api", "ab", 3);

const DECLARED = `
records:
  web: 10.9.9.9
  api.shop: 10.9.9.8
  only.test: 10.9.9.7
  cdn.test: { cname: api }
  twice.test: 10.9.9.6
  "*.wild.test": 10.9.9.5
  mail.test: { mx: [10 a.test], container: web }
  one.hidden.test: 10.9.9.3
  "*.deep.hidden.test": 10.9.9.2
projects:
  shop: { records: { twice.test: 10.9.9.4, "*.hidden.test": 10.9.9.1 } }
`;

test("declared names are listed with what they have, and with what comes before them", async () => {
  const ports = portsOf([WEB, API], [], { shared: await sharedDeclarations(DECLARED) });
  const names = ["web", "api.shop", "only.test", "cdn.test", "twice.test", "*.wild.test", "mail.test"];
  const hidden = ["*.hidden.test", "one.hidden.test", "*.deep.hidden.test"];
  assert.deepEqual(await rowsOf(ports, WEB, ...names, ...hidden), [
    '*.deep.hidden.test: shadowed *.hidden.test, declared for project "shop" from declared for everybody to 10.9.9.2',
    '*.hidden.test: resolves from declared for project "shop" to 10.9.9.1',
    "*.wild.test: resolves from declared for everybody to 10.9.9.5",
    "api.shop: resolves from declared for everybody to 10.9.9.8",
    "cdn.test: resolves from declared for everybody to CNAME api",
    "mail.test: resolves from declared for everybody to MX 10 a.test+container web",
    'one.hidden.test: shadowed *.hidden.test, declared for project "shop" from declared for everybody to 10.9.9.3',
    "only.test: resolves from declared for everybody to 10.9.9.7",
    'twice.test: resolves from declared for project "shop" to 10.9.9.4',
    'twice.test: shadowed declared for project "shop" from declared for everybody to 10.9.9.6',
    "web: resolves from docker on a to 10.0.0.2+shop-web-1",
    "web: shadowed network a from declared for everybody to 10.9.9.9",
  ]);
});
