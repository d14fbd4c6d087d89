// Names of services below a zone on a real engine: the examples of Kubernetes and OpenShift, word for word, for dig, the C
// library of glibc, busybox and Node's resolver, with the search list and ndots of a pod. Nothing of it goes upstream.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { dataOf, dig } from "../../support/client/dig.ts";
import { type Container, type ContainerOptions, createNetwork, runContainer } from "../../support/engine/container.ts";
import { type Engine, startEngine } from "../../support/engine/engine.ts";
import { ensureImage, exposingImage } from "../../support/engine/image.ts";
import { type CommandResult, stdoutOf } from "../../support/program/command.ts";
import { type Dns11, dns11, startDns11 } from "../../support/program/dns11.ts";
import { type Upstream, startUpstream } from "../../support/servers/upstream.ts";
import { waitFor } from "../../support/rig/wait.ts";

const ZONE = "cluster.local";
const SEARCH = [`dev.svc.${ZONE}`, `svc.${ZONE}`, ZONE];
const POD = [...SEARCH.map((domain) => `--dns-search=${domain}`), "--dns-option=ndots:5"];
const MYBANK = "172.30.162.172";
const JENKINS = ["172.30.7.1", "172.30.7.2"];

let engine: Engine;
let upstream: Upstream;
let instance: Dns11;
let client: Container;

before(async () => {
  engine = await startEngine({ resolvConf: "nameserver 127.0.0.1\n" });
  upstream = await startUpstream(engine);
  await createNetwork(engine, "dev_default", { subnet: "172.30.0.0/16" });
  await runMember("mybank", 1, MYBANK, { "io.dns11.ports": "http=80,dns=53/udp" });
  const exposing = { image: await ensureImage(engine, exposingImage("exposing", 443)), args: ["--expose=6379"] };
  for (const [index, address] of JENKINS.entries()) await runMember("jenkins", index + 1, address, {}, exposing);
  const networks = ["dev_default"];
  client = await runContainer(engine, { name: "client", networks, args: POD });
  instance = await startDns11(engine, { args: ["--zone", ZONE], env: { ...process.env, DNS11_ZONE: "ignored.test" } });
});
after(async () => {
  await instance[Symbol.asyncDispose]();
  await upstream[Symbol.asyncDispose]();
  await engine[Symbol.asyncDispose]();
});

async function runMember(
  service: string,
  number: number,
  ip: string,
  more: Record<string, string> = {},
  options: ContainerOptions = {},
): Promise<void> {
  const compose = { project: "dev", service, "container-number": String(number) };
  const labels = Object.fromEntries(
    Object.entries(compose).map(([key, value]) => [`com.docker.compose.${key}`, value]),
  );
  await runContainer(engine, {
    ...options,
    name: `dev-${service}-${number}`,
    networks: [{ name: "dev_default", ip, aliases: [service] }],
    labels: { ...labels, ...more },
  });
}

// A program of the image.
async function inside(command: string, ...args: string[]): Promise<string> {
  return stdoutOf(await client.exec(command, args), `${command} ${args.join(" ")}`).trim();
}

// Gives a program of the machine the network and the files for name resolution of a container.
const AS_IN_CONTAINER = `
mount -t tmpfs none /mnt
for file in resolv.conf hosts nsswitch.conf; do
  cat "$1/etc/$file" > "/mnt/$file"
  mount --bind "/mnt/$file" "/etc/$file"
done
shift
exec "$@"
`;

async function withMachines(command: string, ...args: string[]): Promise<CommandResult> {
  const root = `/proc/${client.pid}/root`;
  return await client.enter("unshare", ["--mount", "sh", "-euc", AS_IN_CONTAINER, "sh", root, command, ...args]);
}

async function machine(command: string, ...args: string[]): Promise<string> {
  return stdoutOf(await withMachines(command, ...args), `${command} ${args.join(" ")}`).trim();
}

async function node(code: string): Promise<unknown> {
  const script = `const dns = require("node:dns").promises; (async () => ${code})().then((r) => console.log(JSON.stringify(r)))`;
  return JSON.parse(await machine(process.execPath, "-e", script)) as unknown;
}

test("dig: the examples, with their records, and the zone's own records", async () => {
  for (const [name, type, expected] of [
    [`mybank.dev.svc.${ZONE}`, "A", [MYBANK]],
    [`jenkins.dev.endpoints.${ZONE}`, "A", JENKINS],
    [`172-30-162-172.dev.pod.${ZONE}`, "A", [MYBANK]],
    [`2.jenkins.dev.svc.${ZONE}`, "A", [JENKINS[1] ?? ""]],
    [`*.dev.svc.${ZONE}`, "A", [MYBANK, ...JENKINS]],
    [`_http._tcp.mybank.dev.svc.${ZONE}`, "SRV", [`0 100 80 1.mybank.dev.svc.${ZONE}.`]],
    [`dns-version.${ZONE}`, "TXT", ['"1.1.0"']],
    [ZONE, "NS", [`ns.dns.${ZONE}.`]],
    [`ns.dns.${ZONE}`, "A", ["127.0.0.11"]],
    [ZONE, "SOA", [`ns.dns.${ZONE}. hostmaster.${ZONE}. 1 7200 1800 86400 5`]],
  ] as const) {
    for (const transport of ["+notcp", "+tcp"]) {
      const reply = await dig(client, transport, name, type);
      assert.deepEqual(
        [reply.status, ...dataOf(reply).toSorted()],
        ["NOERROR", ...[...expected].map(String).toSorted()],
        name,
      );
      assert.ok(reply.flags.has("aa"), name);
    }
  }
  const exposed = dataOf(await dig(client, `_redis._tcp.jenkins.dev.svc.${ZONE}`, "SRV"));
  assert.deepEqual(
    exposed.toSorted(),
    [1, 2].map((number) => `0 100 6379 ${number}.jenkins.dev.svc.${ZONE}.`),
    "its creator exposed the port",
  );
  assert.equal((await dig(client, `_https._tcp.jenkins.dev.svc.${ZONE}`, "SRV")).status, "NXDOMAIN", "its image did");
  const { additional } = await dig(client, `_http._tcp.mybank.dev.svc.${ZONE}`, "SRV");
  assert.deepEqual(
    additional.map(({ name, data }) => `${name} ${data}`),
    [`1.mybank.dev.svc.${ZONE}. ${MYBANK}`],
  );
  assert.deepEqual(dataOf(await dig(client, "-x", MYBANK)), [`1.mybank.dev.svc.${ZONE}.`]);
  const gone = await dig(client, `nobody.dev.svc.${ZONE}`);
  assert.deepEqual([gone.status, gone.authority[0]?.name, gone.authority[0]?.type], ["NXDOMAIN", `${ZONE}.`, "SOA"]);
});

