// Proves what is trusted in a container's resolv.conf: nothing that its root could gain from by forging it.

import assert from "node:assert/strict";
import { test } from "node:test";

import type { NameserversFact } from "../../../../src/container/facts/fact.ts";
import { type NameserversInput, nameserversOf } from "../../../../src/container/watch/nameservers.ts";

const HOST = ["127.0.0.53", "10.0.0.53", "fe80::53%eth0", "127.0.0.11"];
const DAEMONS = ["192.0.2.1", "2001:db8::1"];
/** Docker's resolver may ask the host's servers then. */
const UNKNOWN: NameserversFact = { kind: "unknown", mayBeHosts: true };
/** It may ask those of the engine's own list, and none of the host's. */
const UNKNOWN_OF_ENGINE: NameserversFact = { kind: "unknown" };
const HOSTS: NameserversFact = { kind: "host", isNdotsSet: false };
const OVERRIDDEN = "[nameservers options]";

test("a list from the host's file is the host's current list, if the host is followed, whatever the comment lists", () => {
  for (const list of [
    "[host(127.0.0.53) host(fe80::53%eth0)]",
    "[host(192.0.2.66)]",
    "[192.0.2.1 2001:db8::1]",
    "[]",
  ]) {
    assert.deepEqual(followed({ resolvConf: file(list) }), HOSTS, list);
  }
  const without = file("").replace(/^# ExtServers.*\n/m, "");
  assert.deepEqual(followed({ resolvConf: without }), HOSTS);
  assert.deepEqual(followed({ resolvConf: `${without}# NO EXTERNAL NAMESERVERS DEFINED\n` }), HOSTS);
  assert.deepEqual(followed({ resolvConf: file("[host(127.0.0.53)]", "[search options]") }), HOSTS);
});

test("--dns is used, whatever the file says", () => {
  const dns = ["192.0.2.9"];
  for (const resolvConf of [
    undefined,
    "",
    file("[192.0.2.9]", OVERRIDDEN),
    file("[host(127.0.0.53)]"),
    file("[host(10.0.0.53)]", OVERRIDDEN),
    file("[192.0.2.66]", OVERRIDDEN),
    file("").replace(/^# ExtServers.*\n/m, "# NO EXTERNAL NAMESERVERS DEFINED\n"),
  ]) {
    for (const followsHost of [true, false]) {
      for (const engineVersion of [20, 26, 28]) {
        for (const daemon of [[], DAEMONS, undefined]) {
          const fact = nameservers({ resolvConf, dns, followsHost, engineVersion, daemonDns: () => daemon });
          assert.deepEqual(fact, listed(dns, true));
        }
      }
    }
  }
});

test("where Docker 29 has garbled the daemon's list at a reload, that list is used, but not in strict mode", () => {
  const resolvConf = file("[invalid IP invalid IP]", OVERRIDDEN);
  const given = { engineVersion: 29, resolvConf, daemonDns: (): readonly string[] => DAEMONS };
  assert.deepEqual(nameservers({ ...given, followsHost: true }), listed(DAEMONS));
  assert.deepEqual(nameservers({ ...given, followsHost: false }), UNKNOWN_OF_ENGINE);
  assert.deepEqual(nameservers({ ...given, followsHost: true, daemonDns: () => [] }), UNKNOWN);
});

for (const engineVersion of [26, 28]) {
  test(`a list of the daemon is used only as in the daemon's settings, on ${engineVersion}`, () => {
    for (const followsHost of [true, false]) {
      const given = { engineVersion, followsHost, daemonDns: (): readonly string[] => DAEMONS };
      assert.deepEqual(
        nameservers({ ...given, resolvConf: file("[192.0.2.1 2001:db8::1]", OVERRIDDEN) }),
        listed(DAEMONS),
      );
      for (const forged of [
        file("[host(127.0.0.53)]"),
        file("[host(127.0.0.53)]", OVERRIDDEN),
        file("[host(192.0.2.1) host(2001:db8::1)]", OVERRIDDEN),
        file("[192.0.2.1]", OVERRIDDEN),
        file("[192.0.2.66]", OVERRIDDEN),
        file("[]", OVERRIDDEN),
        "# NO EXTERNAL NAMESERVERS DEFINED\n",
        "",
        undefined,
      ]) {
        assert.deepEqual(nameservers({ ...given, resolvConf: forged }), UNKNOWN_OF_ENGINE, forged);
      }
    }
  });

  test(`if the daemon's settings are unknown, no comment is trusted, on ${engineVersion}`, () => {
    for (const followsHost of [true, false]) {
      for (const resolvConf of [file("[host(127.0.0.53)]"), file("[192.0.2.1]", OVERRIDDEN)]) {
        const unknown = nameservers({ engineVersion, followsHost, resolvConf, daemonDns: () => undefined });
        assert.deepEqual(unknown, UNKNOWN_OF_ENGINE);
      }
    }
  });

  test(`a list without an origin is not trusted, on ${engineVersion}`, () => {
    for (const followsHost of [true, false]) {
      const resolvConf = file("[192.0.2.66]", OVERRIDDEN);
      assert.deepEqual(nameservers({ engineVersion, followsHost, resolvConf }), UNKNOWN);
    }
  });
}

test("a list from the host's file is used as recorded by the engine, if the host is not followed", () => {
  assert.deepEqual(nameservers({ resolvConf: file("[host(127.0.0.53) 10.0.0.53 host(fe80::53%eth0)]") }), {
    kind: "listed",
    servers: [
      { from: "host", address: "127.0.0.53" },
      { from: "container", address: "10.0.0.53" },
      { from: "host", address: "fe80::53%eth0" },
    ],
    isNdotsSet: false,
    isOwn: false,
  });
});

test("a server that is not in the host's file makes the whole list untrusted", () => {
  for (const forged of [
    "host(192.0.2.66)",
    "host(127.0.0.1)",
    "host()",
    "host(127.0.0.53) host(10.0.0.54)",
    "192.0.2.1",
    "127.0.0.53 192.0.2.66",
    "\x1b]0;steered\x07 127.0.0.53",
  ]) {
    assert.deepEqual(nameservers({ resolvConf: file(`[${forged}]`) }), UNKNOWN, forged);
  }
});

test("a server that the engine queries from inside is not queried from the host because of a comment", () => {
  const resolvConf = file("[host(10.0.0.53)]");
  assert.deepEqual(nameservers({ resolvConf, engineVersion: 26 }), UNKNOWN);
  assert.notDeepEqual(nameservers({ resolvConf, engineVersion: 28 }), UNKNOWN);
});

test("127.0.0.11 as the host's server is trusted, as in docker-in-docker", () => {
  assert.notDeepEqual(nameservers({ resolvConf: file("[host(127.0.0.11)]") }), UNKNOWN);
});

test("an empty list is an empty list", () => {
  assert.deepEqual(nameservers({ resolvConf: file("[]") }), listed([]));
});

test("without the comments, and without the file, nothing is known", () => {
  for (const text of [
    undefined,
    "",
    "nameserver 192.0.2.1\n",
    "## ExtServers: [127.0.0.53]\n",
    "# ExtServers: [127.0.0.53]\n",
    file("[127.0.0.53]").replace("# ExtServers: [127.0.0.53]", "# ExtServers: 127.0.0.53"),
    file("[127.0.0.53]").replace("\n# ExtServers", " # ExtServers"),
    file("[127.0.0.53]").replace("(internal resolver)", "(legacy)"),
    file("[127.0.0.53]").replace(/^# Overrides.*\n/m, ""),
  ]) {
    assert.deepEqual(nameservers({ resolvConf: text }), UNKNOWN, JSON.stringify(text));
  }
  assert.deepEqual(followed({ resolvConf: file("[]").replace("(internal resolver)", "(legacy)") }), UNKNOWN);
});

for (const [word, expected] of [
  ["host", true],
  ["override", true],
  ["internal", false],
  ["else", false],
] as const) {
  test(`ndots from "${word}" ${expected ? "counts" : "does not count"} as set`, () => {
    const resolvConf = `${file("[127.0.0.53]")}# Option ndots from: ${word}\n`;
    for (const fact of [
      nameservers({ resolvConf }),
      followed({ resolvConf }),
      followed({ resolvConf, dns: ["192.0.2.9"] }),
    ]) {
      assert.ok(fact.kind !== "unknown" && fact.isNdotsSet === expected);
    }
  });
}

test("what dns11 itself writes into the file counts as nobody's choice", () => {
  const input = { engineVersion: 20, ownOption: "ndots:5" };
  const setBy = (option: string): NameserversFact =>
    followed({ ...input, resolvConf: `nameserver 127.0.0.11\noptions ${option}\n` });
  assert.deepEqual(setBy("ndots:5"), HOSTS);
  assert.deepEqual(setBy("ndots:3"), { ...HOSTS, isNdotsSet: true });
});

test("for an engine that records nothing the host's list is used, if it certainly has no other", () => {
  const input = { engineVersion: 20, resolvConf: "nameserver 127.0.0.11\noptions ndots:0\n" };
  assert.deepEqual(followed(input), HOSTS);
  assert.deepEqual(followed({ ...input, daemonDns: () => undefined }), UNKNOWN_OF_ENGINE);
  assert.deepEqual(followed({ ...input, daemonDns: () => DAEMONS }), UNKNOWN_OF_ENGINE);
  assert.deepEqual(nameservers(input), UNKNOWN, "not where it is not followed");
});

for (const [options, expected] of [
  [[], false],
  [["ndots:0"], true],
  [["timeout:1", "ndots:2"], true],
  [["edns0"], false],
] as const) {
  test(`on an engine that records nothing, "${options.join(" ")}" ${expected ? "sets" : "does not set"} ndots`, () => {
    const fact = nameservers({ engineVersion: 20, dns: ["192.0.2.1"], dnsOptions: options });
    assert.ok(fact.kind === "listed" && fact.isNdotsSet === expected);
  });
}

for (const [options, dnsOptions, expected] of [
  ["ndots:0", [], false],
  ["ndots:2", [], true],
  ["ndots:0", ["ndots:0"], true],
  ["edns0 ndots:0", [], false],
] as const) {
  test(`"${options}" in its file and "${dnsOptions.join(" ")}" of the user: ndots is ${expected ? "" : "not "}set`, () => {
    const resolvConf = `nameserver 127.0.0.11\noptions ${options}\n`;
    const fact = followed({ engineVersion: 20, resolvConf, dnsOptions });
    assert.deepEqual(fact, { kind: "host", isNdotsSet: expected });
  });
}

function file(list: string, overrides = "[]"): string {
  return `# Generated by Docker Engine.\n\nnameserver 127.0.0.11\noptions ndots:0\n\n# Based on host file: '/etc/resolv.conf' (internal resolver)\n# ExtServers: ${list}\n# Overrides: ${overrides}\n`;
}

function listed(addresses: readonly string[], isOwn = false): NameserversFact {
  const servers = addresses.map((address) => ({ from: "container" as const, address }));
  return { kind: "listed", servers, isNdotsSet: false, isOwn };
}

function followed(parts: Partial<NameserversInput>): NameserversFact {
  return nameservers({ followsHost: true, ...parts });
}

/** On an engine that records its lists and has none of its own. */
function nameservers(parts: Partial<NameserversInput>): NameserversFact {
  return nameserversOf({
    resolvConf: undefined,
    hostServers: () => new Set(HOST),
    dns: [],
    dnsOptions: [],
    engineVersion: 28,
    followsHost: false,
    daemonDns: () => [],
    ...parts,
  });
}

test("an engine that has containers ask the listener has them use the host's servers, whatever the file says", () => {
  for (const engineVersion of [20, 26, 28]) {
    for (const resolvConf of [undefined, file("[169.254.53.53]", OVERRIDDEN), file("[192.0.2.66]", OVERRIDDEN)]) {
      for (const daemon of [["169.254.53.53"], ["FD64:6E73:3131:0::53", "169.254.53.53"]]) {
        const isByListener = resolvConf?.includes("169.254.53.53") === true && daemon.length === 1;
        const expected: NameserversFact = { ...HOSTS, ...(isByListener && { isByListener }) };
        assert.deepEqual(nameservers({ resolvConf, engineVersion, daemonDns: () => daemon }), expected);
      }
      const both = { resolvConf, engineVersion, daemonDns: (): readonly string[] => ["169.254.53.53", "192.0.2.1"] };
      assert.deepEqual(nameservers(both), listed(["192.0.2.1"]));
    }
  }
});
