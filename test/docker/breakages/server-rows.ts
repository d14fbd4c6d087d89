/** ServerRows: what happens to upstream servers, and to the way to them. */
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";

import { dig } from "../../support/client/dig.ts";
import { stdoutOf } from "../../support/program/command.ts";
import { startUpstream } from "../../support/servers/upstream.ts";
import type { Breakage } from "./breakage.ts";
import type { Shop } from "./shop.ts";

const TCP_WALL = "table inet wall { chain out { type filter hook output priority 0; tcp dport 53 drop; }; }";
const OTHER_SERVER = "127.0.0.2";
const QUICK = 5;

/** The host's own, which dns11 reads. */
function hostFile({ engine }: Shop): string {
  return `/proc/${engine.hostPid}/root/etc/resolv.conf`;
}

export const SERVER_ROWS: readonly Breakage[] = [
  {
    what: "A service has a server that does not answer (`dns`)",
    code: "upstreams-down",
    change: "services.SERVICE.dns",
    doctor: /10\.255\.255\.1/,
    break: async (shop) => ({
      client: await shop.service("deaf", ["shop_front"], { keys: { dns: ["10.255.255.1"] } }),
      name: "a.ok.test",
      edit: () => shop.project.change("deaf", { dns: undefined }),
    }),
  },
  {
    what: "A service has a server with a wrong port (the label `io.dns11.dns`)",
    code: "upstreams-down",
    change: "services.SERVICE.labels",
    doctor: /127\.0\.0\.1:5399/,
    break: async (shop) => ({
      client: await shop.service("port", ["shop_front"], { keys: { labels: { "io.dns11.dns": "127.0.0.1:5399" } } }),
      name: "b.ok.test",
      edit: () => shop.project.change("port", { labels: undefined }),
    }),
  },
  {
    what: "All nameservers of the Docker host are down",
    code: "upstreams-down",
    advice: "on the Docker host, replace SERVER in line 1 of FILE",
    doctor: /127\.0\.0\.1/,
    break: async (shop) => {
      const client = await shop.called("shop-web-1");
      await shop.upstream[Symbol.asyncDispose]();
      return {
        client,
        name: "c.ok.test",
        follow: async () => {
          shop.upstream = await startUpstream(shop.engine, { address: OTHER_SERVER });
          writeFileSync(hostFile(shop), `nameserver ${OTHER_SERVER}\n`);
        },
        clean: async () => {
          await shop.upstream[Symbol.asyncDispose]();
          shop.upstream = await startUpstream(shop.engine);
          writeFileSync(hostFile(shop), "nameserver 127.0.0.1\n");
        },
      };
    },
  },
  {
    what: "A firewall drops TCP to the server, which a long answer needs",
    code: "tcp-blocked",
    advice: "allow TCP port 53 to SERVER in the firewalls on the way",
    isWarning: true,
    break: async (shop) => {
      stdoutOf(await shop.engine.enter("nft", [TCP_WALL]), TCP_WALL);
      const mend = async (): Promise<void> => void (await shop.engine.enter("nft", ["delete table inet wall"]));
      return { client: await shop.called("shop-web-1"), name: "a.tc.test", follow: mend, clean: mend };
    },
  },
  {
    what: "A zone is broken, and its servers are not",
    code: "upstream-error",
    isWarning: true,
    break: async (shop) => ({ client: await shop.called("shop-web-1"), name: "a.servfail.test" }),
  },
  {
    what: "A server refuses to answer (`REFUSED`)",
    code: "upstream-refused",
    change: "services.SERVICE.dns",
    isWarning: true,
    break: async (shop) => {
      const address = "10.99.0.1";
      const server = await startUpstream(shop.engine, { address });
      return {
        client: await shop.service("denied", ["shop_front"], { keys: { dns: [address] } }),
        name: "a.refused.test",
        edit: () => shop.project.change("denied", { dns: undefined }),
        again: async (client) => await shop.resolves(client, "a.ok.test"),
        clean: async () => await server[Symbol.asyncDispose](),
      };
    },
  },
  {
    what: "A server answers too late",
    code: "upstream-slow",
    isWarning: true,
    break: async (shop) => {
      const client = await shop.called("shop-web-1");
      let asked = 0;
      // A server of which all answers were late would be slow itself.
      const ask = async (): Promise<void> => {
        for (let each = 0; each < QUICK; each++) await dig(client, `quick-${(asked += 1)}.ok.test`);
        await dig(client, "+time=2", "6000.slow.test");
      };
      return { client, name: "6000.slow.test", ask };
    },
  },
  {
    what: "The name of the outside world does not exist",
    code: "does-not-exist",
    isWarning: true,
    isExplained: true,
    break: async (shop) => ({ client: await shop.called("shop-web-1"), name: "a.nx.test" }),
  },
  {
    what: "A has an answer, and AAAA does not exist or is refused",
    code: "one-family",
    advice: 'have AAAA of "NAME" answered without an error and without a record',
    isWarning: true,
    break: async (shop) => {
      const client = await shop.called("shop-web-1");
      const ask = async (): Promise<void> => {
        await shop.resolves(client, "e.no6.test");
        await dig(client, "e.no6.test", "AAAA");
      };
      return {
        client,
        name: "e.no6.test",
        ask,
        follow: async () => {
          await dig(client, "mend.mend6.test");
          const { status } = await dig(client, "e.no6.test", "AAAA");
          assert.equal(status, "NOERROR");
        },
        clean: async () => {
          await shop.upstream[Symbol.asyncDispose]();
          shop.upstream = await startUpstream(shop.engine);
        },
      };
    },
  },
  {
    what: "A service is on internal networks only, and its name one of the outside world",
    code: "internal-network",
    change: "services.SERVICE.networks",
    isWarning: true,
    break: async (shop) => {
      shop.project.declare("inside", { internal: true });
      return {
        client: await shop.service("vault", ["shop_inside"]),
        name: "e.ok.test",
        edit: () => shop.project.change("vault", { networks: ["inside", "front"] }),
      };
    },
  },
];
