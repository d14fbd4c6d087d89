/**
 * The addresses at which others than containers may ask, as the settings file has them: what is read, and each mistake with its line.
 */
import assert from "node:assert/strict";
import { test } from "node:test";

import { blockText } from "../../../src/base/model/address.ts";
import { BadSettings } from "../../../src/config/bad-settings.ts";
import { readSettings } from "../../../src/config/file/settings-file.ts";
import { mergeSettings } from "../../../src/config/merge-settings.ts";
import { listenViewText } from "../../../src/features/lan/feature.ts";

function read(text: string): ReturnType<typeof readSettings> {
  return readSettings(Buffer.from(`version: 1\n${text}`), "dns11.yaml");
}

/** The messages for an entry with these lines, without the part that all have. */
function mistakes(...lines: readonly string[]): readonly string[] {
  const text = ["listen:", "  lan:", ...lines.map((line) => `    ${line}`), ""].join("\n");
  try {
    read(text);
  } catch (error) {
    if (error instanceof BadSettings) return error.lines;
    throw error;
  }
  return [];
}

const ALLOW = "allow: [192.168.1.0/24]";

test("an entry is read with its defaults, and shown as it is written", () => {
  const layer = read("listen:\n  lan:\n    address: 192.168.1.10\n    allow: [192.168.1.0/24, 10.1.2.3]\n");
  const [entry] = layer.values.listen ?? [];
  assert.deepEqual(entry?.addresses, ["192.168.1.10"]);
  assert.deepEqual(
    entry.allow.map((each) => blockText(each)),
    ["192.168.1.0/24", "10.1.2.3"],
  );
  assert.equal(listenViewText(entry.view), "published");
  assert.equal(entry.forwards, false);
  assert.deepEqual(mergeSettings([layer]).origins["listen"], {
    source: "file",
    value: {
      lan: { address: ["192.168.1.10"], allow: ["192.168.1.0/24", "10.1.2.3"], view: "published", forward: false },
    },
  });
});

test("an entry has an address of each family, the view of a network, and forwards if that is set", () => {
  const text =
    "listen:\n  builds:\n    address: [172.17.0.1, fd00:1::1]\n    allow: [172.17.0.0/16, fd00:1::/64]\n" +
    "    view: network=shop\n    forward: true\n";
  const [entry] = read(text).values.listen ?? [];
  assert.deepEqual(entry?.addresses, ["172.17.0.1", "fd00:1::1"]);
  assert.deepEqual(entry.view, { kind: "network", name: "shop" });
  assert.equal(entry.forwards, true);
});

test("the domain of names on the host is that of names for other machines", () => {
  const domain = "host-domain: lan.test\n";
  const entry = "listen:\n  lan:\n    address: 192.168.1.10\n    allow: [192.168.1.0/24]\n";
  assert.equal(mergeSettings([read(domain + entry)]).hostDomain, "lan.test");
});

test("whoever would open it to everybody gets a line that says so", () => {
  for (const block of ["0.0.0.0/0", "128.0.0.0/1", "10.0.0.0/7", "8.0.0.0/8", "172.0.0.0/8", "203.0.0.0/15"])
    assert.match(
      mistakes("address: 192.168.1.10", `allow: [${block}]`)[0] ?? "",
      /dns11.yaml:5.*no public server/,
      block,
    );
  for (const block of ["::/0", "2000::/3", "2000::/7", "2a00::/7", "fc00::/6", "2001:db8::/31"])
    assert.match(mistakes("address: fd00::1", `allow: ["${block}"]`)[0] ?? "", /dns11.yaml:5.*no public server/, block);
  assert.match(mistakes("address: 192.168.1.10")[0] ?? "", /dns11.yaml:3:3: listen.lan: does not say who may ask/);
  assert.match(mistakes("address: 192.168.1.10", "allow: []")[0] ?? "", /does not say who may ask/);
  assert.match(mistakes("address: 0.0.0.0", ALLOW)[0] ?? "", /stands for all of them/);
  assert.match(mistakes('address: "::"', ALLOW)[0] ?? "", /stands for all of them/);
});

test("blocks of private networks may be as large as these are, others as a network of one owner", () => {
  for (const block of ["10.0.0.0/8", "100.64.0.0/10", "172.16.0.0/12", "192.168.0.0/16", "203.0.0.0/16"])
    assert.deepEqual(mistakes("address: 192.168.1.10", `allow: [${block}]`), [], block);
  for (const block of ["fc00::/7", "2001:db8::/32"])
    assert.deepEqual(mistakes("address: fd00::1", `allow: ["${block}"]`), [], block);
});

test("other mistakes name their line and what to use", () => {
  const rows: readonly (readonly [readonly string[], RegExp])[] = [
    [[ALLOW], /has no address/],
    [["address: lan.example", ALLOW], /invalid address "lan.example": use an IP address of this host/],
    [['address: "fe80::1%eth0"', "allow: [fe80::/10]"], /invalid address/],
    [['address: "fe80::1"', 'allow: ["fd00::/64"]'], /invalid address "fe80::1": it is link-local/],
    [["address: fd00::1", 'allow: ["fe80::/10"]'], /invalid block of addresses "fe80::\/10": it is link-local/],
    [["address: fd00::1", 'allow: ["febf::/64"]'], /it is link-local/],
    [["address: 224.0.0.1", ALLOW], /no address of one machine/],
    [["address: 169.254.53.53", ALLOW], /of the setting listener/],
    [["address: [192.168.1.10, 192.168.1.11]", ALLOW], /has 2 IPv4 addresses/],
    [["address: [192.168.1.10, fd00::1]", ALLOW], /nobody may ask at fd00::1/],
    [["address: 192.168.1.10", "allow: [192.168.1.0/24, fd00::/64]"], /the entry has no IPv6 address/],
    [["address: 192.168.1.10", "allow: [192.168.1.7/24]"], /bits beyond its prefix: use 192.168.1.0\/24/],
    [["address: 192.168.1.10", "allow: [lan]"], /invalid block of addresses "lan"/],
    [["address: 192.168.1.10", ALLOW, "view: host"], /invalid view "host": use published or network=NAME/],
    [["address: 192.168.1.10", ALLOW, "forward: 1"], /use true or false/],
    [["address: 192.168.1.10", ALLOW, "alow: 1"], /did you mean "allow"/],
  ];
  for (const [lines, expected] of rows) assert.match(mistakes(...lines).join("\n"), expected, lines.join("; "));
});

test("two entries with one address, a bad name and too many entries are refused", () => {
  const entry = (name: string, address: string): string => `  ${name}: {address: ${address}, ${ALLOW}}\n`;
  assert.throws(() => read(`listen:\n${entry("a", "10.0.0.1")}${entry("b", '"::ffff:10.0.0.1"')}`), {
    message: /listen.a has the address 10.0.0.1, too/,
  });
  assert.throws(() => read(`listen:\n${entry('"-a"', "10.0.0.1")}`), { message: /invalid name/ });
  assert.throws(() => read(`listen:\n${entry("x".repeat(58), "10.0.0.1")}`), { message: /use at most 57/ });
  assert.equal(read(`listen:\n${entry("x".repeat(57), "10.0.0.1")}`).values.listen?.length, 1);
  const many = Array.from({ length: 9 }, (_, index) => entry(`e${index}`, `10.0.0.${index + 1}`)).join("");
  assert.throws(() => read(`listen:\n${many}`), { message: /has 9 entries: use at most 8/ });
});
