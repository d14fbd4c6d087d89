// Proves that printed fixes fix: each name of a Compose project is broken as users break it, the cause is asked for, the fix is
// run as it is printed, and afterwards every name resolves in every container as `docker compose up` would have made it.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { isDeepStrictEqual } from "node:util";

import type { Cause, CauseCode } from "../../src/api/causes.ts";
import type { FailureReport } from "../../src/api/failures.ts";
import { type Container, createNetwork } from "../support/engine/container.ts";
import { dataOf, dig, digMany } from "../support/client/dig.ts";
import { waitFor } from "../support/rig/wait.ts";
import { COMPOSE_FILE, Shop, unwrapped } from "./failing-names/shop.ts";

const RECREATE = `docker compose -p shop -f ${COMPOSE_FILE} up -d --force-recreate`;
const UP = `docker compose -p shop -f ${COMPOSE_FILE} up -d`;

let shop: Shop;
/** The services of the project as its file has them, with the networks of each. */
const services = new Map<string, string[]>([
  ["web", ["shop_front"]],
  ["api", ["shop_front", "shop_back"]],
  ["db", ["shop_back"]],
]);
/** By name. */
const containers = new Map<string, Container>();

before(async () => {
  shop = await Shop.open(["shop_front", "shop_back"]);
  for (const [service, number] of [
    ["web", 1],
    ["api", 1],
    ["api", 2],
    ["db", 1],
  ] as const)
    await up(service, number);
});
after(async () => await shop[Symbol.asyncDispose]());

/** Makes a container of a service as `docker compose up` does. */
async function up(service: string, number = 1): Promise<Container> {
  const container = await shop.service(service, services.get(service) ?? [], { number });
  containers.set(container.name, container);
  return container;
}

function called(name: string): Container {
  return containers.get(name) ?? assert.fail(name);
}

/** The containers that each service leads to in each container, and those that it would lead to by the file. */
async function assertWhole(): Promise<void> {
  for (const container of containers.values()) await container.inspect();
  const owners = new Map(
    [...containers.values()].flatMap((each) =>
      networksOf(each).map((network) => [each.address(network), each.name] as const),
    ),
  );
  for (const client of containers.values()) {
    const own = networksOf(client);
    const isReached = (each: Container): boolean => networksOf(each).some((network) => own.includes(network));
    const named = [...services.keys()];
    const wanted = named.map((service) => {
      const all = [...containers.values()].filter((each) => serviceOf(each) === service && isReached(each));
      return all
        .map(({ name }) => name)
        .toSorted()
        .join();
    });
    await waitFor(`${named.join()} to be ${wanted.join(" ")} in ${client.name}`, async () => {
      const replies = await digMany(
        client,
        "127.0.0.11",
        named.map((service) => [service]),
      );
      const found = replies.map((reply) =>
        dataOf(reply)
          .map((address) => owners.get(address) ?? address)
          .toSorted()
          .join(),
      );
      return isDeepStrictEqual(found, wanted) ? true : undefined;
    });
  }
}

function serviceOf({ name }: Container): string {
  return name.split("-")[1] ?? "";
}

function networksOf(container: Container): string[] {
  return services.get(serviceOf(container)) ?? [];
}

/** Asks for the name until the cause of its failure is known. */
async function failureOf(client: Container, name: string, code: CauseCode): Promise<FailureReport & { cause: Cause }> {
  const found = await waitFor(`${name} to fail for ${code}`, async () => {
    await dig(client, "+time=2", name);
    const { failures } = await shop.failures(client.name);
    return failures.find((each) => each.name === name && each.cause?.code === code && each.earlier === undefined);
  });
  return found as FailureReport & { cause: Cause };
}

/** `dns11 failures`, explain and doctor all show the cause and what to do. */
async function assertShown(
  client: Container,
  name: string,
  { sentence, fix, advice, lastingFix }: Cause,
): Promise<void> {
  const shown = await Promise.all([
    shop.command("failures", client.name),
    shop.command("explain", name, "--in", client.name),
    shop.command("doctor", client.name),
  ]);
  const texts = shown.map(({ stdout }) => unwrapped(stdout));
  for (const [index, text] of texts.entries()) {
    assert.ok(text.includes(unwrapped(sentence)), text);
    if (fix !== null) assert.ok(text.includes(unwrapped(fix)), text);
    // A doctor with a command needs no words.
    else if (advice !== undefined && (index < 2 || lastingFix === null))
      assert.ok(text.toLowerCase().includes(unwrapped(advice).toLowerCase()), text);
    if (lastingFix?.command !== undefined) assert.ok(text.includes(lastingFix.command), text);
  }
}

/** After its fix nothing is left but what was. */
async function assertOver(client: Container): Promise<void> {
  const { failures } = await shop.failures(client.name);
  assert.deepEqual(
    failures.filter(({ earlier }) => earlier === undefined).map(({ name }) => name),
    [],
  );
  const doctor = await shop.command("doctor", client.name);
  assert.doesNotMatch(doctor.stdout, /does not resolve/);
}

test("a container that was taken off a network of its file", async () => {
  const api = called("shop-api-1");
  await api.disconnect("shop_back");
  const { cause } = await failureOf(api, "db", "other-network");
  assert.equal(cause.fix, "docker network connect --alias api shop_back shop-api-1");
  assert.deepEqual(
    [cause.lastingFix?.change, cause.lastingFix?.command],
    ['"back" was there when Compose made it: create it again', `${RECREATE} api`],
  );
  await assertShown(api, "db", cause);
  await shop.run(cause.fix);
  await assertWhole();
  await assertOver(api);
});

