// A container's queries for names of the swarm, with a server in the place of Docker's resolver: what a hostile one can and
// cannot do, and how many questions a flood of names that do not exist costs.

import assert from "node:assert/strict";
import { test } from "node:test";

import { RandomIds } from "../../../../src/base/lib/random-ids.ts";
import { LIMITS } from "../../../../src/base/limits.ts";
import { DEFAULT_BEHAVIOUR } from "../../../../src/base/model/behaviour.ts";
import { LOCAL_SOURCE } from "../../../../src/base/model/local-source.ts";
import type { VisibleNames } from "../../../../src/base/model/visible-names.ts";
import { Answerer } from "../../../../src/query/answer.ts";
import type { Client } from "../../../../src/query/client/client.ts";
import { DockerForwarder } from "../../../../src/query/forward/docker-forwarder.ts";
import { DEFERRED, SLOT_BYTES } from "../../../../src/query/ports.ts";
import { TYPE, aClient, aQuery, aRecord, aReplyTo, upstreams } from "../../../support/scripted/builders.ts";
import { Clock } from "../../support/clock.ts";
import { dialHere } from "../../support/loopback.ts";
import { type Reply, readReply } from "../../support/reply.ts";
import { type UdpScript, UdpUpstream } from "../../support/upstreams.ts";

const ADDRESS = Buffer.of(10, 0, 1, 2);
const SERVFAIL = 2;

// Every name may be the swarm's.
const NAMES: VisibleNames = {
  places: [],
  kind: LOCAL_SOURCE.swarm,
  find: ({ folded, foldedLength }, search) => {
    const labels = Uint8Array.from(folded.subarray(0, foldedLength));
    return search.onlyDocker({
      labels,
      kind: "name",
      hasIPv6: false,
      isGuarded: true,
      isOnlyHere: true,
      isDenied: false,
      whose: "the swarm",
    });
  },
  pointer: () => undefined,
};

class Container {
  readonly client: Client;
  // The names that went on to upstream servers.
  readonly forwarded: string[] = [];
  readonly #answerer = new Answerer(DEFAULT_BEHAVIOUR, { seed: 1 });
  readonly #asker: DockerForwarder;
  readonly #block = Buffer.alloc(SLOT_BYTES);

