/** NameRows: what programs look up instead of a name, and what their own files and settings make of it. */
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { dirname, join } from "node:path";

import { type Container, createNetwork, removeNetwork } from "../../support/engine/container.ts";
import { dig } from "../../support/client/dig.ts";
import { stdoutOf } from "../../support/program/command.ts";
import { waitFor } from "../../support/rig/wait.ts";
import type { Breakage, Broken } from "./breakage.ts";
import type { Shop } from "./shop.ts";

const CONNECT = "docker network connect --alias SERVICE NETWORK CONTAINER";
const TYPO = 'change the name to "SERVICE" where CONTAINER is given it';
/** Without the port, there is nothing after the host. */
const HOST = 'give CONTAINER "SERVICE" where it expects a host';
const DROP =
  "table inet fw { chain out { type filter hook output priority -250; udp dport 53 drop; tcp dport 53 drop; }; }";

/** A service that looks up a name that is not one; what it is given instead is the name of the other service. */
async function typed(shop: Shop, name: string, meant: string): Promise<Broken> {
  const client = await shop.called("shop-web-1");
  return {
    client,
    name,
    // The program is given the right name, so nobody asks for the wrong one again: its container is a new one.
    follow: async () => await shop.project.up("--force-recreate", "web"),
    again: async (changed) => {
      await shop.instance.waitFor(changed.name, "attached");
      await shop.resolves(changed, meant);
    },
  };
}

/** What the image has, if its line has been changed; programs are asked in between. */
async function switched(
  shop: Shop,
  order: string,
  assertBroken: (client: Container) => Promise<void>,
  name = "api",
): Promise<Broken> {
  const keys = { extra_hosts: ["db:192.0.2.5"] };
  const client = await shop.service("switched", ["shop_front", "shop_back"], { keys });
  const write = async (line: string): Promise<string> =>
    stdoutOf(await client.exec("sh", ["-c", `echo 'hosts: ${line}' >/etc/nsswitch.conf`]), line);
  await write(order);
  await assertBroken(client);
  return {
    client,
    name,
    follow: async () => void (await write("files dns")),
    again: async () => {
      if (name === "db") await assertProgramGets(client, "db", "192.0.2.5");
      else await assertProgramGets(client, "web", (await shop.called("shop-web-1")).address("shop_front"));
    },
  };
}

/** A program in the container gets the address, or none. */
async function assertProgramGets(client: Container, name: string, address: string): Promise<void> {
  const { stdout, stderr } = await client.exec("ping", ["-c", "1", "-W", "1", name]);
  const got = /\(([\d.]+)\)/.exec(stdout)?.[1] ?? "";
  assert.equal(got, address, `${name}: ${stdout}${stderr}`);
}

const GIVEN = {
  code: "hosts-file",
  change: "services.SERVICE.extra_hosts",
  advice: 'remove "SERVICE" from it, if it is not meant',
  isWarning: true,
} as const;

/** A container that was given another address for `web`. */
async function given(shop: Shop, client: Container, edit: Broken["edit"]): Promise<Broken> {
  await shop.instance.waitFor(client.name, "attached");
  await assertProgramGets(client, "web", "192.0.2.5");
  return {
    client,
    name: "web",
    ...(edit !== undefined && { edit }),
    again: async (changed) => {
      await shop.instance.waitFor(changed.name, "attached");
      await assertProgramGets(changed, "web", (await shop.called("shop-web-1")).address("shop_front"));
    },
  };
}

export const NAME_ROWS: readonly Breakage[] = [
  {
    what: "The name is mistyped",
    code: "similar-name",
    advice: TYPO,
    break: async (shop) => await typed(shop, "aip", "api"),
  },
  {
    what: "A container's own name is mistyped",
    code: "similar-name",
    advice: TYPO,
    break: async (shop) => await typed(shop, "wbe", "web"),
  },
  {
    what: "A program looks up `api:8080`",
    code: "not-a-name",
    advice: `${HOST}, and 8080 where it expects a port`,
    break: async (shop) => await typed(shop, "api:8080", "api"),
  },
  {
    what: "A program looks up `http://api`",
    code: "not-a-name",
    advice: HOST,
    break: async (shop) => await typed(shop, "http://api", "api"),
  },
  {
    what: "A program looks up `api.local`, `api.docker`, or `api.front` by the network's key in the file",
    code: "similar-name",
    advice: TYPO,
    break: async (shop) => await typed(shop, "api.front", "api"),
  },
  {
    what: "A program looks up a name with quotes, a line end or `${VARIABLE}` in it",
    code: "not-a-name",
    advice: 'take it out where CONTAINER is given the name "SERVICE"',
    break: async (shop) => await typed(shop, "'api'", "api"),
  },
  {
    what: "A program looks up `host.docker.internal`, which only Docker Desktop has",
    code: "host-gateway",
    change: "services.SERVICE.extra_hosts",
    break: async (shop) => ({
      client: await shop.called("shop-web-1"),
      name: "host.docker.internal",
      edit: () => shop.project.change("web", { extra_hosts: ["host.docker.internal:host-gateway"] }),
      again: async (client) => {
        assert.match(await client.readFile("/etc/hosts"), /\shost\.docker\.internal$/m);
        const { stdout } = await shop.command("explain", "host.docker.internal", "--in", client.name);
        assert.match(stdout, /^host\.docker\.internal \(A\) in shop-web-1: [\d.]+\n/);
      },
    }),
  },
  {
    what: "A wildcard of an upstream server answers for a container on another network",
    code: "shadowed",
    fix: CONNECT,
    change: "services.SERVICE.networks",
    break: async (shop) => {
      await createNetwork(shop.engine, "ok.test");
      await shop.service("hidden", ["ok.test"]);
      const client = await shop.called("shop-web-1");
      return {
        client,
        name: "hidden.ok.test",
        edit: () => shop.project.change("web", { networks: ["front", "ok.test"] }),
        again: async (connected) => {
          const address = (await shop.called("shop-hidden-1")).address("ok.test");
          await waitFor("the container to be found", async () =>
            (await dig(connected, "hidden.ok.test")).answer.some(({ data }) => data === address) ? true : undefined,
          );
        },
        clean: async () => {
          await shop.run("docker rm -f shop-hidden-1 shop-web-1");
          shop.project.set("hidden", undefined);
          shop.project.set("web", undefined);
          await removeNetwork(shop.engine, "ok.test");
          shop.project.declare("ok.test", undefined);
        },
      };
    },
  },
  {
    what: "Nothing has the name",
    code: "unknown-name",
    isWarning: true,
    break: async (shop) => ({ client: await shop.called("shop-web-1"), name: "warehouse" }),
  },
];

