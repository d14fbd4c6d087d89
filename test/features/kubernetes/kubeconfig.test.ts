// Proves how a kubeconfig is read, and what is refused in it.

import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import { BadSettings } from "../../../src/config/bad-settings.ts";
import { readKubeconfig } from "../../../src/features/kubernetes/kubeconfig.ts";
import { KUBERNETES_LIMITS } from "../../../src/features/kubernetes/limits.ts";
import { makeFolder } from "../../support/rig/folder.ts";

const folder = makeFolder("kubeconfig");
const path = join(folder, "config");

function config(cluster: object, user: object): string {
  return JSON.stringify({
    apiVersion: "v1",
    kind: "Config",
    "current-context": "one",
    clusters: [{ name: "c", cluster: { server: "https://10.0.0.5:6443", ...cluster } }],
    users: [{ name: "u", user }],
    contexts: [
      { name: "one", context: { cluster: "c", user: "u" } },
      { name: "nobody", context: { cluster: "c", user: "missing" } },
    ],
  });
}

test("data and files, relative to the kubeconfig's folder", async () => {
  writeFileSync(join(folder, "ca.pem"), "CA");
  const base64 = (text: string): string => Buffer.from(text).toString("base64");
  writeFileSync(
    path,
    config(
      { "certificate-authority": "ca.pem", "tls-server-name": "kubernetes" },
      { "client-certificate-data": base64("CERT"), "client-key-data": base64("KEY"), tokenFile: "token" },
    ),
  );
  assert.deepEqual(await readKubeconfig(path, undefined), {
    server: "https://10.0.0.5:6443",
    ca: "CA",
    serverName: "kubernetes",
    certificate: "CERT",
    key: "KEY",
    token: undefined,
    tokenFile: join(folder, "token"),
  });
});

test("a server with a path, as proxies of clusters have", async () => {
  writeFileSync(path, config({ server: "https://rancher.test/k8s/clusters/c-1/" }, { token: "t" }));
  const { server, token } = await readKubeconfig(path, "one");
  assert.deepEqual([server, token], ["https://rancher.test/k8s/clusters/c-1", "t"]);
});

for (const [what, text, context, problem] of [
  [
    "a program",
    config({}, { exec: { command: "aws" } }),
    undefined,
    /config: exec is not supported, because dns11 starts no program/,
  ],
  ["an auth provider", config({}, { "auth-provider": { name: "gcp" } }), undefined, /auth-provider is not supported/],
  [
    "no verification",
    config({ "insecure-skip-tls-verify": true }, {}),
    undefined,
    /insecure-skip-tls-verify is not supported/,
  ],
  ["a proxy", config({ "proxy-url": "http://10.0.0.1" }, {}), undefined, /proxy-url is not supported/],
  ["a password", config({}, { username: "a", password: "b" }), undefined, /use a token/],
  [
    "another scheme",
    config({ server: "ftp://10.0.0.5" }, {}),
    undefined,
    /the server "ftp:\/\/10\.0\.0\.5" is not valid/,
  ],
  ["no server", config({ server: "" }, {}), undefined, /the server "" is not valid/],
  ["an unknown context", config({}, {}), "two", /has no context "two"/],
  ["an unknown user", config({}, {}), "nobody", /has no user "missing"/],
  [
    "a missing file",
    config({ "certificate-authority": "/nowhere/ca.pem" }, {}),
    undefined,
    /\/nowhere\/ca\.pem: cannot be read/,
  ],
  ["no context", "{}", undefined, /has no current context: set kubernetes\.context/],
  ["no map", "[]", undefined, /has no current context/],
  ["no YAML", "a: [", undefined, /config:1:5/],
  ["a huge file", "x".repeat(KUBERNETES_LIMITS.fileBytes + 1), undefined, /is larger than 1 MB/],
] as const) {
  test(`a mistake: ${what}`, async () => {
    writeFileSync(path, text);
    await assert.rejects(
      readKubeconfig(path, context),
      (error) => error instanceof BadSettings && problem.test(error.lines[0] ?? ""),
    );
  });
}
