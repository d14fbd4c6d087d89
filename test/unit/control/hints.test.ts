// Proves the hints beside an explanation, and that there is none where it does not apply.

import assert from "node:assert/strict";
import { test } from "node:test";

import { type HintContext, hintsFor } from "../../../src/control/hints.ts";
import { parseQuestion } from "../../../src/base/model/question-text.ts";
import type { ReplyText } from "../../../src/base/model/reply-text.ts";
import { aContainer, anEndpoint } from "../../support/scripted/builders.ts";

const NOTHING: ReplyText = {
  rcode: "NXDOMAIN",
  isTruncated: false,
  isAuthoritative: false,
  answers: [],
  authority: [],
  additional: [],
  extendedErrors: [],
  isUnreadable: false,
};
const FOUND: ReplyText = {
  ...NOTHING,
  rcode: "NOERROR",
  answers: [{ name: "x.", type: "A", ttl: 5, data: "192.0.2.1" }],
};
const RESOLVER = { nameservers: ["127.0.0.11"], search: [], options: ["ndots:0"] };

const web = aContainer();
const db = aContainer({
  id: "db",
  name: "db",
  endpoints: [anEndpoint({ networkName: "back", names: ["db", "Postgres"] })],
});
const plain = aContainer({ id: "plain", name: "plain", endpoints: [anEndpoint({ networkName: "bridge", names: [] })] });

function hints(name: string, parts: Partial<HintContext> = {}): string {
  return hintsFor({
    fact: web,
    owner: web,
    question: parseQuestion(name, "A"),
    reply: NOTHING,
    containers: [web, db, plain],
    stopped: [],
    resolvConf: RESOLVER,
    ...parts,
  }).join("\n");
}

test("a name on another network, with and without the network suffix, in any letter case", () => {
  for (const name of ["db", "postgres", "POSTGRES.back"]) {
    assert.match(hints(name), /is container "db" on network "back".*docker network connect back web/, name);
  }
  assert.equal(hints("db", { reply: FOUND }), "");
});

test("a container without a DNS name", () => {
  assert.match(hints("plain"), /^container "plain" is running, but it has no DNS name/);
});

test("a stopped container, with its state", () => {
  const stopped = [{ name: "cron", state: "exited", networks: ["one"] }];
  for (const name of ["cron", "cron.one"])
    assert.match(hints(name, { stopped }), /"cron" is not running \(exited\)/, name);
  assert.doesNotMatch(hints("cron.two", { stopped }), /is not running/);
});

test("a similar name on its own networks, but on no other", () => {
  assert.match(hints("wbe"), /similar name .*"web"/);
  assert.equal(hints("dbx"), "");
});

test("a paused container", () => {
  const paused = aContainer({ isPaused: true });
  assert.match(hints("web", { reply: FOUND, containers: [paused] }), /"web" is paused/);
  assert.equal(hints("web", { reply: FOUND }), "");
});

test("a resolv.conf with other nameservers", () => {
  assert.match(
    hints("x", { resolvConf: { ...RESOLVER, nameservers: ["10.0.0.1"] } }),
    /lists 10\.0\.0\.1 instead of 127\.0\.0\.11/,
  );
  assert.match(hints("x", { resolvConf: { ...RESOLVER, nameservers: [] } }), /lists no nameserver/);
});

test("names that a search list puts before, and those after it only if the name was not found", () => {
  const resolvConf = { ...RESOLVER, search: ["corp.test"], options: ["ndots:2"] };
  assert.match(hints("a.b", { resolvConf, reply: FOUND }), /query "a\.b\.corp\.test" before "a\.b".*ndots:2/);
  assert.match(hints("a.b.c", { resolvConf }), /then query "a\.b\.c\.corp\.test"/);
  assert.equal(hints("a.b.c", { resolvConf, reply: FOUND }), "");
  assert.equal(hints("a.b.", { resolvConf }), "");
});
