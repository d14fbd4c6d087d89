/** ContainerRows: what happens to containers and their networks. */
import assert from "node:assert/strict";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";

import { parse, parseDocument } from "yaml";

import type { LastingFix } from "../../../src/api/causes.ts";
import { createNetwork, removeNetwork, runContainer } from "../../support/engine/container.ts";
import { waitFor } from "../../support/rig/wait.ts";
import type { Breakage, Broken } from "./breakage.ts";
import type { Shop } from "./shop.ts";

const CONNECT = "docker network connect --alias SERVICE NETWORK CONTAINER";
const NETWORKS = "services.SERVICE.networks";
const MODE = "services.SERVICE.network_mode";
const UP = "docker compose -p PROJECT -f FILE up -d SERVICE";

/** Has no IPv4, which only newer engines allow. */
const SIX = { enable_ipv4: false, enable_ipv6: true, ipam: { config: [{ subnet: "fd16::/64" }] } };
/** One more than what dns11 takes for a loop, because the last one may not have been reported yet. */
const RESTARTS = 3;

async function sixOnly(shop: Shop, networks: readonly string[]): Promise<Broken> {
  shop.project.declare("six", SIX);
  await shop.service("six", ["shop_six"]);
  const client = await shop.service("client", networks);
  return { client, name: "six" };
}

/** Writes the networks that are printed into the file that is printed. */
function setNetworks({ file, key, change }: LastingFix): void {
  const path = key.split(".");
  assert.ok(file !== null);
  const document = parseDocument(readFileSync(file, "utf8"));
  const [, list] = /^(?:set it to|replace it by networks:) (\[[^\]]*\])/.exec(change) ?? [];
  const [, entry] = /^add "([\w.-]+): \{\}" to it, beside /.exec(change) ?? [];
  if (path.at(-1) === "network_mode") document.deleteIn(path);
  if (list !== undefined) document.setIn([...path.slice(0, -1), "networks"], parse(list));
  else document.setIn([...path, entry ?? assert.fail(change)], {});
  writeFileSync(file, document.toString());
}

/** Two services that only the network that Compose makes by itself connects; one of them needs another one. */
async function withoutNetworks(shop: Shop): Promise<Broken> {
  await shop.service("beside", []);
  return { client: await shop.service("bare", []), name: "db", edit: setNetworks };
}

/** The networks of a service stand in a file beside the first one. */
async function inOtherFile(shop: Shop, networks: unknown): Promise<Broken> {
  shop.project.set("bare", {});
  await shop.service("beside", []);
  shop.project.add("override.yaml", { services: { bare: { networks } } });
  await shop.project.up("--no-deps", "bare");
  const client = await shop.called("shop-bare-1");
  await shop.instance.waitFor(client.name, "attached");
  return {
    client,
    name: "db",
    edit: (change) => {
      assert.match(change.file ?? "", /\/override\.yaml$/);
      setNetworks(change);
    },
  };
}

/** A service in the network of another one, to which something happens. */
async function sidecar(shop: Shop, happen: () => Promise<void>): Promise<Broken> {
  await shop.service("sidecar", [], { isShort: true, keys: { network_mode: "service:web" } });
  await shop.resolves(await shop.called("shop-sidecar-1"), "api");
  await happen();
  return { client: await shop.called("shop-sidecar-1"), name: "api", ask: async () => await Promise.resolve() };
}

/** A service without a network of the project. */
async function inMode(shop: Shop, mode: string): Promise<Broken> {
  await shop.service("plain", [], { isShort: true, keys: { network_mode: mode } });
  return {
    // It is not the one whose network it uses.
    client: await shop.called(mode === "service:web" ? "shop-api-1" : "shop-web-1"),
    name: "plain",
    edit: () => shop.project.change("plain", { networks: ["front"], network_mode: undefined }),
  };
}

