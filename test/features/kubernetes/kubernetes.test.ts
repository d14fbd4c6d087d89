// Names of a cluster on a real engine: containers and the host resolve what the API lists, over TLS with a client's certificate, with
// a token, and as a pod. Debian's kubectl changes the objects, and sees the same ones.

import assert from "node:assert/strict";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";

import { dataOf, dig } from "../../support/client/dig.ts";
import { type Container, createNetwork, runContainer } from "../../support/engine/container.ts";
import { type Engine, startEngine } from "../../support/engine/engine.ts";
import { check, stdoutOf } from "../../support/program/command.ts";
import { dns11, startDns11 } from "../../support/program/dns11.ts";
import { SharedDns11 } from "../../support/program/shared-dns11.ts";
import { makeFolder } from "../../support/rig/folder.ts";
import { waitFor } from "../../support/rig/wait.ts";
import { makeCertificates } from "../../support/servers/certificates.ts";
import { type Upstream, startUpstream } from "../../support/servers/upstream.ts";
import { CLUSTER } from "./cluster-objects.ts";
import { KubeApi } from "./kube-api.ts";
import { debianKubectl } from "./kubectl.ts";

const folder = makeFolder("kubernetes");
const kubeconfig = join(folder, "admin.conf");
const SETTINGS = `kubernetes: {api: ${kubeconfig}}`;
let certificates: Awaited<ReturnType<typeof makeCertificates>>;
let kubectlPath: string;
let api: KubeApi;
let engine: Engine;
let upstream: Upstream;
let app: Container;
const shared = new SharedDns11(() => engine);

before(async () => {
  certificates = await makeCertificates(folder, 9);
  kubectlPath = await debianKubectl();
  api = await startApi();
  engine = await startEngine({ hasControlGroup: true, resolvConf: "nameserver 127.0.0.1\n" });
  upstream = await startUpstream(engine);
  await createNetwork(engine, "front");
  app = await runContainer(engine, { name: "app", networks: ["front"], args: ["--dns-option=ndots:5"] });
});
after(async () => {
  await shared[Symbol.asyncDispose]();
  await upstream[Symbol.asyncDispose]();
  await engine[Symbol.asyncDispose]();
  await api[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true });
});

// With the objects of the documents. A client needs a certificate of the authority, as kubeadm gives the administrator.
async function startApi(options: { readonly port?: number; readonly token?: string } = {}): Promise<KubeApi> {
  const pem = (path: string): string => readFileSync(path, "utf8");
  const clientCa = options.token === undefined ? { clientCa: pem(certificates.ca) } : {};
  const started = await KubeApi.start({
    ...options,
    tls: { cert: pem(certificates.cert), key: pem(certificates.key), ...clientCa },
  });
  started.put(...CLUSTER);
  writeKubeconfig(kubeconfig, started.url, {
    "client-certificate": certificates.cert,
    "client-key": certificates.key,
  });
  return started;
}

function writeKubeconfig(path: string, server: string, user: object): void {
  const config = {
    apiVersion: "v1",
    kind: "Config",
    clusters: [{ name: "test", cluster: { server, "certificate-authority": certificates.ca } }],
    users: [{ name: "admin", user }],
    contexts: [{ name: "admin@test", context: { cluster: "test", user: "admin" } }],
    "current-context": "admin@test",
  };
  writeFileSync(path, JSON.stringify(config));
}

async function kubectl(...args: string[]): Promise<string> {
  return await check(kubectlPath, ["--kubeconfig", kubeconfig, "--cache-dir", join(folder, "cache"), ...args]);
}

async function addressesOf(name: string): Promise<string[]> {
  return dataOf(await dig(app, name));
}

async function until(name: string, ...addresses: readonly string[]): Promise<void> {
  await waitFor(
    `${name}: ${addresses.join()}`,
    async () => (await addressesOf(name)).join() === addresses.join() || undefined,
  );
}

async function current(): Promise<void> {
  const instance = await shared.under(SETTINGS);
  await waitFor("the cluster", async () => (await instance.status()).cluster?.state === "current" || undefined);
}

