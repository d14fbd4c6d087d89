// Proves parsing of nameservers and routes: every valid form, invalid ones, and that formatting reverses it.

import assert from "node:assert/strict";
import { test } from "node:test";

import * as fc from "fast-check";

import {
  type NamedServer,
  type RouteText,
  domainLabels,
  parseDomain,
  parseRoute,
  parseServer,
  routeText,
  serverText,
  serversIn,
} from "../../../../src/base/model/server-text.ts";

const SERVERS: Readonly<Record<string, NamedServer>> = {
  host: "host",
  "10.0.0.53": { from: "host", address: "10.0.0.53", port: 53 },
  "10.0.0.53:5353": { from: "host", address: "10.0.0.53", port: 5353 },
  "10.0.0.53#5353": { from: "host", address: "10.0.0.53", port: 5353 },
  "fd00::53": { from: "host", address: "fd00::53", port: 53 },
  "::1": { from: "host", address: "::1", port: 53 },
  "[fd00::53]": { from: "host", address: "fd00::53", port: 53 },
  "[fd00::53]:5353": { from: "host", address: "fd00::53", port: 5353 },
  "fd00::53#5353": { from: "host", address: "fd00::53", port: 5353 },
  "fe80::1%eth0": { from: "host", address: "fe80::1%eth0", port: 53 },
  "fe80::1%br-0.100": { from: "host", address: "fe80::1%br-0.100", port: 53 },
  "[fe80::1%eth0]:5353": { from: "host", address: "fe80::1%eth0", port: 5353 },
  "fe80::1%eth0#5353": { from: "host", address: "fe80::1%eth0", port: 5353 },
  "container:10.0.0.53": { from: "container", address: "10.0.0.53", port: 53 },
  "container:10.0.0.53:5353": { from: "container", address: "10.0.0.53", port: 5353 },
  "container:[fd00::53]:5353": { from: "container", address: "fd00::53", port: 5353 },
  "container:pihole": { target: "pihole", network: undefined, port: 53 },
  "container:my_dns.1@back-end:5353": { target: "my_dns.1", network: "back-end", port: 5353 },
  "container:pihole@infra#5353": { target: "pihole", network: "infra", port: 5353 },
  "tls://10.0.0.53": { from: "host", address: "10.0.0.53", port: 853, tls: "10.0.0.53" },
  "tls://10.0.0.53#Dns.example.": { from: "host", address: "10.0.0.53", port: 853, tls: "dns.example" },
  "tls://10.0.0.53:8853#resolver": { from: "host", address: "10.0.0.53", port: 8853, tls: "resolver" },
  "tls://10.0.0.53:53": { from: "host", address: "10.0.0.53", port: 53, tls: "10.0.0.53" },
  "tls://fd00::53": { from: "host", address: "fd00::53", port: 853, tls: "fd00::53" },
  "tls://[fd00::53]:8853#dns.example": { from: "host", address: "fd00::53", port: 8853, tls: "dns.example" },
  "tls://[fe80::1%eth0]#dns.example": { from: "host", address: "fe80::1%eth0", port: 853, tls: "dns.example" },
  "tls://[fe80::1%eth0]": { from: "host", address: "fe80::1%eth0", port: 853, tls: "fe80::1" },
  "container:tls://10.0.0.53#dns.example": { from: "container", address: "10.0.0.53", port: 853, tls: "dns.example" },
  // Docker in Docker: the host may well be a container.
  "127.0.0.11": { from: "host", address: "127.0.0.11", port: 53 },
};

for (const [text, server] of Object.entries(SERVERS)) {
  test(`"${text}" is a nameserver`, () => {
    assert.deepEqual(parseServer(text), server);
    assert.deepEqual(parseRoute(text), { domains: [""], servers: [server], isLocal: false });
  });
}

test("with the side `container`, a server is queried from inside the container", () => {
  assert.deepEqual(parseServer("10.0.0.53:5353", "container"), { from: "container", address: "10.0.0.53", port: 5353 });
  assert.deepEqual(parseServer("container:10.0.0.53", "container"), parseServer("10.0.0.53", "container"));
  assert.equal(parseServer("host", "container"), "host");
  assert.deepEqual(parseRoute("/lan/10.0.0.53", "container"), parseRoute("/lan/container:10.0.0.53"));
});

