// Proves that a test suite in TypeScript can use the exported client: its types exist, reject mistakes, and need no other
// packages.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";

const GOOD = `
import { connect } from "dns11/client";
const dns = await connect({ engine: "unix:///run/docker.sock" });
const records = await dns.waitUntilResolves("app", "db", { type: "AAAA", timeoutMs: 10 });
export const ttls: number[] = records.map(({ ttl }) => ttl);
const { queries, last } = await dns.queries("app", { since: 1 });
export const names: (string | null)[] = queries.map(({ name }) => name);
await dns.queries("app", last === null ? {} : { since: last });
for await (const each of dns.follow({ container: "app", signal: AbortSignal.timeout(5) })) {
  if ("missed" in each) throw new Error(\`\${each.missed} are missing\`);
}
`;

test("a suite that uses the client as in docs/api.md compiles", () => {
  assert.deepEqual(compile(GOOD), { code: 0, output: "" });
  const [, example = ""] = /```js\n([\s\S]*?)```/.exec(readFileSync("docs/api.md", "utf8")) ?? [];
  assert.match(example, /waitUntilResolves/);
  assert.deepEqual(compile(example), { code: 0, output: "" });
});

for (const [what, wrong] of [
  ["an option that there is not", 'await dns.queries("app", { sinse: 1 });'],
  ["a name that may be hidden", "queries[0]?.name.length;"],
  ["records of which there may be none", "records[0].ttl;"],
] as const) {
  test(`the types reject: ${what}`, () => {
    assert.match(compile(`${GOOD}\n${wrong}\n`).output, /^use\.mts\(\d+,\d+\): error TS/);
  });
}

function compile(source: string): { readonly code: number | null; readonly output: string } {
  const folder = mkdtempSync(join(tmpdir(), "d11-types-"));
  try {
    mkdirSync(join(folder, "node_modules"));
    symlinkSync(process.cwd(), join(folder, "node_modules", "dns11"));
    writeFileSync(join(folder, "use.mts"), source);
    const options = {
      module: "nodenext",
      target: "es2022",
      lib: ["es2023", "dom"],
      strict: true,
      noUncheckedIndexedAccess: true,
      noEmit: true,
      skipLibCheck: false,
      types: [],
    };
    writeFileSync(join(folder, "tsconfig.json"), JSON.stringify({ compilerOptions: options, files: ["use.mts"] }));
    const { status, stdout } = spawnSync(join(process.cwd(), "node_modules/.bin/tsc"), ["-p", "."], {
      cwd: folder,
      encoding: "utf8",
    });
    return { code: status, output: stdout };
  } finally {
    rmSync(folder, { recursive: true });
  }
}