test("a container resolves the names of the documents, by UDP and TCP, and nothing of it goes upstream", async () => {
  await current();
  for (const transport of ["+notcp", "+tcp"]) {
    for (const [name, type, data] of [
      ["kubernetes.default.svc.cluster.local", "A", ["10.3.0.1"]],
      ["_https._tcp.kubernetes.default.svc.cluster.local", "SRV", ["0 100 443 kubernetes.default.svc.cluster.local."]],
      ["mybank.dev.svc.cluster.local", "A", ["172.30.162.172"]],
      ["jenkins.dev.endpoints.cluster.local", "A", ["10.128.2.81", "10.131.1.70"]],
      ["172-30-162-172.dev.pod.cluster.local", "A", ["172.30.162.172"]],
      ["1.0.3.10.in-addr.arpa", "PTR", ["kubernetes.default.svc.cluster.local."]],
      ["dns-version.cluster.local", "TXT", ['"1.1.0"']],
    ] as const)
      assert.deepEqual(dataOf(await dig(app, name, type, transport)).toSorted(), data, `${name} ${type} ${transport}`);
  }
  const missing = await dig(app, "nothing.default.svc.cluster.local");
  assert.deepEqual([missing.status, missing.authority[0]?.type], ["NXDOMAIN", "SOA"]);
  const seen = (await upstream.queries()).filter(({ name }) => /cluster\.local$/i.test(name));
  assert.deepEqual(seen, []);
  const { stdout } = await app.exec("nslookup", ["registry-console.default.svc.cluster.local"]);
  assert.match(stdout, /172\.30\.9\.9/);
});

test("kubectl sees the same objects, and what it changes is what containers resolve", async () => {
  await current();
  const listed = JSON.parse(await kubectl("get", "services,endpointslices", "-A", "-o", "json")) as {
    readonly items: readonly { readonly kind: string }[];
  };
  assert.equal(listed.items.length, CLUSTER.length);
  assert.match(
    await kubectl("get", "service", "kube-dns", "-n", "kube-system", "-o", "jsonpath={.spec.clusterIP}"),
    /^10\.96\.0\.10$/,
  );
  await kubectl("create", "service", "clusterip", "shop", "--tcp=80:8080", "-n", "dev", "--clusterip=172.30.1.1");
  await until("shop.dev.svc.cluster.local", "172.30.1.1");
  const file = join(folder, "shop.json");
  const shop = JSON.parse(await kubectl("get", "service", "shop", "-n", "dev", "-o", "json")) as {
    spec: { clusterIP: string };
  };
  shop.spec.clusterIP = "172.30.1.2";
  writeFileSync(file, JSON.stringify(shop));
  await kubectl("replace", "-f", file, "--validate=false");
  await until("shop.dev.svc.cluster.local", "172.30.1.2");
  await kubectl("create", "service", "externalname", "out", "-n", "dev", "--external-name=name1.ok.test");
  await until("out.dev.svc.cluster.local", "name1.ok.test.", "192.0.2.1");
  await kubectl("delete", "service", "shop", "out", "-n", "dev", "--wait=false");
  await until("shop.dev.svc.cluster.local");
  await until("out.dev.svc.cluster.local");
});

test("while the API is away the last known names are answered, and said to be", async () => {
  await current();
  const instance = await shared.under(SETTINGS);
  const { port } = api;
  await api.close();
  await waitFor("last known", async () => (await instance.status()).cluster?.state === "last-known" || undefined);
  assert.deepEqual(await addressesOf("mybank.dev.svc.cluster.local"), ["172.30.162.172"]);
  const place = ["--state-dir", instance.stateDir];
  const status = stdoutOf(await dns11(["status", ...place]), "status");
  assert.match(
    status,
    /kubernetes +\d+ services, \d+ endpoints for cluster\.local, last known for .*: cannot reach the API at https:/,
  );
  const explained = stdoutOf(
    await dns11(["explain", "mybank.dev.svc.cluster.local", "--in", "app", "-v", ...place]),
    "explain",
  );
  assert.match(explained, /in Kubernetes, zone "cluster\.local": 1 A \(last known: its API cannot be reached\)/);
  const doctor = await dns11(["doctor", "-H", engine.host, ...place]);
  assert.match(
    doctor.stdout,
    /names below cluster\.local are the last known ones, for \d+ seconds: cannot reach the API/,
  );
  api = await startApi({ port });
  await waitFor("current", async () => (await instance.status()).cluster?.state === "current" || undefined);
});

