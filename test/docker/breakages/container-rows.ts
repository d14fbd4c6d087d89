/** ContainerRows: what happens to containers and their networks. */
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
    fix: "docker start CONTAINER",
    change: "services.SERVICE.restart",
    break: async (shop) => {
      const failsOnce = "test -e /tried || { touch /tried; exit 3; }; trap exit TERM; sleep infinity & wait";
      await shop.service("worker", ["shop_front"], { isShort: true, keys: { command: ["sh", "-c", failsOnce] } });
      await waitFor("it to have ended", async () =>
        (await shop.called("shop-worker-1")).pid === 0 ? true : undefined,
      );
      return {
        client: await shop.called("shop-web-1"),
        name: "worker",
        edit: () => shop.project.change("worker", { restart: "unless-stopped" }),
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
    what: "A container was removed",
    code: "removed",
    fix: UP,
    break: async (shop) => {
      await (await shop.called("shop-db-1")).remove();
      return { client: await shop.called("shop-api-1"), name: "db" };
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
