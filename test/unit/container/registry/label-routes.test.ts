// Proves the routes of a label: which servers are queried from where, and the limits of a label.

import assert from "node:assert/strict";
import { test } from "node:test";

import { LIMITS } from "../../../../src/base/limits.ts";
import { DNS_LABEL, labelRoutes } from "../../../../src/container/registry/label-routes.ts";
import { LABEL_SERVERS, type LabelServers } from "../../../../src/base/model/name-choices.ts";
import { parseRoute, routeText } from "../../../../src/base/model/server-text.ts";

test("a label has the syntax of --dns, separated by blanks or commas; invalid routes cause a warning and are ignored", () => {
  assert.deepEqual(labelRoutes({}, "container"), { layer: [] });
  assert.deepEqual(routesIn(" 10.0.0.1, /lan/host\n/corp/ "), [
    ["container:10.0.0.1", "/lan/host", "/corp/"],
    undefined,
  ]);
  const [texts, warning] = routesIn("10.0.0.1,10.0.0,/lan");
  assert.deepEqual(texts, ["container:10.0.0.1"]);
  assert.match(warning ?? "", /^invalid label io\.dns11\.dns: invalid nameserver "10\.0\.0"/);
});

test("a long invalid route is quoted in short", () => {
  const [, warning] = routesIn("x".repeat(LIMITS.labelChars));
  assert.ok((warning ?? "").length < LIMITS.labelProblemChars + 100);
});

test("servers are queried from inside, whatever their address and port, unless the settings allow more", () => {
  const label = "127.0.0.1:6379 /a/169.254.169.254 /b/container:10.0.0.1 /c/10.0.0.2";
  assert.deepEqual(routesIn(label), [
    ["container:127.0.0.1:6379", "/a/container:169.254.169.254", "/b/container:10.0.0.1", "/c/container:10.0.0.2"],
    undefined,
  ]);
  assert.deepEqual(routesIn(label, "any"), [
    ["127.0.0.1:6379", "/a/169.254.169.254", "/b/container:10.0.0.1", "/c/10.0.0.2"],
    undefined,
  ]);
  const [texts, warning] = routesIn(label, "host");
  assert.deepEqual(texts, ["/b/container:10.0.0.1", "/c/10.0.0.2"]);
  assert.match(warning ?? "", /"127\.0\.0\.1:6379" would be queried from the host.*label-servers: any$/);
});

for (const server of ["10.0.0.1:5353", "127.0.0.53", "[::1]:53", "::ffff:127.0.0.1", "fe80::1%eth0", "0.0.0.0"]) {
  test(`a label cannot use ${server} from the host if labels may only use servers from the host`, () => {
    const [texts, warning] = routesIn(`/lan/${server} /corp/10.0.0.1`, "host");
    assert.deepEqual(texts, ["/corp/10.0.0.1"]);
    assert.match(warning ?? "", /would be queried from the host/);
  });
}

test("a server by TLS is one as any other, with a port of its own", () => {
  const label = "tls://10.0.0.1#dns.test /a/tls://127.0.0.1 /b/tls://10.0.0.2:8853 /c/tls://10.0.0.3:53";
  assert.deepEqual(routesIn(label), [
    label.split(" ").map((text) => text.replace("tls:", "container:tls:")),
    undefined,
  ]);
  assert.deepEqual(routesIn(label, "any"), [label.split(" "), undefined]);
  const [texts, warning] = routesIn(label, "host");
  assert.deepEqual(texts, ["tls://10.0.0.1#dns.test"]);
  assert.match(warning ?? "", /"127\.0\.0\.1:853" would be queried from the host, where a label may use only port 853/);
});