/** They end, are paused, or come back. */
export const CONTAINER_ROWS: readonly Breakage[] = [
  {
    what: "A container was stopped",
    code: "not-running",
    fix: "docker start CONTAINER",
    break: async (shop) => {
      await (await shop.called("shop-db-1")).stop();
      return { client: await shop.called("shop-api-1"), name: "db" };
    },
  },
  {
    what: "A container ended with an error",
    code: "not-running",
    fix: "docker logs --tail 20 CONTAINER",
    advice: "its log says why it ended with code 3; when that is mended, start it: docker start CONTAINER",
    break: async (shop) => {
      const folder = dirname(shop.project.file);
      const missing = `cat /config/main || exit 3; trap exit TERM; sleep infinity & wait`;
      const keys = { volumes: [`${folder}:/config:ro`], command: ["sh", "-c", missing] };
      await shop.service("worker", ["shop_front"], { isShort: true, keys });
      await waitFor("it to have ended", async () =>
        (await shop.called("shop-worker-1")).pid === 0 ? true : undefined,
      );
      return {
        client: await shop.called("shop-web-1"),
        name: "worker",
        follow: async () => {
          const log = await shop.engine.dockerCommand(["logs", "--tail", "20", "shop-worker-1"]);
          assert.match(log.stdout + log.stderr, /\/config\/main/);
          writeFileSync(join(folder, "main"), "");
          await shop.run("docker start shop-worker-1");
        },
        clean: async () => await Promise.resolve(rmSync(join(folder, "main"), { force: true })),
      };
    },
  },
  {
    what: "A container was created and never started",
    code: "not-running",
    fix: "docker start CONTAINER",
    break: async (shop) => {
      shop.project.set("late", { networks: ["front"] });
      await shop.run(shop.project.line("create", "late"));
      return { client: await shop.called("shop-web-1"), name: "late" };
    },
  },
  {
    what: "A service has a profile that was not chosen",
    code: "not-created",
    fix: UP,
    break: async (shop) => {
      shop.project.set("tools", { networks: ["front"], profiles: ["debug"] });
      await shop.project.up();
      return { client: await shop.called("shop-web-1"), name: "tools" };
    },
  },
  {
    what: "A service has `scale: 0`",
    code: "not-created",
    fix: "docker compose -p PROJECT -f FILE up -d --scale SERVICE=1 SERVICE",
    change: "services.SERVICE.scale",
    break: async (shop) => {
      shop.project.set("unused", { networks: ["front"], scale: 0 });
      await shop.project.up();
      return {
        client: await shop.called("shop-web-1"),
        name: "unused",
        edit: () => shop.project.change("unused", { scale: 1 }),
      };
    },
  },
  {
    what: "A container was removed",
    code: "removed",
    fix: UP,
    break: async (shop) => {
      await (await shop.called("shop-db-1")).remove();
      return { client: await shop.called("shop-api-1"), name: "db" };
    },
  },
  {
    what: "A container without Compose was renamed (`docker rename`)",
    code: "renamed",
    fix: "docker rename CONTAINER CONTAINER",
    advice: 'if the new name is meant, give CONTAINER "CONTAINER" instead',
    break: async (shop) => {
      // The names of Compose are aliases, which stay.
      const worker = await runContainer(shop.engine, { name: "queue", networks: ["shop_front"] });
      await shop.instance.waitFor("queue", "attached");
      const client = await shop.called("shop-web-1");
      await shop.resolves(client, "queue");
      await shop.run("docker rename queue backlog");
      return { client, name: "queue", clean: async () => await worker.remove() };
    },
  },
  {
    what: "A container ends and is started again, over and over",
    code: "crash-loop",
    fix: "docker logs --tail 20 CONTAINER",
    advice: "its log says why it ends",
    break: async (shop) => {
      const keys = { restart: "always", command: ["false"] };
      const crashing = await shop.service("crash", ["shop_front"], { isShort: true, keys });
      await waitFor("it to be a loop", async () =>
        (await crashing.inspect()).RestartCount >= RESTARTS ? true : undefined,
      );
      return {
        client: await shop.called("shop-web-1"),
        name: "crash",
        follow: async () => {
          shop.project.change("crash", { command: undefined });
          await shop.project.up("crash");
        },
      };
    },
  },
  {
    what: "A service uses the network of another one (`network_mode: service:NAME`), which was made again without it",
    code: "namespace-gone",
    fix: "docker compose -p PROJECT -f FILE up -d --force-recreate SERVICE",
    break: async (shop) =>
      await sidecar(shop, async () => await shop.project.up("--force-recreate", "--no-deps", "web")),
  },
  {
    what: "The same, and that one was started again",
    code: "namespace-gone",
    fix: "docker restart CONTAINER",
    break: async (shop) => await sidecar(shop, async () => await shop.run("docker restart -t 1 shop-web-1")),
  },
  {
    what: "A container is paused",
    code: "paused",
    fix: "docker unpause CONTAINER",
    break: async (shop) => {
      const client = await shop.called("shop-api-1");
      await shop.resolves(client, "db");
      await shop.engine.docker("pause", "shop-db-1");
      return { client, name: "db" };
    },
  },
  {
    what: "A container came back with another address, and its client keeps the old one",
    code: "moved",
    fix: "docker restart CONTAINER",
    isWarning: true,
    break: async (shop) => {
      const [client, db] = [await shop.called("shop-web-1"), await shop.service("cache", ["shop_front"])];
      await shop.resolves(client, "cache");
      await db.stop();
      // It gets the address.
      await shop.service("other", ["shop_front"]);
      await db.start();
      await shop.instance.waitFor(db.name, "attached");
      return { client, name: "cache", ask: async () => undefined };
    },
  },
];

