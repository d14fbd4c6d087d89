// Containers that claim anything, and clients that query anything below a zone: every answer is a whole message, bounded,
// and nothing is forwarded.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Random } from "../../fuzz/random.ts";
import { runs } from "../../support/rig/runs.ts";
import { TYPE, aQuery, u16 } from "../../support/scripted/builders.ts";
import { readName } from "../../unit/support/reply.ts";
import { ZoneWorld, aMember } from "../../unit/support/zone.ts";

const client = aMember("client", { on: { one: "10.9.9.9" } });
const TYPES = [TYPE.A, TYPE.AAAA, TYPE.SRV, TYPE.TXT, TYPE.SOA, TYPE.PTR, TYPE.ANY, 0, 65_535];
const WORDS = ["svc", "endpoints", "pod", "dns", "ns", "dns-version", "any", "*", "_tcp", "_http", "dev", "web", "1"];
const WORLD_SEED = 7;

test("random labels below a zone are answered from it, whatever their octets", () => {
  const labels = { "io.dns11.ports": "http=80" };
  const web = aMember("web", { service: "web", labels, on: { one: ["10.1.0.1", "fd00::1"] } });
  const world = new ZoneWorld([web, client]);
  for (let index = 0; index < runs(300); index++) {
    const random = new Random(WORLD_SEED, index);
    const prefix = Array.from({ length: random.below(9) }, () => {
      const word = random.once(4) ? random.bytes(1 + random.below(20)) : Buffer.from(random.pick(WORDS));
      return Buffer.concat([Buffer.of(word.length), word]);
    });
    const name = Buffer.concat([...prefix, Buffer.from("\x07cluster\x05local\0", "latin1")]);
    const result = world.askRaw(client, aQuery({ name, type: random.pick(TYPES) }), random.once(2));
    assert.equal(result.kind, "reply", `${WORLD_SEED}/${index}`);
    assert.ok([0, 3].includes(result.reply.rcode), `${WORLD_SEED}/${index}`);
    assert.equal(result.reply.answers.length > 0 || result.reply.authorities.length === 1, true);
    assert.equal(result.reply.rcode === 3 && result.reply.answers.length > 0, false);
  }
});

test("wildcards and large services have a limited answer", () => {
  const many = Array.from({ length: 2_000 }, (_, n) =>
    aMember(`web-${n}`, {
      service: n < 1_000 ? "web" : `web-${n}`,
      number: n,
      labels: { "io.dns11.ports": "http=80" },
      on: { one: `10.1.${n >> 8}.${n & 255}` },
    }),
  );
  const world = new ZoneWorld([...many, client]);
  for (const name of ["*.*.svc", "web.dev.svc", "any.dev.endpoints"])
    assert.equal(world.reply(client, `${name}.cluster.local`).answers.length, 256, name);
  const ports = world.reply(client, "*.*.*.*.svc.cluster.local", TYPE.SRV);
  assert.equal(ports.answers.length, 256);
});

test("any text in labels, hostnames and ports leaves the zone whole: names that lead back to containers can be looked up", () => {
  const random = new Random(WORLD_SEED, 0);
  const text = (): string => {
    const bytes = random.bytes(random.below(80)).toString(random.once(2) ? "latin1" : "hex");
    return random.once(3) ? random.pick(WORDS) : bytes;
  };
  const containers = Array.from({ length: 500 }, (_, n) =>
    aMember(`c${n}`, {
      service: text(),
      project: text(),
      hostname: text(),
      labels: { "io.dns11.ports": text(), ...(random.once(5) && { "io.dns11.project": text() }) },
      ports: { published: [text()], exposed: [text()], ofImage: [text()] },
      on: { one: `10.2.${n >> 8}.${n & 255}` },
    }),
  );
  const world = new ZoneWorld([...containers, client]);
  let known = 0;
  for (let n = 0; n < containers.length; n++) {
    const { answers } = world.reply(client, `${n & 255}.${n >> 8}.2.10.in-addr.arpa`, TYPE.PTR);
    const target = readName(answers[0]?.data ?? Buffer.of(0), 0).text;
    if (!target.endsWith(".svc.cluster.local")) continue;
    known++;
    assert.ok(world.addresses(client, target).includes(`10.2.${n >> 8}.${n & 255}`), target);
  }
  assert.ok(known > 5, `${known} containers have a name`);
});

test("a query in another class than IN is refused, and not forwarded", () => {
  const query = aQuery({ name: "web.dev.svc.cluster.local", typeAndClass: Buffer.concat([u16(TYPE.A), u16(3)]) });
  const result = new ZoneWorld([client]).askRaw(client, query, false);
  assert.equal(result.kind === "reply" && result.reply.rcode, 5);
});