test("with the search list of a pod: a service, with its project, with svc, and as a whole; not with a final dot", async () => {
  for (const name of ["mybank", "mybank.dev", "mybank.dev.svc", `mybank.dev.svc.${ZONE}`, `mybank.dev.svc.${ZONE}.`]) {
    assert.match(await machine("getent", "ahostsv4", name), new RegExp(`^${MYBANK} +STREAM`), `glibc ${name}`);
    assert.match(await inside("ping", "-c", "1", "-W", "5", name), new RegExp(`\\(${MYBANK}\\)`), `busybox ${name}`);
    assert.deepEqual(await node(`dns.lookup("${name}")`), { address: MYBANK, family: 4 }, `Node ${name}`);
  }
  assert.deepEqual((await machine("dig", "+search", "+short", "mybank.dev.svc")).split("\n"), [MYBANK]);
  assert.notEqual((await withMachines("getent", "ahostsv4", "mybank.dev.svc.")).code, 0, "an absolute name");
  assert.equal((await dig(client, "mybank.dev.svc.")).status, "NXDOMAIN");
  const all = await machine("getent", "ahostsv4", "jenkins.dev.endpoints");
  assert.deepEqual([...new Set(all.split("\n").map((line) => line.split(" ")[0] ?? ""))].toSorted(), JENKINS);
});

test("resolvers of their own: busybox nslookup, and Node's, which asks for services and addresses", async () => {
  assert.match(await inside("nslookup", `mybank.dev.svc.${ZONE}.`), new RegExp(`Address(?: \\d)?: ${MYBANK}`));
  assert.deepEqual(await node(`dns.resolve4("mybank.dev.svc.${ZONE}")`), [MYBANK]);
  assert.deepEqual(await node(`dns.resolveSrv("_dns._udp.mybank.dev.svc.${ZONE}")`), [
    { name: `1.mybank.dev.svc.${ZONE}`, port: 53, priority: 0, weight: 100 },
  ]);
  assert.deepEqual(await node(`dns.reverse("${MYBANK}")`), [`1.mybank.dev.svc.${ZONE}`]);
  assert.match(await machine("getent", "hosts", MYBANK), new RegExp(`1\\.mybank\\.dev\\.svc\\.${ZONE}`));
});

test("no name of the zone has gone upstream, whatever was tried on the way; explain names the zone", async () => {
  await dig(client, `x.${ZONE}`, "HTTPS");
  await dig(client, "control.ok.test");
  const asked = (await upstream.queries()).map(({ name }) => name.toLowerCase());
  assert.ok(asked.includes("control.ok.test"), "the upstream server is asked for other names");
  assert.deepEqual(
    asked.filter((name) => name.endsWith(ZONE)),
    [],
  );
  const where = ["-H", engine.host, "--state-dir", instance.stateDir];
  const explain = async (name: string): Promise<string> =>
    (await dns11(["explain", name, "--in", "client", "-v", ...where])).stdout;
  assert.match(
    await explain(`jenkins.dev.svc.${ZONE}`),
    /in zone "cluster\.local": a service with 2 ready containers; answered with its records/,
  );
  const names = (await dns11(["names", "--in", "client", ...where])).stdout;
  assert.match(names, /2\.jenkins\.dev\.svc\.cluster\.local +172\.30\.7\.2 +dev-jenkins-2 +dev +zone cluster\.local/);
  assert.match((await dns11(["status", ...where])).stdout, /^zones +cluster\.local$/m);
  assert.match(await explain(`x.${ZONE}`), /in zone "cluster\.local": no such name; no other source may have it/);
});

test("the names follow containers, and a container's own name and Docker's other names stay as they are", async () => {
  await engine.docker("pause", "dev-jenkins-2");
  await until(`jenkins.dev.svc.${ZONE}`, JENKINS.slice(0, 1));
  assert.deepEqual(dataOf(await dig(client, `jenkins.dev.endpoints.${ZONE}`)).toSorted(), JENKINS);
  await engine.docker("unpause", "dev-jenkins-2");
  await until(`jenkins.dev.svc.${ZONE}`, JENKINS);
  await engine.docker("rm", "--force", "dev-jenkins-1");
  await until(`jenkins.dev.endpoints.${ZONE}`, JENKINS.slice(1));
  assert.deepEqual(dataOf(await dig(client, "mybank")), [MYBANK]);
  assert.deepEqual(dataOf(await dig(client, "dev-mybank-1.dev_default")), [MYBANK]);
});

async function until(name: string, expected: readonly string[]): Promise<void> {
  await waitFor(`${name} to be ${expected.join(" ")}`, async () => {
    const found = dataOf(await dig(client, name)).toSorted();
    return found.join() === expected.join() ? true : undefined;
  });
}
