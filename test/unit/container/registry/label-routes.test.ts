// Proves what a label comes to: whom it has asked from where, and that no label says more than it may.

import assert from "node:assert/strict";
import { test } from "node:test";

import { LIMITS } from "../../../../src/base/limits.ts";
import { DNS_LABEL, labelRoutes } from "../../../../src/container/registry/label-routes.ts";
import { LABEL_SERVERS, type LabelServers } from "../../../../src/base/model/label-policy.ts";
import { parseRoute, routeText } from "../../../../src/base/model/server-text.ts";

test("a label says as --dns does, with blanks or commas between; what is wrong of it is told and left out", () => {
  assert.deepEqual(labelRoutes({}, "container"), { say: [] });
  assert.deepEqual(said(" 10.0.0.1, /lan/host\n/corp/ "), [["container:10.0.0.1", "/lan/host", "/corp/"], undefined]);
  const [texts, warning] = said("10.0.0.1,10.0.0,/lan");
  assert.deepEqual(texts, ["container:10.0.0.1"]);
  assert.match(warning ?? "", /^its label io\.dns11\.dns is wrong: invalid nameserver "10\.0\.0"/);
});

test("a text that is wrong is told in short, however long it is", () => {
  const [, warning] = said("x".repeat(LIMITS.labelChars));
  assert.ok((warning ?? "").length < LIMITS.labelProblemChars + 100);
});

test("servers are asked from inside, whatever their address and port, unless settings say otherwise", () => {
  const label = "127.0.0.1:6379 /a/169.254.169.254 /b/container:10.0.0.1 /c/10.0.0.2";
  assert.deepEqual(said(label), [
    ["container:127.0.0.1:6379", "/a/container:169.254.169.254", "/b/container:10.0.0.1", "/c/container:10.0.0.2"],
    undefined,
  ]);
  assert.deepEqual(said(label, "any"), [
    ["127.0.0.1:6379", "/a/169.254.169.254", "/b/container:10.0.0.1", "/c/10.0.0.2"],
    undefined,
  ]);
  const [texts, warning] = said(label, "host");
  assert.deepEqual(texts, ["/b/container:10.0.0.1", "/c/10.0.0.2"]);
  assert.match(warning ?? "", /"127\.0\.0\.1:6379" would be asked from the host.*--label-servers any allows it$/);
});

for (const server of ["10.0.0.1:5353", "127.0.0.53", "[::1]:53", "::ffff:127.0.0.1", "fe80::1%eth0", "0.0.0.0"]) {
  test(`a label does not have ${server} asked from the host where it may name the host's way alone`, () => {
    const [texts, warning] = said(`/lan/${server} /corp/10.0.0.1`, "host");
    assert.deepEqual(texts, ["/corp/10.0.0.1"]);
    assert.match(warning ?? "", /would be asked from the host/);
  });
}

for (const place of LABEL_SERVERS) {
  test(`the host's own servers can be named by their word (${place})`, () => {
    assert.deepEqual(said("host /lan/host", place), [["host", "/lan/host"], undefined]);
  });
}

for (const own of ["127.0.0.11", "::ffff:127.0.0.11", "container:127.0.0.11"]) {
  test(`"${own}" from inside the container would be dns11 itself`, () => {
    const [texts, warning] = said(own);
    assert.deepEqual(texts, []);
    assert.match(warning ?? "", /dns11 itself listens there/);
  });
}

test("domains past the bound are left out, and the first of them is told", () => {
  const all = Array.from({ length: LIMITS.labelDomains + 2 }, (_, index) => `/d${index}/10.0.0.1`);
  const [texts, warning] = said(all.join(" "));
  assert.deepEqual(texts.length, LIMITS.labelDomains);
  assert.match(
    warning ?? "",
    /^its label io\.dns11\.dns says too much: "\/d64\/10\.0\.0\.1" and all that follows is left/,
  );
  assert.equal(said(all.slice(0, LIMITS.labelDomains).join(" "))[1], undefined);
  // Those of one text count each.
  const many = Array.from({ length: LIMITS.labelDomains + 1 }, (_, index) => `d${index}`);
  assert.deepEqual(said(`/${many.join("/")}/10.0.0.1`)[0], []);
});

test("servers past the bound are left out; the same ones for several domains count once", () => {
  const servers = Array.from({ length: LIMITS.labelServers + 1 }, (_, index) => `10.0.0.${index}`);
  const [texts, warning] = said(servers.join(" "));
  assert.equal(texts.length, LIMITS.labelServers);
  assert.match(warning ?? "", /says too much: "10\.0\.0\.16" and all/);
  const repeated = servers.slice(0, LIMITS.labelServers).flatMap((server) => [`/a/${server}`, `/b/${server}`]);
  assert.equal(said(repeated.join(" "))[1], undefined);
});

test("the same text again says nothing more", () => {
  assert.deepEqual(said("host ".repeat(200) + "/lan/10.0.0.1"), [["host", "/lan/container:10.0.0.1"], undefined]);
});

test("a label is read as far as it may be long; a text that does not fit whole is left out whole", () => {
  const first = "/lan/10.0.0.1 ";
  const [filled, over] = [LIMITS.labelChars, LIMITS.labelChars + 1].map(
    (length) => `${first}${" ".repeat(length - first.length - "10.0.0.2".length)}10.0.0.2`,
  ) as [string, string];
  assert.deepEqual(said(filled), [["/lan/container:10.0.0.1", "container:10.0.0.2"], undefined]);
  assert.deepEqual(said(`${filled} , \n`), [["/lan/container:10.0.0.1", "container:10.0.0.2"], undefined]);
  const [texts, warning] = said(over);
  assert.deepEqual(texts, ["/lan/container:10.0.0.1"]);
  assert.match(warning ?? "", /says too much: "10\.0\.0\.2" and all that follows/);
  assert.deepEqual(said(`${filled} 10.0.0.3`)[0], ["/lan/container:10.0.0.1", "container:10.0.0.2"]);
  assert.match(said("x".repeat(1_000_000))[1] ?? "", /^its label io\.dns11\.dns says too much: "x{80}\.\.\." and/);
});

/** As texts of the settings would say it. */
function said(label: string, place: LabelServers = "container"): [string[], string | undefined] {
  const { say, warning } = labelRoutes({ [DNS_LABEL]: label }, place);
  const texts = say.map((route) => routeText(route));
  assert.deepEqual(
    texts.map((text) => parseRoute(text)),
    say,
  );
  return [texts, warning];
}