for (const place of LABEL_SERVERS) {
  test(`the DNS of a cluster is not asked for a label (${place})`, () => {
    const [texts, warning] = routesIn("/cluster.local/node:kind-control-plane /corp/host", place);
    assert.deepEqual(texts, ["/corp/host"]);
    assert.match(warning ?? "", /node:kind-control-plane": a label cannot have a node asked; use the settings/);
  });

  test(`the host's servers can be used by the word "host" (${place})`, () => {
    assert.deepEqual(routesIn("host /lan/host", place), [["host", "/lan/host"], undefined]);
  });
}

for (const own of ["127.0.0.11", "::ffff:127.0.0.11", "container:127.0.0.11"]) {
  test(`"${own}" from inside the container would be dns11 itself`, () => {
    const [texts, warning] = routesIn(own);
    assert.deepEqual(texts, []);
    assert.match(warning ?? "", /dns11 itself listens there/);
  });
}

test("domains over the limit are ignored, and the warning quotes the first of them", () => {
  const all = Array.from({ length: LIMITS.labelDomains + 2 }, (_, index) => `/d${index}/10.0.0.1`);
  const [texts, warning] = routesIn(all.join(" "));
  assert.deepEqual(texts.length, LIMITS.labelDomains);
  assert.match(warning ?? "", /^label io\.dns11\.dns is too large: everything from "\/d64\/10\.0\.0\.1" on is ignored/);
  assert.equal(routesIn(all.slice(0, LIMITS.labelDomains).join(" "))[1], undefined);
  // Each domain of a route counts.
  const many = Array.from({ length: LIMITS.labelDomains + 1 }, (_, index) => `d${index}`);
  assert.deepEqual(routesIn(`/${many.join("/")}/10.0.0.1`)[0], []);
});

test("servers over the limit are ignored; the same server for several domains counts once", () => {
  const servers = Array.from({ length: LIMITS.labelServers + 1 }, (_, index) => `10.0.0.${index}`);
  const [texts, warning] = routesIn(servers.join(" "));
  assert.equal(texts.length, LIMITS.labelServers);
  assert.match(warning ?? "", /everything from "10\.0\.0\.16" on/);
  const repeated = servers.slice(0, LIMITS.labelServers).flatMap((server) => [`/a/${server}`, `/b/${server}`]);
  assert.equal(routesIn(repeated.join(" "))[1], undefined);
});

test("a repeated route is ignored", () => {
  assert.deepEqual(routesIn("host ".repeat(200) + "/lan/10.0.0.1"), [["host", "/lan/container:10.0.0.1"], undefined]);
});

test("a label is read up to its maximum length; a route that does not fit completely is ignored", () => {
  const first = "/lan/10.0.0.1 ";
  const [filled, over] = [LIMITS.labelChars, LIMITS.labelChars + 1].map(
    (length) => `${first}${" ".repeat(length - first.length - "10.0.0.2".length)}10.0.0.2`,
  ) as [string, string];
  assert.deepEqual(routesIn(filled), [["/lan/container:10.0.0.1", "container:10.0.0.2"], undefined]);
  assert.deepEqual(routesIn(`${filled} , \n`), [["/lan/container:10.0.0.1", "container:10.0.0.2"], undefined]);
  const [texts, warning] = routesIn(over);
  assert.deepEqual(texts, ["/lan/container:10.0.0.1"]);
  assert.match(warning ?? "", /everything from "10\.0\.0\.2" on/);
  assert.deepEqual(routesIn(`${filled} 10.0.0.3`)[0], ["/lan/container:10.0.0.1", "container:10.0.0.2"]);
  assert.match(
    routesIn("x".repeat(1_000_000))[1] ?? "",
    /^label io\.dns11\.dns is too large: everything from "x{80}\.\.\." on/,
  );
});

/** The routes, in the syntax of the settings, and the warning. */
function routesIn(label: string, place: LabelServers = "container"): [string[], string | undefined] {
  const { layer, warning } = labelRoutes({ [DNS_LABEL]: label }, place);
  const texts = layer.map((route) => routeText(route));
  assert.deepEqual(
    texts.map((text) => parseRoute(text)),
    layer,
  );
  return [texts, warning];
}
