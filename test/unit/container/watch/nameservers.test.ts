// Proves what of a container's resolv.conf is believed.

import assert from "node:assert/strict";
import { test } from "node:test";

import type { NameserversFact } from "../../../../src/container/registry/fact.ts";
import { type NameserversInput, nameserversOf } from "../../../../src/container/watch/nameservers.ts";

const HOST = ["127.0.0.53", "10.0.0.53", "fe80::53%eth0", "127.0.0.11"];
const UNKNOWN: NameserversFact = { kind: "unknown" };
const HOSTS: NameserversFact = { kind: "host", isNdotsSet: false };

test("the servers are those of the comment, each with whom it is asked from", () => {
  assert.deepEqual(recorded(file("[host(127.0.0.53) 192.0.2.1 2001:db8::1 host(fe80::53%eth0)]")), {
    kind: "listed",
    servers: [
      { from: "host", address: "127.0.0.53" },
      { from: "container", address: "192.0.2.1" },
      { from: "container", address: "2001:db8::1" },
      { from: "host", address: "fe80::53%eth0" },
    ],
    isNdotsSet: false,
    isOwn: false,
  });
});

test("a server of the host's that the host's own file does not name is not believed, and neither is the rest", () => {
  for (const forged of ["host(192.0.2.66)", "host(127.0.0.1)", "host()", "host(127.0.0.53) host(10.0.0.54)"]) {
    assert.deepEqual(recorded(file(`[${forged}]`)), UNKNOWN, forged);
  }
  assert.deepEqual(recorded(file("[192.0.2.1 host(192.0.2.66)]")), UNKNOWN);
  assert.deepEqual(recorded(file("[\x1b]0;steered\x07 192.0.2.1]")), UNKNOWN);
});

test("the host's own 127.0.0.11 is believed, as it is inside docker-in-docker", () => {
  assert.notDeepEqual(recorded(file("[host(127.0.0.11)]")), UNKNOWN);
});

test("an empty list is an empty list", () => {
  assert.deepEqual(recorded(file("[]")), listed([]));
});

test("a file that says that there are no servers has none", () => {
  assert.deepEqual(recorded("nameserver 127.0.0.11\n# NO EXTERNAL NAMESERVERS DEFINED\n"), listed([]));
});

test("without the comment, and without the file, nothing is known", () => {
  for (const text of [
    undefined,
    "",
    "nameserver 192.0.2.1\n",
    "## ExtServers: [192.0.2.1]\n",
    "# ExtServers: 192.0.2.1\n",
  ]) {
    assert.deepEqual(recorded(text), UNKNOWN, JSON.stringify(text));
  }
});

test("the comment counts at the start of a line, wherever the line stands", () => {
  assert.deepEqual(recorded("# ExtServers: [192.0.2.1]"), listed(["192.0.2.1"]));
  assert.deepEqual(recorded("nameserver 127.0.0.11 # ExtServers: [192.0.2.1]\n"), UNKNOWN);
});

for (const [word, expected] of [
  ["host", true],
  ["override", true],
  ["internal", false],
  ["else", false],
] as const) {
  test(`ndots that came from "${word}" ${expected ? "was" : "was not"} set by somebody`, () => {
    const fact = recorded(`${file("[192.0.2.1]")}# Option ndots from: ${word}\n`);
    assert.ok(fact.kind === "listed" && fact.isNdotsSet === expected);
    const empty = recorded(`# NO EXTERNAL NAMESERVERS DEFINED\n# Option ndots from: ${word}\n`);
    assert.ok(empty.kind === "listed" && empty.isNdotsSet === expected);
  });
}

test("an engine that records nothing leaves the list of the user, asked from inside", () => {
  const input = { isRecorded: false, resolvConf: file("[host(127.0.0.53)]") };
  assert.deepEqual(
    nameservers({ ...input, dns: ["127.0.0.1", "192.0.2.1"] }),
    listed(["127.0.0.1", "192.0.2.1"], true),
  );
  assert.deepEqual(nameservers(input), UNKNOWN);
});

for (const [options, expected] of [
  [[], false],
  [["ndots:0"], true],
  [["timeout:1", "ndots:2"], true],
  [["edns0"], false],
] as const) {
  test(`an engine that records nothing has ndots ${expected ? "" : "not "}set by "${options.join(" ")}"`, () => {
    const fact = nameservers({ isRecorded: false, dns: ["192.0.2.1"], dnsOptions: options });
    assert.ok(fact.kind === "listed" && fact.isNdotsSet === expected);
  });
}