  constructor(docker: UdpUpstream) {
    this.client = aClient({ names: [NAMES], upstreams: upstreams() }, (_, type) => dialHere(docker.server, type));
    this.#asker = new DockerForwarder({
      behaviour: DEFAULT_BEHAVIOUR,
      answerer: this.#answerer,
      forward: (_, { name, query }, __, respond) => {
        this.forwarded.push(name);
        respond(aReplyTo(query, 3), this.#answerer.outcome);
      },
      ids: new RandomIds(),
      now: () => performance.now(),
      queriesMax: LIMITS.forwardQueriesShared,
    });
  }

  async resolve(name: string): Promise<Reply> {
    const query = aQuery({ name });
    query.copy(this.#block);
    const length = this.#answerer.answer(this.client, this.#block, 0, query.length, false);
    if (length !== DEFERRED) return readReply(Buffer.from(this.#block.subarray(0, length)));
    const deferred = this.#answerer.takeDeferred(this.#block);
    return await new Promise((resolve) =>
      this.#asker.forward(this.client, deferred, "udp", (reply) => resolve(readReply(Buffer.from(reply)))),
    );
  }
}

const known: UdpScript = (query, reply) =>
  reply(aReplyTo(query, 0, [aRecord({ owner: Buffer.of(0xc0, 12), type: TYPE.A, ttl: 600, data: ADDRESS })]));

function addresses({ rcode, answers }: Reply): unknown {
  return [rcode, ...answers.map(({ data }) => data.toString("hex"))];
}

function changed(query: Buffer, change: (reply: Buffer) => void): Buffer {
  const reply = aReplyTo(query, 0);
  change(reply);
  return reply;
}

const HOSTILE: Readonly<Record<string, (query: Buffer) => Buffer>> = {
  "another question": (query) => changed(query, (reply) => reply.write("x", 13, "latin1")),
  "the query itself": (query) => query,
  "a header alone": (query) => aReplyTo(query, 0).subarray(0, 12),
  "truncated to nothing": (query) => changed(query, (reply) => reply.writeUInt8(0x83, 2)),
  "a name that never ends": (query) => Buffer.concat([query.subarray(0, 12), Buffer.alloc(500, 0x3f)]),
  refused: (query) => aReplyTo(query, 5),
};

for (const [what, script] of Object.entries(HOSTILE)) {
  test(`a reply that is none (${what}) fails the query, and nothing is forwarded or kept`, async () => {
    // On a busy machine, nothing times out meanwhile.
    using _clock = new Clock();
    await using docker = new UdpUpstream((query, reply) => reply(script(query)));
    const container = new Container(docker);
    assert.deepEqual(addresses(await container.resolve("web")), [SERVFAIL]);
    assert.deepEqual(container.forwarded, []);
    assert.equal(container.client.dockerAnswers.isKept("n\x03web"), false);
    assert.equal(container.client.slots.taken, 0);
  });
}

test("a reply with another id is not the answer; the one after it is", async () => {
  using _clock = new Clock();
  await using docker = new UdpUpstream((query, reply) => {
    const forged = aReplyTo(query, 0, [aRecord({ owner: "web", type: TYPE.A, data: Buffer.of(192, 0, 2, 66) })]);
    forged.writeUInt16BE(query.readUInt16BE(0) ^ 1, 0);
    reply(forged);
    known(query, reply);
  });
  assert.deepEqual(addresses(await new Container(docker).resolve("web")), [0, ADDRESS.toString("hex")]);
});

test("an alias loop is a name without addresses, and of 4,000 addresses a part is answered", async () => {
  using _clock = new Clock();
  const pointer = Buffer.of(0xc0, 12);
  await using docker = new UdpUpstream((query, reply) => {
    const isLoop = query.includes("loop");
    const loop = aRecord({ owner: pointer, type: TYPE.CNAME, ttl: 600, data: pointer });
    const one = aRecord({ owner: pointer, type: TYPE.A, ttl: 600, data: ADDRESS });
    reply(aReplyTo(query, 0, isLoop ? [loop, loop] : Array.from({ length: 4_000 }, () => one)));
  });
  const container = new Container(docker);
  assert.deepEqual(addresses(await container.resolve("loop")), [0]);
  const { flags, answers } = await container.resolve("crowd");
  assert.match(flags, /tc/);
  assert.ok(answers.length > 0 && answers.length < 40);
});

test("a flood of names that do not exist costs as many questions as its limit, and the names that do exist go on", async () => {
  using _clock = new Clock();
  let inFlight = 0;
  let most = 0;
  await using docker = new UdpUpstream((query, reply) => {
    most = Math.max(most, (inFlight += 1));
    setImmediate(() => {
      inFlight--;
      if (query.includes("web")) known(query, reply);
      else reply(aReplyTo(query, SERVFAIL));
    });
  });
  const container = new Container(docker);
  await container.resolve("web");
  const flood = await Promise.all(Array.from({ length: 600 }, async (_, at) => await container.resolve(`no-${at}`)));
  const asked = docker.queries.length - 1;
  const { burst, perSecond } = LIMITS.askedUnknown;
  // Tokens that are earned meanwhile, even if the machine stands still for a while.
  assert.ok(asked >= burst && asked <= burst + 30 * perSecond, `${asked} questions`);
  assert.ok(most <= burst, `${most} at once`);
  assert.equal(container.forwarded.length, asked, "what Docker's resolver does not know goes on");
  assert.equal(
    flood.filter(({ rcode }) => rcode === SERVFAIL).length,
    600 - asked,
    "the rest fails, and is not forwarded",
  );
  assert.deepEqual(addresses(await container.resolve("web")), [0, ADDRESS.toString("hex")]);
  assert.equal(container.client.slots.taken, 0);
});

test("a name that is removed while it is polled is unknown from then on, and never fails", async () => {
  using _clock = new Clock();
  let isRemoved = false;
  await using docker = new UdpUpstream((query, reply) => {
    if (isRemoved) reply(aReplyTo(query, SERVFAIL));
    else known(query, reply);
  });
  const container = new Container(docker);
  assert.deepEqual(addresses(await container.resolve("web")), [0, ADDRESS.toString("hex")]);
  isRemoved = true;
  container.client.dockerAnswers.take("n\x03web", { kind: "unknown" });
  const polls = 4 * LIMITS.askedUnknown.burst;
  for (let poll = 0; poll < polls; poll++) assert.equal((await container.resolve("web")).rcode, 3);
  assert.equal(container.forwarded.length, polls);
});

test("names that exist are all answered, however many are queried at once", async () => {
  using _clock = new Clock();
  await using docker = new UdpUpstream(known);
  const container = new Container(docker);
  const all = await Promise.all(Array.from({ length: 300 }, async (_, at) => await container.resolve(`s-${at}`)));
  assert.deepEqual(new Set(all.map(({ rcode }) => rcode)), new Set([0]));
  assert.deepEqual([docker.queries.length, container.forwarded], [300, []]);
});
