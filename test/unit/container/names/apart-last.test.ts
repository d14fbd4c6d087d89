// A name of a zone leads to an address that can be reached, where there is one, as that of Docker does.

import assert from "node:assert/strict";
import { test } from "node:test";

import type { ContainerFact } from "../../../../src/container/facts/fact.ts";
import { aContainer, anEndpoint } from "../../../support/scripted/builders.ts";
import { aDirectory, answerTo } from "../../support/names.ts";

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

function answer(db: ContainerFact, apartBy: string | undefined): string {
  const closed = { name: "closed", ...(apartBy !== undefined && { apartBy }) };
  const directory = aDirectory([db, asker], { networks: [closed, "open"], names: { zones: ["zone.test"] } });
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
