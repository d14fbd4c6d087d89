// The blocks of docs/testing.md are one program, which this test runs as a reader would: in a project that has the package, beside
// a Compose project whose service asks for names all the time.

import assert from "node:assert/strict";
import { mkdirSync, readFileSync, readdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import type { LeasesReport } from "../../../src/api/lease.ts";
import { dig } from "../../support/client/dig.ts";
import { createNetwork, runContainer } from "../../support/engine/container.ts";
import { startEngine } from "../../support/engine/engine.ts";
import { run } from "../../support/program/command.ts";
import { startDns11 } from "../../support/program/dns11.ts";
import { getJson } from "../../support/program/unix-http.ts";
import { startUpstream } from "../../support/servers/upstream.ts";

const ASK = "while :; do nslookup db; nslookup telemetry.ok.test; sleep 0.2; done >/dev/null 2>&1";

test("the program of docs/testing.md does what it says, and leaves nothing behind", async () => {
  const blocks = [...readFileSync("docs/testing.md", "utf8").matchAll(/```ts\n([\s\S]*?)```/g)];
  const program = blocks.map(([, block = ""]) => block).join("");
  await using engine = await startEngine();
  await using _ = await startUpstream(engine);
  await createNetwork(engine, "n1");
  await runContainer(engine, { name: "db", networks: ["n1"] });
  const labels = { "com.docker.compose.project": "shop", "com.docker.compose.service": "app" };
  const app = await runContainer(engine, {
    name: "shop-app-1",
    networks: ["n1"],
    labels,
    command: ["sh", "-c", ASK],
  });
  await using instance = await startDns11(engine);

  const folder = join(engine.folder, "project");
  mkdirSync(join(folder, "node_modules"), { recursive: true });
  symlinkSync(process.cwd(), join(folder, "node_modules", "dns11"));
  const place = JSON.stringify({ engine: engine.host, stateDir: instance.stateDir });
  writeFileSync(join(folder, "page.mjs"), program.replace("connect()", `connect(${place})`));
  const { code, stdout, stderr } = await run(process.execPath, ["page.mjs"], { cwd: folder });
  assert.equal(code, 0, stderr);
  assert.match(stdout, /nxdomain for "cache", one of 3: 0 of 0 queries/);
  assert.match(stdout, /"cache" was never queried/);
  assert.match(readFileSync(join(folder, "dns.yaml"), "utf8"), /^tape: 1$/m);

  const [engineFolder = ""] = readdirSync(instance.stateDir);
  const socket = join(instance.stateDir, engineFolder, "control.sock");
  assert.deepEqual(((await getJson(socket, "/v1/leases")) as LeasesReport).leases, []);
  assert.equal((await dig(app, "db")).status, "NOERROR");
});
