/** Which servers may be told who asks: what settings say, and what is said of those that contradict each other. */
import assert from "node:assert/strict";
import { test } from "node:test";

import { BadSettings } from "../../../src/config/bad-settings.ts";
import { mergeSettings } from "../../../src/config/merge-settings.ts";
import type { Settings } from "../../../src/config/settings.ts";
import { CLIENT_SUBNET, subnetServers, serverName } from "../../../src/features/client-subnet/feature.ts";
import { subnetOption } from "../../../src/features/client-subnet/client-subnet.ts";

const { kind } = CLIENT_SUBNET.settings["client-subnet"];

/** As they are read from a file. */
function merge({ strict = false, ...lists }: Record<string, unknown>): Settings {
  const read = Object.entries(lists).map(([key, texts]) => [key, kind.read(texts)]);
  const values = { strict, ...Object.fromEntries(read) };
  return mergeSettings([{ source: "flag", values, where: (key) => `--${key}` }]);
}

function refused(values: Record<string, unknown>, ...expected: readonly RegExp[]): void {
  assert.throws(
    () => merge(values),
    (error) => {
      assert.ok(error instanceof BadSettings, String(error));
      assert.equal(error.lines.length, expected.length, error.lines.join("\n"));
      for (const [index, pattern] of expected.entries()) assert.match(error.lines[index] ?? "", pattern);
      return true;
    },
  );
}

test("a private server is named once, in any spelling of its address", () => {
  const all = ["192.168.1.2", "10.0.0.1:5353", "FD00::0:53", "127.0.0.1", "::ffff:172.16.0.1", "fe80::1%eth0"];
  const told = subnetServers(merge({ "client-subnet": all }));
  assert.deepEqual(told, ["192.168.1.2", "10.0.0.1:5353", "fd00::53", "127.0.0.1", "172.16.0.1", "fe80::1%eth0"]);
  assert.equal(serverName({ address: "fd00:0:0::53", port: 53 }), "fd00::53");
  assert.notEqual(serverName({ address: "192.168.1.2", port: 54 }), "192.168.1.2");
  assert.deepEqual(subnetServers(merge({})), []);
});

test("a server with any other address must be named twice", () => {
  const others = ["8.8.8.8", "2001:4860::1", "100.64.0.1", "169.254.169.253", "168.63.129.16", "fd00:ec2::253"];
  for (const server of others) {
    refused({ "client-subnet": [server] }, /^--client-subnet: .* is not a private address.*client-subnet-public, too/);
    const both = { "client-subnet": ["10.0.0.1", server], "client-subnet-public": [server] };
    assert.deepEqual(subnetServers(merge(both)), ["10.0.0.1", server]);
  }
  // At another port it is another server.
  const ports = { "client-subnet": ["8.8.8.8"], "client-subnet-public": ["8.8.8.8:5353"] };
  refused(ports, /8\.8\.8\.8 is not a private address/, /8\.8\.8\.8:5353 is told nothing/);
  refused({ "client-subnet-public": ["10.0.0.1"] }, /10\.0\.0\.1 is told nothing/);
});

test("what is no address, and an order of servers that cannot be told, are refused", () => {
  for (const text of ["host", "pihole", "container:10.0.0.1", "/corp/10.0.0.1", "10.0.0.1:0", "10.0.0.0/8", "", 7])
    assert.throws(() => merge({ "client-subnet": [text] }), /invalid server .*: use an IP address/);
  refused({ strict: true, "client-subnet": ["10.0.0.1"] }, /has no effect with forward\.order: docker/);
});

test("the option is that of RFC 7871, with the whole address", () => {
  const hex = (address?: string): string => Buffer.from(subnetOption(address)).toString("hex");
  assert.equal(hex("172.18.0.2"), "0008000800012000ac120002");
  assert.equal(hex("fd00::2"), "0008001400028000fd000000000000000000000000000002");
  assert.equal(hex(undefined), "");
  assert.equal(hex("no address"), "");
});
