// Names that only dns11 has lead to an address that can be reached, where there is one, as those of Docker do.

import assert from "node:assert/strict";
import { test } from "node:test";

import type { ContainerFact } from "../../../../src/container/facts/fact.ts";
import { TYPE, aContainer, anEndpoint } from "../../../support/scripted/builders.ts";
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
      names: id === "db" ? ["db", "*.wild.test"] : [id],
      ipv4: `172.${networkName === "closed" ? 20 : 21}.0.${last}`,
      ipv6: `fd0${networkName === "closed" ? 1 : 2}::${last}`,
    }),
  );
  return aContainer({ id, name: id, labels, endpoints });
}

const asker = on("asker", {}, 9, ["closed", "open"]);
const labels = { ...COMPOSE, "io.dns11.names": "more.test" };
const NAMES = ["more.test", "any.wild.test", "db.shop.svc.zone.test"];

function answers(db: ContainerFact, apartBy: string | undefined, type = TYPE.A): string[] {
  const closed = { name: "closed", ...(apartBy !== undefined && { apartBy }) };
  const directory = aDirectory([db, asker], { networks: [closed, "open"], names: { zones: ["zone.test"] } });
  return NAMES.map((name) => answerTo(directory.viewOf(asker), name, type));
}

test("of two networks, the one that does not keep its containers apart", () => {
  const db = on("db", labels, 2, ["closed", "open"]);
  assert.deepEqual(new Set(answers(db, "enable_icc=false")), new Set(["172.21.0.2"]));
  assert.deepEqual(new Set(answers(db, undefined)), new Set(["172.20.0.2"]));
});

test("if it is the only one, it is answered", () => {
  const db = on("db", labels, 2, ["closed"]);
  assert.deepEqual(new Set(answers(db, "enable_icc=false")), new Set(["172.20.0.2"]));
});
