// Proves that nothing that identifies people or their systems is left in a redacted text, that the same is replaced by the same
// everywhere, and that what explains a fault stays.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Redactor } from "../../../../src/doctor/bundle/redactor.ts";

function redactor(): Redactor {
  const made = new Redactor();
  made.add("container", ["shop-api-1", "web"]);
  made.add("network", ["shop_back"]);
  made.add("project", ["shop"]);
  made.addQueried(["db.corp.acme.com", "payroll"]);
  return made;
}

test("names are replaced as words, the same everywhere", () => {
  const made = redactor();
  assert.equal(
    made.text('"web" in shop-api-1, webserver, SHOP-API-1 on shop_back; payroll'),
    '"container-2" in container-1, webserver, container-1 on network-1; name-3',
  );
  assert.equal(made.text("Web web"), "container-2 container-2");
});

test("domains are replaced label by label, so that what they share can be seen; files and known endings stay", () => {
  const made = redactor();
  assert.equal(
    made.text("db.corp.acme.com x.acme.com. web.acme.com"),
    "name-1.corp.name-2.com name-4.name-2.com. container-2.name-2.com",
  );
  assert.equal(
    made.text("see resolv.conf, docker.sock and 28.5.2+dfsg4"),
    "see resolv.conf, docker.sock and 28.5.2+dfsg4",
  );
  assert.equal(made.text(").hidden.evil.org"), ").name-5.name-6.org");
});

test("public addresses are replaced, private ones stay", () => {
  const made = redactor();
  for (const address of ["10.1.2.3", "127.0.0.11", "172.16.0.1", "192.168.1.1", "169.254.1.1", "100.64.0.1"]) {
    assert.equal(made.text(`host(${address}): udp`), `host(${address}): udp`);
  }
  for (const address of ["::1", "fd00::1", "fe80::42:acff:fe11:2"]) assert.equal(made.text(address), address);
  assert.equal(made.text("8.8.8.8 2001:db8::1 8.8.8.8 172.32.0.1"), "address-1 address-2 address-1 address-3");
  assert.equal(made.text("at 20:15:01 on 2026-01-01T12:00:00.000Z"), "at 20:15:01 on 2026-01-01T12:00:00.000Z");
});

test("what begins like a version or has a prefix is a name or an address all the same", () => {
  const texts = [
    "203-0-113-5.dyn.acme-corp.com",
    "1-secret.acme-corp.com.",
    "v1-crm.payroll.acme.com",
    "8.8.8.8-8.8.4.4",
  ];
  for (const text of [...texts, "2001:470:1f0b::5/64", "2a01:4f8:1::/48", "8.8.8.0/24"]) {
    const seen = redactor().text(`asked ${text} there`);
    assert.doesNotMatch(seen, /acme|secret|crm|203-0|8\.8|470|4f8/, seen);
  }
  assert.equal(redactor().text("2001:470:1f0b::5/64 fd00::/8 10.0.0.0/8"), "address-1/64 fd00::/8 10.0.0.0/8");
  for (const text of ["28.5.2+dfsg4", "v20.20.2", "6.1.0-18-amd64", "6.18.44-fc-v669"])
    assert.equal(redactor().text(text), text);
});

test("what is known is no version, whatever it ends with", () => {
  const made = redactor();
  made.add("network", ["12", "shop_net2"]);
  made.addQueried(["1-secret.xn--p1ai", "2-crm.shop_net2"]);
  const seen = made.text('"1-secret.xn--p1ai." and 2-crm.shop_net2: no');
  assert.doesNotMatch(seen, /secret|p1ai|crm|net2/, seen);
  for (const text of ["26.1.12+dfsg4", "6.1.0-12-amd64"]) assert.equal(made.text(text), text);
});

test("directories are replaced, except for those of the system; the file stays", () => {
  const made = redactor();
  assert.equal(made.text("/home/alice/secret/compose.yaml: key"), "/directory-1/compose.yaml: key");
  assert.equal(made.text("/run/docker.sock, /var/run/dns11"), "/run/docker.sock, /var/run/dns11");
});

test("values of JSON are replaced as deep as they are, and secrets whatever they are", () => {
  const made = redactor();
  const value = {
    "shop-api-1": { list: ["web", 3, null, true] },
    apiToken: "abc",
    nested: { password: 3, token: null },
  };
  assert.deepEqual(made.value(value), {
    "container-1": { list: ["container-2", 3, null, true] },
    apiToken: "(redacted)",
    nested: { password: "(redacted)", token: null },
  });
});

test("with any names, none of them is left, whatever surrounds it", () => {
  const names = Array.from(
    { length: 500 },
    (_, index) => `q${(index * 7919).toString(36)}x${index % 3 === 0 ? "-y" : "_z"}`,
  );
  const made = new Redactor();
  made.add("container", names);
  for (const around of [" ", '"', "(", ".", "/", ",", ":", "=", "\n", "\\"]) {
    const text = made.text(names.map((name) => `${around}${name}${around}`).join(""));
    for (const name of names) assert.ok(!text.includes(name), `${name} within ${JSON.stringify(around)}`);
  }
});

test("long texts from containers take no longer than their length", () => {
  const made = redactor();
  for (const unit of ["a", "a.", "/a", ":", "1.", "-", "\\"]) made.text(unit.repeat(200_000));
});
