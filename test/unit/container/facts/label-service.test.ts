// Proves what labels, hostnames and ports make of a container's place in a zone, and what is said about the others.

import assert from "node:assert/strict";
import { test } from "node:test";

import { LABEL_DEFAULTS } from "../../../../src/base/model/name-choices.ts";
import type { ContainerFact } from "../../../../src/container/facts/fact.ts";
import { servicePlace, serviceWarning } from "../../../../src/container/facts/label-service.ts";
import { aContainer } from "../../../support/scripted/builders.ts";

const ID = "0123456789abcdef".repeat(4);
const SHORT_ID = ID.slice(0, 12);
const PLACE = { "io.dns11.project": "dev", "io.dns11.service": "web" };
const NUMBER = { "com.docker.compose.container-number": "3" };

function placeOf(parts: Partial<ContainerFact>): ReturnType<typeof servicePlace> {
  return servicePlace(aContainer({ id: ID, hostname: SHORT_ID, ...parts }), LABEL_DEFAULTS);
}

test("a container is called by the hostname that its creator chose, then by its number, then by its id", () => {
  const hosts = (labels: Record<string, string>, hostname?: string): readonly string[] | undefined =>
    placeOf({ labels: { ...PLACE, ...labels }, ...(hostname !== undefined && { hostname }) })?.hosts;
  assert.deepEqual(hosts(NUMBER), ["3", SHORT_ID]);
  assert.deepEqual(hosts(NUMBER, "Db.example.com"), ["db", "3"]);
  assert.deepEqual(hosts({}), [SHORT_ID]);
  assert.deepEqual(hosts({}, "_tcp"), [SHORT_ID]);
  assert.deepEqual(hosts(NUMBER, "any"), ["3"]);
  assert.deepEqual(hosts({ "com.docker.compose.container-number": "*" }, ""), [SHORT_ID]);
});

test("without a project or a service, or with one that is no label of a name, there is no place", () => {
  for (const [project, service] of [
    ["dev", undefined],
    [undefined, "web"],
    ["dev", "a.b"],
    ["any", "web"],
    ["*", "web"],
    ["dev", "_web"],
    ["dev", "w\u0000b"],
    ["dev", "wéb"],
    ["dev", "x".repeat(64)],
    ["", ""],
  ] as const) {
    const labels = {
      ...(project !== undefined && { "com.docker.compose.project": project }),
      ...(service !== undefined && { "com.docker.compose.service": service }),
    };
    assert.equal(placeOf({ labels }), undefined, `${project} ${service}`);
  }
});

test("ports of the label replace those that are published; the limit is 32", () => {
  const portsOf = (text: string): readonly string[] | undefined =>
    placeOf({
      labels: { ...PLACE, "io.dns11.ports": text },
      ports: { published: ["80/tcp"], exposed: [], ofImage: [] },
    })?.ports.map(({ name, protocol, number }) => `${name} ${protocol} ${number}`);
  assert.deepEqual(portsOf("HTTP=8080, dns=53/udp\tmetrics=9100/tcp"), [
    "http tcp 8080",
    "dns udp 53",
    "metrics tcp 9100",
  ]);
  for (const bad of [
    "http",
    "=80",
    "http=0",
    "http=65536",
    "http=80/icmp",
    "80=80",
    "a_b=1",
    "a--b=1",
    `${"a".repeat(16)}=1`,
    "http=8e1",
  ])
    assert.deepEqual(portsOf(`${bad} ok=1`), ["ok tcp 1"], bad);
  assert.equal(portsOf(Array.from({ length: 40 }, (_, n) => `p${n}=${n + 1}`).join())?.length, 32);
  assert.deepEqual(portsOf(""), []);
});

test("labels that cannot be used are reported in short, with what to use", () => {
  assert.equal(serviceWarning({ ...PLACE, "io.dns11.ports": "http=80" }), undefined);
  assert.equal(serviceWarning({ "com.docker.compose.service": "a.b" }), undefined, "Compose names are not ours");
  assert.match(
    serviceWarning({ "io.dns11.service": "a.b" }) ?? "",
    /^invalid label io\.dns11\.service="a\.b": use letters, digits, "-" and "_", at most 63/,
  );
  assert.match(
    serviceWarning({ "io.dns11.ports": "http" }) ?? "",
    /^invalid label io\.dns11\.ports: "http" is ignored: use NAME=PORT or NAME=PORT\/udp, such as http=80$/,
  );
  const many = serviceWarning({ "io.dns11.project": "x".repeat(100_000), "io.dns11.ports": "p=1 ".repeat(100_000) });
  assert.match(many ?? "", /has too many ports: the limit is 32$/);
  assert.ok((many?.length ?? 0) < 500);
});
