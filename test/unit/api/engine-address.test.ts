// Proves how the Docker socket is found, and which addresses are rejected.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";

import { engineAddress } from "../../../src/api/engine-address.ts";
import { Fault } from "../../../src/base/lib/fault.ts";

const DEFAULT = "/var/run/docker.sock";
const home = mkdtempSync(join(tmpdir(), "d11-home-"));
after(() => rmSync(home, { recursive: true }));

const NOWHERE = { HOME: join(home, "nobody") };

test("without any setting it is the default socket", () => {
  assert.deepEqual(engineAddress(undefined, NOWHERE), { socketPath: DEFAULT, source: "the default" });
});

test("-H has precedence over DOCKER_HOST, and DOCKER_HOST over any context", () => {
  const env = { ...withContext("remote", "unix:///c.sock"), DOCKER_HOST: "unix:///b.sock" };
  assert.deepEqual(engineAddress("unix:///a.sock", env), { socketPath: "/a.sock", source: "-H" });
  assert.deepEqual(engineAddress(undefined, env), { socketPath: "/b.sock", source: "DOCKER_HOST" });
  assert.deepEqual(engineAddress("", env), { socketPath: "/b.sock", source: "DOCKER_HOST" });
});

test("an empty DOCKER_HOST is ignored", () => {
  assert.equal(engineAddress(undefined, { ...NOWHERE, DOCKER_HOST: "" }).socketPath, DEFAULT);
});

test("a unix address without a path is the default socket", () => {
  assert.equal(engineAddress("unix://", NOWHERE).socketPath, DEFAULT);
});

test("DOCKER_CONTEXT has precedence over docker's current context", () => {
  const env = withContext("mine", "unix:///mine.sock");
  assert.deepEqual(engineAddress(undefined, env), { socketPath: "/mine.sock", source: 'docker context "mine"' });
  context(env.HOME, "other", { docker: { Host: "unix:///other.sock" } });
  assert.equal(engineAddress(undefined, { ...env, DOCKER_CONTEXT: "other" }).socketPath, "/other.sock");
  assert.equal(engineAddress(undefined, { ...env, DOCKER_CONTEXT: "" }).socketPath, "/mine.sock");
  assert.equal(engineAddress(undefined, { ...env, DOCKER_CONTEXT: "default" }).socketPath, DEFAULT);
});

test("DOCKER_CONFIG sets the directory of docker's configuration, unless it is empty", () => {
  const env = withContext("mine", "unix:///mine.sock");
  assert.equal(
    engineAddress(undefined, { ...NOWHERE, DOCKER_CONFIG: join(env.HOME, ".docker") }).socketPath,
    "/mine.sock",
  );
  assert.equal(engineAddress(undefined, { ...env, DOCKER_CONFIG: "" }).socketPath, "/mine.sock");
});

test("an unreadable configuration, or one without a context, leaves the default", () => {
  for (const text of [
    "",
    "{",
    "null",
    "7",
    "{}",
    '{"currentContext":""}',
    '{"currentContext":7}',
    '{"currentContext":"default"}',
  ]) {
    const folder = mkdtempSync(join(home, "h-"));
    mkdirSync(join(folder, ".docker"));
    writeFileSync(join(folder, ".docker", "config.json"), text);
    assert.equal(engineAddress(undefined, { HOME: folder }).socketPath, DEFAULT, text);
  }
});

test("a context that does not exist or has no address is rejected", () => {
  const env = withContext("mine", "unix:///mine.sock");
  context(env.HOME, "empty", {});
  context(env.HOME, "odd", { docker: { Host: 7 } });
  for (const name of ["gone", "empty", "odd"]) {
    assert.equal(
      codeOf(() => engineAddress(undefined, { ...env, DOCKER_CONTEXT: name })),
      "BAD_ENGINE",
      name,
    );
  }
});

for (const [address, code] of [
  ["tcp://127.0.0.1:2375", "ENGINE_ELSEWHERE"],
  ["ssh://root@host", "ENGINE_ELSEWHERE"],
  ["https://host:2376", "ENGINE_ELSEWHERE"],
  ["host:2375", "ENGINE_ELSEWHERE"],
  ["/var/run/docker.sock", "ENGINE_ELSEWHERE"],
  ["npipe:////./pipe/docker_engine", "BAD_ENGINE"],
  ["fd://", "BAD_ENGINE"],
] as const) {
  test(`the address "${address}" is rejected as ${code}, with a remedy`, () => {
    assert.equal(
      codeOf(() => engineAddress(address, NOWHERE)),
      code,
    );
    assert.equal(
      codeOf(() => engineAddress(undefined, { ...NOWHERE, DOCKER_HOST: address })),
      code,
    );
  });
}

test("a remote engine is rejected in a context as well", () => {
  assert.equal(
    codeOf(() => engineAddress(undefined, withContext("far", "tcp://192.0.2.1:2376"))),
    "ENGINE_ELSEWHERE",
  );
});

type Home = { readonly HOME: string };

// A home directory whose docker configuration has this context.
function withContext(name: string, host: string): Home {
  const folder = mkdtempSync(join(home, "h-"));
  context(folder, name, { docker: { Host: host, SkipTLSVerify: false } });
  writeFileSync(join(folder, ".docker", "config.json"), JSON.stringify({ auths: {}, currentContext: name }));
  return { HOME: folder };
}

function context(folder: string, name: string, endpoints: object): void {
  const digest = createHash("sha256").update(name).digest("hex");
  const meta = join(folder, ".docker", "contexts", "meta", digest);
  mkdirSync(meta, { recursive: true });
  writeFileSync(join(meta, "meta.json"), JSON.stringify({ Name: name, Metadata: {}, Endpoints: endpoints }));
}

function codeOf(act: () => unknown): string | undefined {
  try {
    act();
  } catch (error) {
    assert.ok(error instanceof Fault && error.remedy !== undefined, "what the user did comes with a remedy");
    return error.code;
  }
  return undefined;
}