/** They run, on other networks than their clients, or without their names there. */
export const NETWORK_ROWS: readonly Breakage[] = [
  {
    what: "A container was disconnected from a network of its Compose file",
    code: "other-network",
    fix: CONNECT,
    change: NETWORKS,
    break: async (shop) => {
      const client = await shop.called("shop-api-1");
      await client.disconnect("shop_back");
      return { client, name: "db" };
    },
  },
  {
    what: "The network is missing from the service in the Compose file",
    code: "other-network",
    fix: CONNECT,
    change: NETWORKS,
    break: async (shop) => ({
      client: await shop.called("shop-web-1"),
      name: "db",
      edit: () => shop.project.change("web", { networks: ["front", "back"] }),
    }),
  },
  {
    what: "The same, and the service has no key `networks`",
    code: "other-network",
    fix: CONNECT,
    change: NETWORKS,
    break: withoutNetworks,
  },
  {
    what: "The same, and its networks are in an override",
    code: "other-network",
    fix: CONNECT,
    change: NETWORKS,
    break: async (shop) => await inOtherFile(shop, ["default"]),
  },
  {
    what: "The same, and they have aliases there",
    code: "other-network",
    fix: CONNECT,
    change: NETWORKS,
    break: async (shop) => await inOtherFile(shop, { default: { aliases: ["naked"] } }),
  },
  {
    what: "A container was disconnected and connected again, without its alias",
    code: "lost-alias",
    fix: `docker network disconnect NETWORK CONTAINER && ${CONNECT}`,
    change: NETWORKS,
    break: async (shop) => {
      const db = await shop.called("shop-db-1");
      await db.disconnect("shop_back");
      await db.connect("shop_back");
      return { client: await shop.called("shop-api-1"), name: "db" };
    },
  },
  {
    what: "The same, while another container of the service still has the alias",
    code: "lost-alias",
    fix: `docker network disconnect NETWORK CONTAINER && ${CONNECT}`,
    change: NETWORKS,
    isWarning: true,
    break: async (shop) => {
      const api = await shop.called("shop-api-2");
      await api.disconnect("shop_back");
      await api.connect("shop_back");
      return { client: await shop.called("shop-db-1"), name: "api" };
    },
  },
  {
    what: "A container has an IPv6 address only, and its client a network with IPv4",
    code: "no-ipv4",
    fix: CONNECT,
    change: NETWORKS,
    isWarning: true,
    break: async (shop) => ({
      ...(await sixOnly(shop, ["shop_six", "shop_front"])),
      edit: () => shop.project.change("six", { networks: ["six", "front"] }),
    }),
  },
  {
    what: "A container has an IPv6 address only, and so has its client",
    code: "no-ipv4",
    advice: "query type AAAA, or create network NETWORK again with IPv4",
    isWarning: true,
    break: async (shop) => {
      const broken = await sixOnly(shop, ["shop_six"]);
      return {
        ...broken,
        follow: async () => {
          // Compose does not create a network again whose family it changes.
          shop.project.declare("six", {});
          await shop.run(shop.project.line("down"));
          await shop.project.up();
        },
      };
    },
  },
  {
    what: "A service is on the default bridge (`network_mode: bridge`)",
    code: "no-dns-name",
    fix: CONNECT,
    change: MODE,
    break: async (shop) => await inMode(shop, "bridge"),
  },
  {
    what: "A service uses the network of the host (`network_mode: host`)",
    code: "no-dns-name",
    change: MODE,
    break: async (shop) => await inMode(shop, "host"),
  },
  {
    what: "A service has no network (`network_mode: none`)",
    code: "no-dns-name",
    change: MODE,
    break: async (shop) => await inMode(shop, "none"),
  },
  {
    what: "A service uses the network of another one (`network_mode: service:NAME`)",
    code: "no-dns-name",
    change: MODE,
    advice: 'change the name to "SERVICE" where CONTAINER is given it',
    break: async (shop) => await inMode(shop, "service:web"),
  },
  {
    what: "The name is that of a service of another Compose project",
    code: "other-project",
    fix: CONNECT,
    change: NETWORKS,
    break: async (shop) => {
      await createNetwork(shop.engine, "other_net");
      await shop.service("queue", ["other_net"], { project: "theirs" });
      const theirs = await shop.projectCalled("theirs");
      return {
        client: await shop.called("shop-web-1"),
        name: "queue",
        edit: () => {
          shop.project.declare("other_net", { name: "other_net", external: true });
          shop.project.change("web", { networks: ["front", "other_net"] });
        },
        clean: async () => {
          await shop.run(theirs.line("down"));
          shop.project.set("web", undefined);
          await shop.run("docker rm -f shop-web-1");
          await removeNetwork(shop.engine, "other_net");
          shop.project.declare("other_net", undefined);
        },
      };
    },
  },
  {
    what: "Services of two projects have one name on a network that both use",
    code: "ambiguous",
    fix: "docker network disconnect NETWORK CONTAINER",
    change: "services.SERVICE.networks.NETWORK",
    isWarning: true,
    break: async (shop) => {
      await shop.service("store", ["shared"]);
      await shop.service("store", ["shared"], { project: "other" });
      const other = await shop.projectCalled("other");
      const outside = await runContainer(shop.engine, { name: "outside", networks: ["shared"] });
      await shop.instance.waitFor(outside.name, "attached");
      return {
        client: outside,
        name: "store",
        edit: () => other.change("store", { networks: undefined }),
        clean: async () => {
          await outside.remove();
          await shop.run(other.line("down"));
        },
      };
    },
  },
  {
    what: "A container was disconnected from its only network",
    code: "other-network",
    fix: CONNECT,
    change: NETWORKS,
    isExplained: true,
    doctor:
      /^NOTE shop-web-1: not served by dns11: .* PROBLEM shop-web-1: resolver: on no network, .*; it was created on shop_front/,
    break: async (shop) => {
      const client = await shop.called("shop-web-1");
      await client.disconnect("shop_front");
      return { client, name: "api" };
    },
  },
];