const BAD_SERVERS: Readonly<Record<string, RegExp>> = {
  "": /invalid nameserver/,
  " 10.0.0.53": /invalid nameserver/,
  "10.0.0": /invalid nameserver/,
  "10.0.0.256": /invalid nameserver/,
  "010.0.0.1": /invalid nameserver/,
  "dns.example": /invalid nameserver/,
  HOST: /invalid nameserver/,
  "host:53": /invalid nameserver/,
  "container:host": /invalid nameserver/,
  "container:": /invalid nameserver/,
  "container:10.0.0.999": /invalid nameserver/,
  "container:pihole@": /invalid nameserver/,
  "container:pihole@a@b": /invalid nameserver/,
  "container:pihole:dns": /invalid nameserver/,
  "container:pihole:0": /invalid port in .*: use 1 to 65535/,
  "container:pi hole": /use "host", an IP address or container:NAME\[@NETWORK\]/,
  "container:-pihole": /invalid nameserver/,
  pihole: /invalid nameserver/,
  "10.0.0.53:": /invalid nameserver/,
  "10.0.0.53:0": /invalid port in .*: use 1 to 65535/,
  "10.0.0.53:65536": /invalid port/,
  "10.0.0.53#99999999999999999999": /invalid port/,
  "10.0.0.53:dns": /invalid nameserver/,
  "10.0.0.53:53:53": /invalid nameserver/,
  "10.0.0.53%eth0": /invalid nameserver/,
  "[10.0.0.53": /invalid nameserver/,
  "[]:53": /invalid nameserver/,
  "[fd00::53]5353": /invalid nameserver/,
  "fd00::53%": /invalid nameserver/,
  "fe80::1%eth 0": /invalid nameserver/,
  "fe80::1%eth0:5353": /invalid nameserver/,
  "fe80::1%a%b": /invalid nameserver/,
  "fe80::1%../x": /invalid nameserver/,
  "fe80::1": /needs its interface, such as fe80::1%eth0/,
  "[FEBF::1]:53": /needs its interface/,
  "container:127.0.0.11": /dns11 itself listens there/,
  "container:127.0.0.11:5353": /dns11 itself listens there/,
  "https://10.0.0.53": /invalid nameserver/,
  "tls://": /use tls:\/\/ADDRESS\[:PORT\]\[#NAME\]/,
  "tls://dns.example": /a name instead of an address could not be looked up/,
  "tls://host": /use tls:\/\/ADDRESS/,
  "tls://container:pihole": /use tls:\/\/ADDRESS/,
  "tls://10.0.0.53#": /with the host name that is in its certificate/,
  "tls://10.0.0.53#8853": /with the host name that is in its certificate/,
  "tls://10.0.0.53#10.0.0.54": /with the host name that is in its certificate/,
  "tls://10.0.0.53#fd00::1": /with the host name that is in its certificate/,
  "tls://10.0.0.53#a#b": /with the host name that is in its certificate/,
  "tls://10.0.0.53#a..b": /with the host name that is in its certificate/,
  "tls://10.0.0.53#a/b": /with the host name that is in its certificate/,
  [`tls://10.0.0.53#${"a.".repeat(127)}a`]: /with the host name that is in its certificate/,
  "tls://10.0.0.53:0": /invalid port in .*: use 1 to 65535/,
  "tls://fe80::1": /needs its interface/,
  "container:tls://127.0.0.11": /dns11 itself listens there/,
  "TLS://10.0.0.53": /invalid nameserver/,
};

for (const [text, message] of Object.entries(BAD_SERVERS)) {
  test(`"${text}" is not a nameserver, and the error quotes it`, () => {
    assert.throws(
      () => parseServer(text),
      (error: Error) => message.test(error.message) && error.message.includes(`"${text}"`),
    );
  });
}

const SERVER = { from: "host" as const, address: "10.0.0.53", port: 53 };

const ROUTES: Readonly<Record<string, RouteText>> = {
  "/corp.example/10.0.0.53": { domains: ["corp.example"], servers: [SERVER], isLocal: false },
  "/Corp.Example./10.0.0.53": { domains: ["corp.example"], servers: [SERVER], isLocal: false },
  "/.corp.example/10.0.0.53": { domains: ["corp.example"], servers: [SERVER], isLocal: false },
  "/*.corp.example/10.0.0.53": { domains: ["corp.example"], servers: [SERVER], isLocal: false },
  "/one/two/10.0.0.53": { domains: ["one", "two"], servers: [SERVER], isLocal: false },
  "/corp.example/host": { domains: ["corp.example"], servers: ["host"], isLocal: false },
  "/168.192.in-addr.arpa/10.0.0.53": { domains: ["168.192.in-addr.arpa"], servers: [SERVER], isLocal: false },
  "/_tcp.corp-1.example/[fd00::53]:5353": {
    domains: ["_tcp.corp-1.example"],
    servers: [{ from: "host", address: "fd00::53", port: 5353 }],
    isLocal: false,
  },
  "/corp.example/tls://10.0.0.53#dns.example": {
    domains: ["corp.example"],
    servers: [{ from: "host", address: "10.0.0.53", port: 853, tls: "dns.example" }],
    isLocal: false,
  },
  "/one/two/container:tls://[fd00::53]": {
    domains: ["one", "two"],
    servers: [{ from: "container", address: "fd00::53", port: 853, tls: "fd00::53" }],
    isLocal: false,
  },
  "/corp.example/": { domains: ["corp.example"], servers: [], isLocal: true },
  "//": { domains: [""], servers: [], isLocal: true },
  "/./10.0.0.53": { domains: [""], servers: [SERVER], isLocal: false },
};

for (const [text, route] of Object.entries(ROUTES)) {
  test(`"${text}" is a route`, () => assert.deepEqual(parseRoute(text), route));
}

const BAD_ROUTES: Readonly<Record<string, RegExp>> = {
  "/": /invalid route/,
  "/corp.example": /invalid route/,
  "/10.0.0.53": /invalid route/,
  "/corp..example/10.0.0.53": /invalid domain name "corp..example"/,
  "/#/10.0.0.53": /invalid domain name "#"/,
  "/corp example/10.0.0.53": /invalid domain name/,
  "/b\u00fccher.example/10.0.0.53": /invalid domain name/,
  "/tls://10.0.0.53": /invalid route/,
  "/corp.example/tls://dns": /invalid nameserver "tls:\/\/dns"/,
  "/corp.example/10.0.0": /invalid nameserver "10.0.0"/,
};

for (const [text, message] of Object.entries(BAD_ROUTES)) {
  test(`"${text}" is not a route`, () => assert.throws(() => parseRoute(text), { message }));
}

test("a label of 63 bytes is valid; one of 64 bytes is not, nor is a name of 255 bytes", () => {
  assert.equal(parseDomain("a".repeat(63)), "a".repeat(63));
  assert.throws(() => parseDomain("a".repeat(64)), /invalid domain name/);
  assert.throws(() => parseDomain(Array.from({ length: 128 }, () => "a").join(".")), /invalid domain name/);
});

test("wire labels of a domain are in lower case without a terminating zero; for every name they are empty", () => {
  assert.deepEqual(domainLabels("corp.example"), Buffer.from("\x04corp\x07example"));
  assert.equal(domainLabels("").length, 0);
});

test("formatting reverses parsing", () => {
  for (const text of [...Object.keys(SERVERS), ...Object.keys(ROUTES)]) {
    const route = parseRoute(text);
    assert.deepEqual(parseRoute(routeText(route)), route, routeText(route));
  }
});

test("any text is parsed, or rejected with an Error that says why", () => {
  const pieces = fc.constantFrom(
    "/",
    ":",
    "#",
    "[",
    "]",
    "%",
    "host",
    "container:",
    "tls://",
    "10.0.0.1",
    "fd00::1",
    "53",
    "a.b",
  );
  fc.assert(
    fc.property(
      fc.oneof(
        fc.string(),
        fc.array(pieces).map((all) => all.join("")),
      ),
      (text) => {
        try {
          const route = parseRoute(text);
          assert.deepEqual(parseRoute(routeText(route)), route);
        } catch (error) {
          assert.ok(
            error instanceof Error &&
              /^invalid (nameserver|route|domain name|port) |^invalid port in /.test(error.message),
            String(error),
          );
        }
      },
    ),
  );
});

test("a server of a view is formatted as Docker does", () => {
  const written = (["host", "container", "docker"] as const).map((from) => [
    serverText({ from, address: "10.0.0.53", port: 53 }),
    serverText({ from, address: "fd00::53", port: 5353 }),
    serverText({ from, address: "fe80::1%eth0", port: 5353 }),
  ]);
  assert.deepEqual(written, [
    ["host(10.0.0.53)", "host([fd00::53]:5353)", "host([fe80::1%eth0]:5353)"],
    ["10.0.0.53", "[fd00::53]:5353", "[fe80::1%eth0]:5353"],
    ["docker(10.0.0.53)", "docker(fd00::53)", "docker(fe80::1%eth0)"],
  ]);
  assert.equal(serverText({ from: "docker", address: "127.0.0.11", port: 53 }), "docker", "where it usually is");
});

test("the servers in a status are parsed back", () => {
  const servers = (["host", "container", "docker"] as const).flatMap((from) => [
    { from, address: "10.0.0.53", port: 53 },
    { from, address: "fd00::53", port: from === "docker" ? 53 : 5353 },
    { from, address: "fe80::1%eth0", port: 53 },
    ...(from === "docker"
      ? []
      : [
          { from, address: "10.0.0.53", port: 853, tls: "dns.example" },
          { from, address: "fd00::53", port: 8853, tls: "fd00::53" },
        ]),
  ]);
  const text = servers.map((server) => serverText(server)).join(" ");
  assert.deepEqual(serversIn(text), servers);
  const container = { name: "pihole", network: "infra", startedAt: "" };
  const named = (["host", "container"] as const).map((from) => ({ from, address: "fd00::53", port: 5353, container }));
  assert.deepEqual(serversIn(named.map((server) => serverText(server)).join(" ")), named);
  assert.deepEqual(serversIn(`/corp.example/${text}`), servers);
  assert.deepEqual(serversIn("docker"), [{ from: "docker", address: "127.0.0.11", port: 53 }]);
  assert.deepEqual(["none", "nobody", "/corp.example/nobody", ""].flatMap(serversIn), []);
});
