// A name of a zone leads to an address that can be reached, where there is one, as that of Docker does; names are listed with their
// zone, and labels that give none are named.

import assert from "node:assert/strict";
import { test } from "node:test";

import { LABEL_DEFAULTS } from "../../../src/base/model/name-choices.ts";
import type { ContainerFact } from "../../../src/container/facts/fact.ts";
import type { PlacedNames } from "../../../src/container/names/name-sources.ts";
import { open } from "../../../src/features/zones/zones.ts";
import { listNames } from "../../../src/control/reports/name-resolver.ts";
import type { ComposeFilter } from "../../../src/control/situation/address-owners.ts";
import { tryAnyLabels } from "../../fuzz/any-labels.ts";
import { aContainer, anEndpoint } from "../../support/scripted/builders.ts";
import { composed, portsOf } from "../../unit/support/control-ports.ts";
import { type DirectoryParts, aDirectory, answerTo } from "../../unit/support/names.ts";

const COMPOSE = { "com.docker.compose.project": "shop", "com.docker.compose.service": "db" };

function on(
  id: string,
  labels: Readonly<Record<string, string>>,
  last: number,
  networks: readonly string[],
): ContainerFact {
  const endpoints = networks.map((networkName) =>
    anEndpoint({
      networkName,
      names: [id],
      ipv4: `172.${networkName === "closed" ? 20 : 21}.0.${last}`,
      ipv6: `fd0${networkName === "closed" ? 1 : 2}::${last}`,
    }),
  );
  return aContainer({ id, name: id, labels, endpoints });
}

const asker = on("asker", {}, 9, ["closed", "open"]);
const NAME = "db.shop.svc.zone.test";
const SETTINGS = { zones: ["zone.test"], visible: "network", labels: LABEL_DEFAULTS } as never;
const makeNames: DirectoryParts["makeNames"] = (context) =>
  open().makeNames?.(SETTINGS, context) as readonly PlacedNames[];

function answer(db: ContainerFact, apartBy: string | undefined): string {
  const closed = { name: "closed", ...(apartBy !== undefined && { apartBy }) };
  const directory = aDirectory([db, asker], { networks: [closed, "open"], makeNames });
  return answerTo(directory.viewOf(asker), NAME);
}

test("of two networks, the one that does not keep its containers apart", () => {
  const db = on("db", COMPOSE, 2, ["closed", "open"]);
  assert.equal(answer(db, "enable_icc=false"), "172.21.0.2");
  assert.equal(answer(db, undefined), "172.20.0.2");
});

test("if it is the only one, it is answered", () => {
  const db = on("db", COMPOSE, 2, ["closed"]);
  assert.equal(answer(db, "enable_icc=false"), "172.20.0.2");
});

const WEB = composed("shop", "web", "a", 2);
const API = composed("shop", "api", "ab", 3);
const OTHER = composed("other", "db", "c", 5);

test("names of a zone are listed with their source, and those of other projects are left out where one is selected", async () => {
  const zoned = async (filter?: ComposeFilter): Promise<string[]> => {
    const { names } = await listNames(portsOf([WEB, API, OTHER], [], { makeNames }), WEB, filter);
    return names.flatMap(({ name, network, source, addresses, owners }) =>
      source?.startsWith("zone ") !== true
        ? []
        : [`${name} ${network} ${source} ${addresses.join("+")} ${owners[0]?.container}`],
    );
  };
  const all = await zoned();
  assert.ok(all.includes("api.shop.svc.zone.test null zone zone.test 10.0.0.3 shop-api-1"), all.join("; "));
  assert.ok(
    all.every((line) => !line.includes(".other.")),
    "on no network of this container",
  );
  assert.deepEqual(await zoned({ acceptsPlace: ({ project }) => project === "other", acceptsId: () => true }), []);
});

test("labels that give no name are named, and those of an image that do not count", () => {
  const service = { "io.dns11.service": "a.b" };
  const warningsFor = (fact: ContainerFact): string =>
    (open().labelWarnings?.(fact, fact.labels, LABEL_DEFAULTS) ?? []).filter((each) => each !== undefined).join("; ");
  assert.match(warningsFor(aContainer({ labels: service })), /^invalid label io\.dns11\.service="a\.b": use letters/);
  const imageLabels = { labels: service, source: "known" } as const;
  assert.match(warningsFor(aContainer({ imageLabels })), /io\.dns11\.service/);
  assert.equal(warningsFor(aContainer({ labels: COMPOSE })), "");
});

test("labels of any text", () => tryAnyLabels({ ...open(), makeNames }));
