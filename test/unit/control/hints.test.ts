// Proves what somebody who wonders about an answer is told beside it, and that nobody is told what is not the case.

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

test("a name of another network is told, alone and with the network's name, in any letter case", () => {
  for (const name of ["db", "postgres", "POSTGRES.back"]) {
    assert.match(hints(name), /is a name on network "back" \(container "db"\).*docker network connect back web/, name);
  }
  assert.equal(hints("db", { reply: FOUND }), "");
});

test("a container without any name is told as such", () => {
  assert.match(hints("plain"), /^container "plain" runs, but on no user-defined network/);
});

test("a container that does not run is told, with its state", () => {
  const stopped = [{ name: "cron", state: "exited", networks: ["one"] }];
  for (const name of ["cron", "cron.one"])
    assert.match(hints(name, { stopped }), /"cron" does not run \(exited\)/, name);
  assert.doesNotMatch(hints("cron.two", { stopped }), /does not run/);
});

test("a similar name of its own networks is told, and of no other", () => {
  assert.match(hints("wbe"), /similar name .*"web"/);
  assert.equal(hints("dbx"), "");
});

test("a paused container's name is known, and nobody is there", () => {
  const paused = aContainer({ isPaused: true });
  assert.match(hints("web", { reply: FOUND, containers: [paused] }), /"web" is paused/);
  assert.equal(hints("web", { reply: FOUND }), "");
});

test("a resolv.conf that names somebody else is told", () => {
  assert.match(
    hints("x", { resolvConf: { ...RESOLVER, nameservers: ["10.0.0.1"] } }),
    /names 10\.0\.0\.1, not 127\.0\.0\.11/,
  );
  assert.match(hints("x", { resolvConf: { ...RESOLVER, nameservers: [] } }), /names nobody/);
});

test("what a search list puts before a name is told, and what it puts behind only where the name was not found", () => {
  const resolvConf = { ...RESOLVER, search: ["corp.test"], options: ["ndots:2"] };
  assert.match(hints("a.b", { resolvConf, reply: FOUND }), /ask for "a\.b\.corp\.test" before "a\.b".*ndots:2/);
  assert.match(hints("a.b.c", { resolvConf }), /then ask for "a\.b\.c\.corp\.test"/);
  assert.equal(hints("a.b.c", { resolvConf, reply: FOUND }), "");
  assert.equal(hints("a.b.", { resolvConf }), "");
});
