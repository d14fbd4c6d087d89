// Real servers of the internet behind a policy, and their own clients: two names by TLS on one address (Caddy), Postgres, OpenSSH. Their
// root file system takes minutes and 300 MB, so only `make siege` has it; elsewhere servers that greet stand in for them.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { dataOf, dig } from "../support/client/dig.ts";
import { cachedRootfs } from "../support/engine/suite.ts";
import type { CommandResult } from "../support/program/command.ts";
import type { NetworkContext } from "../support/rig/netns.ts";
import { waitFor } from "../support/rig/wait.ts";
import { POLICY, Siege } from "./siege.ts";

const isWanted = process.env["SIEGE_SERVERS"] === "real";
// By its last digits the name server knows the address of a name.
const WEB = { names: ["one-31.ok.test", "two-31.ok.test"], address: "192.0.2.31", port: 8443 } as const;
const DATABASE = { name: "db-32.ok.test", address: "192.0.2.32", port: 5433 } as const;
const SHELL = { name: "git-33.ok.test", address: "192.0.2.33", port: 2222 } as const;
const ALLOWED = [`${WEB.names[0]}:${WEB.port}`, `${DATABASE.name}:${DATABASE.port}`, `${SHELL.name}:${SHELL.port}`];
// A program of the root file system, which others use at the same time: what it writes is its own.
const INSIDE = `root=$1; shift
for each in tmp run root; do mount -t tmpfs tmpfs "$root/$each"; done
mount --rbind /dev "$root/dev"
mount -t proc proc "$root/proc"
exec chroot "$root" sh -c "$@"`;
const SITES = WEB.names.map((name) => `https://${name}:${WEB.port} {\\n  tls internal\\n  respond "${name}"\\n}\\n`);
const SERVERS = `set -e
mkdir -p /run/sshd /tmp/pg
chmod 1777 /tmp
printf '{\\n  admin off\\n  auto_https disable_redirects\\n}\\n${SITES.join("")}' >/tmp/Caddyfile
HOME=/root caddy run --config /tmp/Caddyfile --adapter caddyfile & pids=$!
ssh-keygen -q -t ed25519 -N "" -f /tmp/key
/usr/sbin/sshd -D -e -p ${SHELL.port} -h /tmp/key -o ListenAddress=${SHELL.address} & pids="$pids $!"
chown postgres /tmp/pg
as_postgres="setpriv --reuid=postgres --regid=postgres --clear-groups"
cd /tmp
$as_postgres /usr/lib/postgresql/15/bin/initdb -D /tmp/pg -A trust >/dev/null
echo "host all all all trust" >>/tmp/pg/pg_hba.conf
$as_postgres /usr/lib/postgresql/15/bin/postgres -D /tmp/pg -k /tmp -p ${DATABASE.port} -c listen_addresses=${DATABASE.address} & pids="$pids $!"
read -r _ || true
kill $pids`;

let root: string;
let siege: Siege;
let end: () => void = () => undefined;
let servers: Promise<CommandResult> | undefined;

before(async () => {
  if (!isWanted) return;
  root = await cachedRootfs("bookworm-internet", "bookworm", "caddy,openssh-server,openssh-client,postgresql,curl");
  siege = await Siege.begin("forky");
  const until = new Promise<void>((resolve) => (end = resolve));
  servers = inside(siege.internet.netns, SERVERS, until);
  for (const client of [async () => await web(WEB.names[0]), async () => await web(WEB.names[1]), database, shell])
    await waitFor("a server", async () => ((await client()) === "refused" ? undefined : true));
  await siege.setPolicy(POLICY.replace("allow: [", `allow: [${ALLOWED.map((each) => `"${each}"`).join(", ")}, `));
});
after(async () => {
  if (!isWanted) return;
  end();
  await servers;
  await siege[Symbol.asyncDispose]();
});

async function inside(place: NetworkContext, script: string, until?: Promise<void>): Promise<CommandResult> {
  const args = ["--mount", "--", "sh", "-c", INSIDE, "sh", root, script];
  return await place.enter("unshare", args, { until, timeoutMs: 600_000 });
}

// What its client in the container gets.
async function ask(script: string): Promise<string> {
  const { code, stdout } = await inside(siege.agent, script);
  return code === 0 && stdout.trim() !== "" ? stdout.trim() : "refused";
}

async function web(name: string): Promise<string> {
  return await ask(`curl -sk --resolve ${name}:${WEB.port}:${WEB.address} https://${name}:${WEB.port}/`);
}

async function database(seconds = 0): Promise<string> {
  const { address, port } = DATABASE;
  return await ask(`psql -qAt -h ${address} -p ${port} -U postgres -c "select 'rows' from pg_sleep(${seconds})"`);
}

async function shell(): Promise<string> {
  const key = await ask(`ssh-keyscan -T 5 -p ${SHELL.port} ${SHELL.address} 2>/dev/null`);
  return key.includes("ssh-ed25519") ? "a key" : key;
}

test("their clients reach what was answered, and nothing before", { skip: !isWanted }, async () => {
  for (const [name, client, expected] of [
    [WEB.names[0], async () => await web(WEB.names[0]), WEB.names[0]],
    [DATABASE.name, async () => await database(), "rows"],
    [SHELL.name, shell, "a key"],
  ] as const) {
    assert.equal(await client(), "refused", name);
    assert.equal((await dig(siege.agent, name)).status, "NOERROR");
    assert.equal(await client(), expected, name);
  }
});

test("an address is open for all of its names: what a policy cannot promise", { skip: !isWanted }, async () => {
  await siege.leaks();
  assert.deepEqual(dataOf(await dig(siege.agent, WEB.names[1])), []);
  assert.ok(!(await siege.leaks()).some((leak) => leak.includes(WEB.names[1])));
  assert.equal(await web(WEB.names[1]), WEB.names[1]);
});

test("a session of a database stays while dns11 reloads and is replaced", { skip: !isWanted }, async () => {
  await dig(siege.agent, DATABASE.name);
  const session = database(8);
  await siege.reload(POLICY);
  await siege.replace();
  assert.equal(await session, "rows");
});