for (const [what, list] of [
  ["servers of the host's", "[host(127.0.0.53) host(fe80::53%eth0)]"],
  ["servers that the host's file no longer names", "[host(192.0.2.66)]"],
  ["servers that an older engine asks from inside", "[192.0.2.1 2001:db8::1]"],
  ["no servers", "[]"],
] as const) {
  test(`a list from the host's file, of ${what}, is the host's as it is now, where that is followed`, () => {
    assert.deepEqual(followed({ resolvConf: file(list) }), HOSTS);
  });
}

test("a host's file without servers is followed, too, for it may get some", () => {
  const without = file("").replace(/^# ExtServers.*\n/m, "");
  assert.deepEqual(followed({ resolvConf: without }), HOSTS);
  assert.deepEqual(followed({ resolvConf: `${without}# NO EXTERNAL NAMESERVERS DEFINED\n` }), HOSTS);
});

test("a list that the user or the daemon gave does not follow the host's file", () => {
  const overridden = file("[192.0.2.1]").replace("Overrides: []", "Overrides: [nameservers options]");
  assert.deepEqual(followed({ resolvConf: overridden }), listed(["192.0.2.1"]));
  assert.deepEqual(followed({ resolvConf: overridden, dns: ["192.0.2.1"] }), listed(["192.0.2.1"], true));
  // A container that forges the comment does not get rid of its own list.
  assert.deepEqual(followed({ resolvConf: file("[192.0.2.1]"), dns: ["192.0.2.1"] }), listed(["192.0.2.1"], true));
});

test("search domains and options that somebody gave do not keep the servers from being the host's", () => {
  const overridden = file("[host(127.0.0.53)]").replace("Overrides: []", "Overrides: [search options]");
  assert.deepEqual(followed({ resolvConf: overridden }), HOSTS);
});

test("a file that was not made for the resolver tells nothing of the host's", () => {
  for (const broken of [
    file("[host(192.0.2.66)]").replace("(internal resolver)", "(legacy)"),
    file("[host(192.0.2.66)]").replace(/^# Overrides.*\n/m, ""),
  ]) {
    assert.deepEqual(followed({ resolvConf: broken }), UNKNOWN);
  }
});

test("an engine that records nothing has the host's list, if it surely has no other", () => {
  const input = { isRecorded: false, resolvConf: "nameserver 127.0.0.11\noptions ndots:0\n" };
  assert.deepEqual(followed({ ...input, isDaemonWithoutDns: () => true }), HOSTS);
  assert.deepEqual(followed({ ...input, isDaemonWithoutDns: () => false }), UNKNOWN);
  assert.deepEqual(nameservers({ ...input, isDaemonWithoutDns: () => true }), UNKNOWN, "not where it is not followed");
  const own = { ...input, dns: ["192.0.2.1"], isDaemonWithoutDns: () => true };
  assert.deepEqual(followed(own), listed(["192.0.2.1"], true));
});

for (const [options, dnsOptions, expected] of [
  ["ndots:0", [], false],
  ["ndots:2", [], true],
  ["ndots:0", ["ndots:0"], true],
  ["edns0 ndots:0", [], false],
] as const) {
  test(`"${options}" in its file and "${dnsOptions.join(" ")}" of the user: ndots is ${expected ? "" : "not "}set`, () => {
    const fact = followed({
      isRecorded: false,
      isDaemonWithoutDns: () => true,
      resolvConf: `nameserver 127.0.0.11\noptions ${options}\n`,
      dnsOptions,
    });
    assert.deepEqual(fact, { kind: "host", isNdotsSet: expected });
  });
}

function file(list: string): string {
  return `# Generated by Docker Engine.\n\nnameserver 127.0.0.11\noptions ndots:0\n\n# Based on host file: '/etc/resolv.conf' (internal resolver)\n# ExtServers: ${list}\n# Overrides: []\n`;
}

function listed(addresses: readonly string[], isOwn = false): NameserversFact {
  const servers = addresses.map((address) => ({ from: "container" as const, address }));
  return { kind: "listed", servers, isNdotsSet: false, isOwn };
}

function recorded(resolvConf: string | undefined): NameserversFact {
  return nameservers({ resolvConf });
}

function followed(parts: Partial<NameserversInput>): NameserversFact {
  return nameservers({ followsHost: true, ...parts });
}

function nameservers(parts: Partial<NameserversInput>): NameserversFact {
  return nameserversOf({
    resolvConf: undefined,
    hostServers: new Set(HOST),
    dns: [],
    dnsOptions: [],
    isRecorded: true,
    followsHost: false,
    isDaemonWithoutDns: () => false,
    ...parts,
  });
}