test("a token in a kubeconfig, and one that is wrong; a reload goes from one cluster to none", async () => {
  await using other = await startApi({ token: "secret" });
  other.remove("Service", "dev", "mybank");
  const path = join(folder, "token.conf");
  writeKubeconfig(path, other.url, { token: "wrong" });
  writeKubeconfig(kubeconfig, api.url, { "client-certificate": certificates.cert, "client-key": certificates.key });
  await current();
  const instance = await shared.under(`kubernetes: {api: ${path}}`);
  const { cluster } = await instance.status();
  assert.deepEqual([cluster?.state, cluster?.code], ["unavailable", "CLUSTER_CREDENTIALS"]);
  assert.equal((await dig(app, "mybank.dev.svc.cluster.local")).status, "SERVFAIL");
  writeFileSync(join(folder, "token"), "secret\n");
  writeKubeconfig(path, other.url, { tokenFile: "token" });
  await until("kubernetes.default.svc.cluster.local", "10.3.0.1");
  assert.equal((await dig(app, "mybank.dev.svc.cluster.local")).status, "NXDOMAIN", "it is another cluster");
  const none = await shared.under("ttl: 60s");
  assert.equal((await none.status()).cluster, null);
  assert.equal(await addressesOf("kubernetes.default.svc.cluster.local").then((all) => all.length), 0);
});

test("as a pod: with the files that Kubernetes mounts, and the address in the environment", async () => {
  await shared.stop();
  await using own = await startApi({ token: "secret" });
  const place = "/run/secrets/kubernetes.io/serviceaccount";
  // The mount is in a namespace of its own, which ends with the program.
  const script = `mount -t tmpfs none /run && mkdir -p ${place} && cp ${certificates.ca} ${place}/ca.crt && echo secret > ${place}/token && exec "$@"`;
  await using instance = await startDns11(engine, {
    prefix: ["unshare", "--mount", "sh", "-c", script, "sh"],
    settings: { "kubernetes.api": "service-account" },
    env: { DNS11_KEEPER: "off", KUBERNETES_SERVICE_HOST: "127.0.0.1", KUBERNETES_SERVICE_PORT: String(own.port) },
  });
  await waitFor("the cluster", async () => (await instance.status()).cluster?.state === "current" || undefined);
  assert.deepEqual(await addressesOf("mybank.dev.svc.cluster.local"), ["172.30.162.172"]);
});

test("the host resolves them with host-names", async () => {
  writeKubeconfig(kubeconfig, api.url, { "client-certificate": certificates.cert, "client-key": certificates.key });
  const instance = await shared.under(SETTINGS, "host-names: capture");
  await instance.waitFor("host", "attached");
  await waitFor("the name on the host", async () => {
    const found = dataOf(await dig(engine, "@127.0.0.1", "mybank.dev.svc.cluster.local"));
    return found.join() === "172.30.162.172" || undefined;
  });
});

test("settings that contradict each other are mistakes", async () => {
  const path = join(folder, "bad.yaml");
  const mistakesOf = async (...lines: readonly string[]): Promise<string> => {
    writeFileSync(path, ["version: 1", ...lines].join("\n"));
    return (await dns11(["check-config", path])).stderr;
  };
  assert.match(
    await mistakesOf("kubernetes: {zone: other.test}"),
    /kubernetes\.zone: has no effect without kubernetes\.api/,
  );
  assert.match(
    await mistakesOf(SETTINGS, "zone: cluster.local"),
    /"cluster\.local" and the zone "cluster\.local" are the same or nested/,
  );
  assert.match(
    await mistakesOf("kubernetes: {api: admin.conf}"),
    /use the absolute path of a kubeconfig, .*or service-account/,
  );
  assert.match(await mistakesOf("kubernetes: {api: service-account, context: a}"), /no effect with a service account/);
  assert.match(await mistakesOf("strict: true", SETTINGS), /kubernetes\.api: has no effect with strict/);
});
