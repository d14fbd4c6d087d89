// Proves what is read of the files of a Compose project: where each key stands when several files, services that are extended and YAML's own
// ways to repeat something add up; and that no file can make it take long, or print what is no name.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import type { ComposeProjectText } from "../../../../src/base/model/compose.ts";
import { readComposeProject } from "../../../../src/config/file/compose-file.ts";
import { makeFolder } from "../../../support/rig/folder.ts";

const root = makeFolder("compose-file");
mkdirSync(join(root, "srv"));

/** The paths in the project are those below the root. */
async function read(files: Readonly<Record<string, string>>, listed = Object.keys(files)): Promise<ComposeProjectText> {
  for (const [name, text] of Object.entries(files)) writeFileSync(join(root, "srv", name), text);
  return await readComposeProject(
    listed.map((name) => `/srv/${name}`),
    root,
  );
}

test("no networks, a list, a map, a network mode", async () => {
  const { services } = await read({
    "a.yaml": `
services:
  none: {image: x}
  list: {networks: [front, back]}
  map: {networks: {front: {aliases: [f]}, back: }}
  mode: {network_mode: host}
  empty:
`,
  });
  assert.equal(services.get("none")?.networks, undefined);
  assert.deepEqual(services.get("none")?.location, { file: "/srv/a.yaml", service: "none" });
  assert.deepEqual(services.get("list")?.networks, { names: ["front", "back"], isMap: false });
  assert.deepEqual(services.get("map")?.networks, { names: ["front", "back"], isMap: true });
  assert.equal(services.get("mode")?.networkMode, "host");
});

test("several files, an override, a reset", async () => {
  const { services, networks } = await read({
    "b.yaml": "services: {web: {networks: [front], dns: 1.1.1.1}, api: {networks: [front]}, db: {network_mode: host}}",
    "c.yaml": `
services:
  web: {networks: [back]}
  api: {networks: !override [back]}
  db: {network_mode: !reset null}
networks: {back: {name: other}, front: }
`,
  });
  assert.deepEqual(services.get("web")?.networks, { names: ["front", "back"], isMap: false });
  assert.equal(services.get("web")?.keys.get("networks")?.file, "/srv/c.yaml");
  assert.equal(services.get("web")?.keys.get("dns")?.file, "/srv/b.yaml");
  assert.deepEqual(services.get("api")?.networks?.names, ["back"]);
  assert.equal(services.get("db")?.networkMode, undefined);
  assert.deepEqual(
    [...networks],
    [
      ["back", "other"],
      ["front", undefined],
    ],
  );
});

test("a service that extends another one, in its file and in another, and an anchor", async () => {
  const { services } = await read(
    {
      "base.yaml": 'services: {base: {networks: [front], extra_hosts: ["db:10.0.0.1"]}}',
      "d.yaml": `
x-all: &all {networks: [back]}
services:
  web: {extends: {file: base.yaml, service: base}}
  own: {extends: web, profiles: [debug]}
  merged:
    <<: *all
    scale: 0
`,
    },
    ["d.yaml"],
  );
  const place = { file: "/srv/base.yaml", service: "base" };
  assert.deepEqual(services.get("web")?.keys.get("networks"), place);
  assert.deepEqual(services.get("web")?.extraHosts.get("db"), place);
  assert.deepEqual(services.get("web")?.location, { file: "/srv/d.yaml", service: "web" });
  assert.deepEqual(services.get("own")?.networks?.names, ["front"]);
  assert.deepEqual(services.get("own")?.profiles, ["debug"]);
  assert.deepEqual(services.get("merged")?.networks?.names, ["back"]);
  assert.deepEqual(services.get("merged")?.replicas, { key: "scale", count: 0 });
});

test("files that are included", async () => {
  const { services } = await read(
    {
      "e.yaml": 'include: [f.yaml, {path: [g.yaml]}, "${X}/h.yaml"]\nservices: {web: {}}',
      "f.yaml": "services: {api: {}}",
      "g.yaml": "include: [e.yaml]\nservices: {db: {}}",
    },
    ["e.yaml"],
  );
  assert.deepEqual([...services.keys()], ["web", "api", "db"]);
});

test("files that are none, that are made to take long, and names that are none", async () => {
  const bomb = [
    "a: &a [x,x]",
    ...Array.from({ length: 25 }, (_, i) => `b${i}: &b${i} [*${i === 0 ? "a" : `b${i - 1}`},*a]`),
  ];
  const many = Array.from({ length: 1_000 }, (_, i) => `  s${i}: *one`).join("\n");
  execFileSync("mkfifo", [join(root, "srv", "pipe")]);
  const { services } = await read(
    {
      "bad.yaml": "services: [",
      "bomb.yaml": `${bomb.join("\n")}\nservices: {web: {networks: *b24}}`,
      "many.yaml": `one: &one {networks: [front]}\nservices:\n${many}`,
      "deep.yaml": `services: {web: ${"[".repeat(5_000)}`,
      "loop.yaml": 'services: {x: {extends: y}, y: {extends: x}, "\\e[31m": {}, z: {networks: ["\\e[31m", ok]}}',
      "self.yaml": "services: &s {v: {<<: *s}}",
    },
    [
      "bad.yaml",
      "bomb.yaml",
      "many.yaml",
      "deep.yaml",
      "loop.yaml",
      "self.yaml",
      "pipe",
      "missing.yaml",
      "../../../etc",
    ],
  );
  assert.ok(services.size <= 256);
  assert.ok([...services.keys()].every((name) => /^[\w.-]+$/.test(name)));
  assert.deepEqual(services.get("z")?.networks?.names ?? ["ok"], ["ok"]);
});