test("a container that was never on the network", async () => {
  const web = called("shop-web-1");
  const { cause } = await failureOf(web, "db", "other-network");
  assert.equal(cause.fix, "docker network connect --alias web shop_back shop-web-1");
  assert.match(cause.lastingFix?.change ?? "", /^add "back"; if it is there, create the container again$/);
  await assertShown(web, "db", cause);
  await shop.run(cause.fix);
  services.set("web", ["shop_front", "shop_back"]);
  await assertWhole();
  await assertOver(web);
});

test("a container that has lost the name of its service, alone", async () => {
  const [api, db] = [called("shop-api-1"), called("shop-db-1")];
  await db.disconnect("shop_back");
  await db.connect("shop_back");
  const { cause } = await failureOf(api, "db", "lost-alias");
  assert.equal(
    cause.fix,
    "docker network disconnect shop_back shop-db-1 && docker network connect --alias db shop_back shop-db-1",
  );
  assert.equal(cause.lastingFix?.command, `${RECREATE} db`);
  await assertShown(api, "db", cause);
  await shop.run(cause.fix);
  await assertWhole();
  await assertOver(api);
});

test("a container that has lost the name of its service, while another one has it", async () => {
  const [api, db] = [called("shop-api-2"), called("shop-db-1")];
  await api.disconnect("shop_back");
  await api.connect("shop_back");
  const found = await waitFor("the name to mislead", async () =>
    (await shop.failures()).misleading.find(({ cause }) => cause.code === "lost-alias"),
  );
  assert.deepEqual([found.name, found.network, found.containers], ["api", "shop_back", ["shop-api-2"]]);
  assert.match(found.cause.sentence, /there it is shop-api-1 alone$/);
  const doctor = await shop.command("doctor", db.name);
  assert.match(doctor.stdout, /^WARNING .*shop-api-2/m);
  await shop.run(found.cause.fix ?? "");
  await assertWhole();
  assert.deepEqual((await shop.failures()).misleading, []);
});

test("a container that was stopped", async () => {
  const [api, db] = [called("shop-api-1"), called("shop-db-1")];
  await db.stop();
  const { cause } = await failureOf(api, "db", "not-running");
  await assertShown(api, "db", cause);
  await shop.run(cause.fix ?? "");
  await assertWhole();
  await assertOver(api);
});

test("a container that was removed", async () => {
  const api = called("shop-api-1");
  await called("shop-db-1").remove();
  const { cause } = await failureOf(api, "db", "removed");
  assert.match(cause.sentence, /^"db" was container shop-db-1, which was removed \d+ s ago \(network shop_back\)$/);
  assert.equal(cause.fix, `${UP} db`);
  await assertShown(api, "db", cause);
  await up("db");
  await assertWhole();
  await assertOver(api);
});

test("a container that ends and is started again, over and over, in both states", async () => {
  const web = called("shop-web-1");
  await using crashing = await shop.service("crash", ["shop_front"], { isShort: true, args: ["--restart", "always"] });
  const seen = new Set<string>();
  // Docker waits for longer each time, so that in the end both states last.
  await waitFor("its cause while it runs and while it does not", async () => {
    const { stdout } = await shop.command("explain", "crash", "--in", web.name);
    const text = unwrapped(stdout);
    if (text.includes("which ends and is started again, over and over")) {
      assert.ok(text.includes("docker logs --tail 20 shop-crash-1"), text);
      seen.add(text.includes("NXDOMAIN") ? "waits" : "runs");
    }
    if (seen.size === 2) return true;
    const { Pid: pid } = (await crashing.inspect()).State;
    if (pid > 0) await shop.engine.exec("kill", ["-9", String(pid)]);
    return undefined;
  });
});

test("what is no name, a name of Docker Desktop, and a container's own name mistyped", async () => {
  const web = called("shop-web-1");
  for (const name of ["db:5432", "http://db"]) {
    const { cause, isContainerName } = await failureOf(web, name, "not-a-name");
    assert.ok(isContainerName);
    assert.match(cause.advice ?? "", /^give shop-web-1 "db" where it expects a host/);
    await assertShown(web, name, cause);
  }
  const { cause: gateway } = await failureOf(web, "host.docker.internal", "host-gateway");
  assert.equal(gateway.lastingFix?.change, 'add "host.docker.internal:host-gateway"');
  assert.equal(gateway.lastingFix.command, `${UP} web`);
  await assertShown(web, "host.docker.internal", gateway);
  const { cause: typo } = await failureOf(web, "wbe", "similar-name");
  assert.match(typo.sentence, /there is "web", which is shop-web-1 itself$/);
  assert.equal(typo.fix, null);
  await assertShown(web, "wbe", typo);
});

test("a container with an IPv6 address only, whose client has a network with IPv4", async () => {
  await createNetwork(shop.engine, "shop_six", { args: ["--ipv4=false", "--ipv6", "--subnet", "fd16::/64"] });
  await using _six = await shop.service("six", ["shop_six"]);
  await using client = await shop.service("client", ["shop_six", "shop_front"]);
  const { cause } = await waitFor("six to lack an address", async () => {
    await dig(client, "six");
    return (await shop.failures(client.name)).failures.find((each) => each.cause?.code === "no-ipv4");
  });
  assert.equal(cause?.fix, "docker network connect --alias six shop_front shop-six-1");
  await shop.run(cause.fix);
  await shop.resolves(client, "six");
});