/** What the container has of its own: files, settings, rules. */
export const CLIENT_ROWS: readonly Breakage[] = [
  {
    what: "A search domain with a wildcard answers first (`dns_search`, `ndots`)",
    code: "search-list",
    change: "services.SERVICE.dns_opt",
    advice: 'a trailing dot prevents that: "SERVICE."',
    doctor: /"api\.ok\.test" before "api"/,
    break: async (shop) => {
      const keys = { dns_search: ["ok.test"], dns_opt: ["ndots:5"] };
      const client = await shop.service("searching", ["shop_front"], { keys });
      return {
        client,
        name: "api",
        ask: async () => await dig(client, "api.ok.test"),
        edit: () => shop.project.change("searching", { dns_opt: ["ndots:0"] }),
        again: async (changed) => {
          await shop.instance.waitFor(changed.name, "attached");
          const { stdout } = await changed.exec("ping", ["-c", "1", "-W", "1", "api"]);
          const own = [
            (await shop.called("shop-api-1")).address("shop_front"),
            (await shop.called("shop-api-2")).address("shop_front"),
          ];
          assert.ok(
            own.some((address) => stdout.includes(`(${address})`)),
            stdout,
          );
        },
      };
    },
  },
  {
    what: "An entry of /etc/hosts has the name (`extra_hosts`)",
    ...GIVEN,
    break: async (shop) => {
      const client = await shop.service("given", ["shop_front"], { keys: { extra_hosts: ["web:192.0.2.5"] } });
      return await given(shop, client, () => shop.project.change("given", { extra_hosts: undefined }));
    },
  },
  {
    what: "The same, and the entry is in an override",
    ...GIVEN,
    break: async (shop) => {
      shop.project.set("given", { networks: ["front"], extra_hosts: ["other:192.0.2.6"] });
      const file = shop.project.add("override.yaml", { services: { given: { extra_hosts: ["web:192.0.2.5"] } } });
      await shop.project.up("--no-deps", "given");
      return await given(shop, await shop.called("shop-given-1"), (change) => {
        assert.equal(change.file, file);
        writeFileSync(file, "services: {}\n");
      });
    },
  },
  {
    what: "The container's nsswitch.conf has `hosts: files`",
    code: "nsswitch",
    advice: '"hosts: files dns" is usual: change the line in the image',
    isExplained: true,
    break: async (shop) => await switched(shop, "files", async (client) => await assertProgramGets(client, "api", "")),
  },
  {
    what: "The container's nsswitch.conf has `hosts: dns files`, and /etc/hosts the name",
    code: "nsswitch",
    advice: '"hosts: files dns" is usual: change the line in the image',
    isExplained: true,
    break: async (shop) => {
      const address = (await shop.called("shop-db-1")).address("shop_back");
      return await switched(shop, "dns files", async (client) => await assertProgramGets(client, "db", address), "db");
    },
  },
  {
    what: "A container's resolv.conf was edited",
    code: "resolv-conf",
    fix: "docker restart CONTAINER",
    doctor: /127\.0\.0\.2/,
    break: async (shop) => {
      const client = await shop.called("shop-web-1");
      stdoutOf(await client.exec("sh", ["-c", "echo nameserver 127.0.0.2 >/etc/resolv.conf"]), "sh");
      return {
        client,
        name: "api",
        again: async (restarted) =>
          assert.match(await restarted.readFile("/etc/resolv.conf"), /^nameserver 127\.0\.0\.11$/m),
      };
    },
  },
  {
    what: "A file is mounted over a container's resolv.conf",
    code: "resolv-conf",
    change: "services.SERVICE.volumes",
    doctor: /resolv\.conf: nameserver 10\.255\.255\.3; .*the file is a mount/,
    break: async (shop) => {
      const file = join(dirname(shop.project.file), "resolv.conf");
      writeFileSync(file, "nameserver 10.255.255.3\n");
      const keys = { volumes: [`${file}:/etc/resolv.conf:ro`] };
      const client = await shop.service("mounted", ["shop_front"], { keys });
      return {
        client,
        name: "web",
        ask: async () => undefined,
        edit: () => shop.project.change("mounted", { volumes: undefined }),
      };
    },
  },
  {
    what: "A firewall in the container drops its queries",
    code: "not-served",
    fix: "dns11 doctor CONTAINER",
    doctor: /table inet "?fw/,
    break: async (shop) => {
      const client = await shop.called("shop-web-1");
      stdoutOf(await client.enter("nft", [DROP]), "nft");
      return {
        client,
        name: "api",
        // The doctor names the table.
        follow: async () => void stdoutOf(await client.enter("nft", ["delete table inet fw"]), "nft"),
        again: async (mended) => {
          await shop.instance.waitFor(mended.name, "attached");
          await shop.resolves(mended, "api");
        },
      };
    },
  },
];
