// A ConfigMap of kube-dns on a real engine, and its update as Kubernetes mounts it.

import assert from "node:assert/strict";
import { mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";

import { dig } from "../../support/client/dig.ts";
import { type Container, createNetwork, runContainer } from "../../support/engine/container.ts";
import { type Engine, startEngine } from "../../support/engine/engine.ts";
import { WITHOUT_KEEPER, startDns11 } from "../../support/program/dns11.ts";
import { makeFolder } from "../../support/rig/folder.ts";
import { waitFor } from "../../support/rig/wait.ts";
import { type Upstream, startUpstream } from "../../support/servers/upstream.ts";

/** The names that the files lead to, one server each. */
const SERVERS = { first: "10.53.9.1", second: "10.53.9.2", cluster: "10.53.9.3" } as const;

/** Enough for Node, but not also for the cache of a reload. */
const MEMORY_BYTES = 2e9;

const upstreams = new Map<string, Upstream>();
let engine: Engine;
let app: Container;

before(async () => {
  engine = await startEngine({ suite: "bookworm", resolvConf: "nameserver 127.0.0.1\n" });
  for (const address of ["127.0.0.1", ...Object.values(SERVERS)])
    upstreams.set(address, await startUpstream(engine, { address }));
  await createNetwork(engine, "front");
  app = await runContainer(engine, { name: "app", networks: ["front"] });
});
after(async () => {
  for (const upstream of upstreams.values()) await upstream[Symbol.asyncDispose]();
  await engine[Symbol.asyncDispose]();
});

/** The server that a name was asked from: it is the only one that has seen it. */
async function askedServer(name: string): Promise<string[]> {
  await dig(app, name);
  const seen = await Promise.all(
    [...upstreams].map(async ([address, upstream]) => {
      const queries = await upstream.queries();
      return queries.some((query) => query.name.toLowerCase() === name) ? [address] : [];
    }),
  );
  return seen.flat();
}

/** A folder as Kubernetes mounts one: the versions of all keys beside each other, and links to the current one. */
function configMap(): {
  readonly folder: string;
  readonly put: (version: string, keys: Readonly<Record<string, string>>) => void;
} {
  const folder = makeFolder("kube-dns");
  const put = (version: string, keys: Readonly<Record<string, string>>): void => {
    mkdirSync(join(folder, version));
    for (const [key, text] of Object.entries(keys)) writeFileSync(join(folder, version, key), text);
    symlinkSync(version, join(folder, "..data_tmp"));
    renameSync(join(folder, "..data_tmp"), join(folder, "..data"));
  };
  return { folder, put };
}

test("a ConfigMap of kube-dns, and its update as Kubernetes mounts it", async () => {
  const { folder, put } = configMap();
  put("..v1", { stubDomains: `{"cluster.ok.test": ["${SERVERS.cluster}"]}` });
  symlinkSync("..data/stubDomains", join(folder, "stubDomains"));
  await using _ = await startDns11(engine, { settings: { "kube-dns-dir": folder }, env: WITHOUT_KEEPER });
  assert.deepEqual(await askedServer("map1.cluster.ok.test"), [SERVERS.cluster]);
  assert.deepEqual(await askedServer("map1.ok.test"), ["127.0.0.1"]);
  put("..v2", {
    stubDomains: `{"cluster.ok.test": ["${SERVERS.second}"]}`,
    upstreamNameservers: `["${SERVERS.first}"]`,
  });
  symlinkSync("..data/upstreamNameservers", join(folder, "upstreamNameservers"));
  rmSync(join(folder, "..v1"), { recursive: true });
  await waitFor("the new servers", async () => {
    const name = Math.random().toString(36).slice(2);
    const [stub] = await askedServer(`${name}.cluster.ok.test`);
    const [other] = await askedServer(`${name}.ok.test`);
    return (stub === SERVERS.second && other === SERVERS.first) || undefined;
  });
});

test("after a reload that failed, the folder is followed with the settings in force", async () => {
  const { folder, put } = configMap();
  put("..v1", { stubDomains: `{"cluster.ok.test": ["${SERVERS.cluster}"]}` });
  symlinkSync("..data/stubDomains", join(folder, "stubDomains"));
  const path = join(makeFolder("config"), "dns11.yaml");
  const settings = `version: 1\nkube-dns-dir: ${folder}\n`;
  writeFileSync(path, settings);
  const options = { args: ["--config", path], env: WITHOUT_KEEPER, prefix: ["prlimit", `--data=${MEMORY_BYTES}`] };
  await using instance = await startDns11(engine, options);
  assert.deepEqual(await askedServer("failed.cluster.ok.test"), [SERVERS.cluster]);
  writeFileSync(path, `${settings}cache: {size: 4GiB}\n`);
  instance.kill("SIGHUP");
  await instance.logs(/[Nn]ot enough memory.*reload failed, keeping the previous settings/);
  put("..v2", { stubDomains: `{"cluster.ok.test": ["${SERVERS.second}"]}` });
  await waitFor("the new server", async () => {
    const name = Math.random().toString(36).slice(2);
    return (await askedServer(`${name}.cluster.ok.test`))[0] === SERVERS.second || undefined;
  });
  assert.equal((await instance.status()).settings["cache.size"]?.source, "default");
});
