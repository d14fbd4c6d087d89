// A dnsmasq folder on a real engine: dnsmasq itself reads the same folder, and its answers are those that a container gets; files that
// are rewritten while dns11 runs; mistakes, at the start and later.

import assert from "node:assert/strict";
import { renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";

import { type Container, createNetwork, runContainer } from "../../support/engine/container.ts";
import { type DigReply, dataOf, dig, digMany } from "../../support/client/dig.ts";
import { type Dns11, type SettingTexts, WITHOUT_KEEPER, dns11, startDns11 } from "../../support/program/dns11.ts";
import { type Engine, startEngine } from "../../support/engine/engine.ts";
import { makeFolder } from "../../support/rig/folder.ts";
import { startDnsmasq } from "../../support/servers/real-server.ts";
import { type Upstream, startUpstream } from "../../support/servers/upstream.ts";
import { waitFor } from "../../support/rig/wait.ts";

/** The names that the files lead to, one server each. */
const SERVERS = { first: "10.53.9.1", second: "10.53.9.2", cluster: "10.53.9.3" } as const;
const DNSMASQ = "10.53.9.53";

const FILES = {
  "origin-dns.conf": `no-resolv
domain-needed
no-negcache
max-cache-ttl=1
enable-dbus
dns-forward-max=10000
cache-size=10000
bind-dynamic
min-port=1024
except-interface=lo
# End of config
`,
  "origin-upstream-dns.conf": `server=${SERVERS.first}\n`,
  "node-dnsmasq.conf": `server=/cluster.ok.test/${SERVERS.cluster}\n`,
  "names.conf": `local=/lan/ # names of this house
address=/one.lan/10.1.1.1
address=/two.lan/10.1.1.1
address=/two.lan/fd00::1
address=/none.ok.test/
address=/null.ok.test/#
host-record=h1.lan,h2.lan,10.2.2.2,fd00::2
cname=c1.lan,h1.lan
txt-record=t.lan,"v=spf1, a"
srv-host=_http._tcp.lan,h1.lan,80,5,7
mx-host=lan,h1.lan,50
ptr-record=9.9.2.10.in-addr.arpa,"ptr.lan"
caa-record=lan,0,issue,ca.example
txt-record=dkim.lan,"v=DKIM1\\; k=rsa"
mx-host=mail.two.lan,h1.lan,5
host-record=v4.two.lan,10.2.2.4
address=/own.lan/10.1.1.2
host-record=own.lan,10.2.2.5
`,
};

let engine: Engine;
let app: Container;
const upstreams = new Map<string, Upstream>();

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

function folderWith(files: Readonly<Record<string, string>>): string {
  const folder = makeFolder("dnsmasq.d");
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
  return folder;
}

async function start(settings: SettingTexts): Promise<Dns11> {
  return await startDns11(engine, { settings, env: WITHOUT_KEEPER });
}

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

function shown({ status, answer }: DigReply): string {
  const records = answer.map(({ name, type, data }) => `${name} ${type} ${data}`).toSorted();
  return [status, ...records].join("; ");
}

test("a container gets the answers that dnsmasq gives from the same folder", async () => {
  const folder = folderWith(FILES);
  const lines = Object.values(FILES).flatMap((text) => text.split("\n"));
  const own = new Set(["bind-dynamic", "enable-dbus", "except-interface=lo"]);
  await using dnsmasq = await startDnsmasq(engine, { address: DNSMASQ, lines: lines.filter((line) => !own.has(line)) });
  void dnsmasq;
  await using _ = await start({ "dnsmasq-dir": folder });
  const queries = [
    ...["one.lan A", "deep.one.lan A", "two.lan AAAA", "a.two.lan A", "none.ok.test A", "a.none.ok.test AAAA"],
    ...["a.null.ok.test A", "null.ok.test AAAA", "h1.lan A", "h2.lan AAAA", "H1.lan MX", "other.lan A", "c1.lan A"],
    ...[
      "t.lan TXT",
      "_http._tcp.lan SRV",
      "lan MX",
      "lan CAA",
      "2.2.2.10.in-addr.arpa PTR",
      "9.9.2.10.in-addr.arpa PTR",
      "dkim.lan TXT",
      "mail.two.lan MX",
      "mail.two.lan A",
      "v4.two.lan A",
      "v4.two.lan AAAA",
      "own.lan A",
      "a.own.lan A",
    ],
    ...["name1.ok.test A", "a.cluster.ok.test A", "dotless A"],
  ].map((query) => query.split(" "));
  const theirs = await digMany(engine, DNSMASQ, queries);
  const ours = await digMany(app, "127.0.0.11", queries);
  for (const [index, query] of queries.entries()) {
    assert.equal(shown(ours[index] as DigReply), shown(theirs[index] as DigReply), query.join(" "));
  }
});

test("files are followed: servers that 99-origin-dns.sh writes, a mistake, and its end", async () => {
  const folder = folderWith(FILES);
  await using instance = await start({ "dnsmasq-dir": folder });
  assert.deepEqual(await askedServer("follow1.ok.test"), [SERVERS.first]);
  assert.deepEqual(await askedServer("follow.cluster.ok.test"), [SERVERS.cluster]);
  // The script writes a new file and moves it there.
  writeFileSync(join(folder, ".new"), `server=${SERVERS.second}\n`);
  renameSync(join(folder, ".new"), join(folder, "origin-upstream-dns.conf"));
  await waitFor("the other server", async () => {
    const asked = await askedServer(`follow${Math.random().toString(36).slice(2)}.ok.test`);
    return asked.includes(SERVERS.second) ? true : undefined;
  });
  writeFileSync(join(folder, "names.conf"), "address=/one.lan/10.1.1.9\ndnssec\n");
  await instance.logs(
    /names\.conf:2: dnssec: \\"dnssec\\" is not supported.*reload failed, keeping the previous settings/,
  );
  assert.deepEqual(dataOf(await dig(app, "one.lan")), ["10.1.1.1"]);
  writeFileSync(join(folder, "names.conf"), "address=/one.lan/10.1.1.9\n");
  await waitFor("the new address", async () => dataOf(await dig(app, "one.lan"))[0] === "10.1.1.9" || undefined);
  const { settings } = await instance.status();
  assert.deepEqual([settings["records"]?.source, settings["cache.max-ttl"]?.source], ["dnsmasq", "dnsmasq"]);
});

test("resolv-file is the host's resolv.conf, and is followed", async () => {
  const folder = folderWith({});
  const file = join(folder, "upstream.resolv");
  const dir = folderWith({ "a.conf": `resolv-file=${file}\n` });
  writeFileSync(file, `nameserver ${SERVERS.first}\n`);
  await using _ = await start({ "dnsmasq-dir": dir });
  assert.deepEqual(await askedServer("file1.ok.test"), [SERVERS.first]);
  writeFileSync(file, `nameserver ${SERVERS.second}\n`);
  await waitFor("the other server", async () => {
    const asked = await askedServer(`file${Math.random().toString(36).slice(2)}.ok.test`);
    return asked.includes(SERVERS.second) ? true : undefined;
  });
});

test("mistakes end the start, each with file and line; check-config shows what means nothing here", async () => {
  const folder = folderWith({ "a.conf": "server=10.0.0.1\ndnssec\n" });
  const failed = await dns11(["run"], { env: { DOCKER_HOST: engine.host, DNS11_DNSMASQ_DIR: folder } });
  assert.equal(failed.code, 2);
  assert.match(failed.stderr, /a\.conf:2: dnssec: "dnssec" is not supported: remove it/);
  const good = folderWith(FILES);
  const settings = join(folderWith({}), "dns11.yaml");
  writeFileSync(settings, `version: 1\ndnsmasq-dir: ${good}\n`);
  const { code, stdout } = await dns11(["check-config", settings]);
  assert.equal(code, 0);
  assert.match(stdout, /cache\.max-ttl +dnsmasq +1s/);
  assert.match(stdout, /Options of dnsmasq that mean nothing here:\n {2}\S+origin-dns\.conf:5: enable-dbus\n/);
  writeFileSync(settings, `version: 1\ndnsmasq-dir: ${good}\ndns: [10.0.0.1]\n`);
  const both = await dns11(["check-config", settings]);
  assert.match(both.stderr, /dns11\.yaml:3:1: dns: is also set at \S+\.conf:1: put all of it in one of them/);
});
