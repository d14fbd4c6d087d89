// Proves that a test suite in TypeScript can use the exported client: its types exist, reject mistakes, and need no other
// packages.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { before, test } from "node:test";

const GOOD = `
import { type NotResolved, connect } from "dns11/client";
const dns = await connect({ engine: "unix:///run/docker.sock" });
const records = await dns.waitUntilResolves("app", "db", { type: "AAAA", timeoutMs: 10 });
export const ttls: number[] = records.map(({ ttl }) => ttl);
const { queries, last } = await dns.queries("app", { since: 1 });
export const names: (string | null)[] = queries.map(({ name }) => name);
await dns.queries("app", last === null ? {} : { since: last });
const failed = await dns.waitUntilResolves("app", "db").catch((error: NotResolved) => error);
export const why: string | undefined = "causes" in failed ? failed.causes[0]?.sentence : undefined;
for await (const each of dns.follow({ container: "app", signal: AbortSignal.timeout(5) })) {
  if ("missed" in each) throw new Error(\`\${each.missed} are missing\`);
}
dns.close();
`;

/** The blocks of the page, one after the other, are one program. */
const EXAMPLE = [...readFileSync("docs/testing.md", "utf8").matchAll(/```ts\n([\s\S]*?)```/g)]
  .map(([, block = ""]) => block)
  .join("");

const MISTAKES = {
  option: { what: "an option that there is not", line: 'await dns.queries("app", { sinse: 1 });' },
  hidden: { what: "a name that may be hidden", line: "queries[0]?.name.length;" },
  records: { what: "records of which there may be none", line: "records[0].ttl;" },
};

let code: number | null;
let output: string;
// All at once: the compiler reads its library each time.
before(() => {
  const sources: Record<string, string> = { good: GOOD, example: EXAMPLE };
  for (const [name, { line }] of Object.entries(MISTAKES)) sources[name] = `${GOOD}\n${line}\n`;
  ({ code, output } = compile(sources));
});

test("a suite that uses the client as in docs/testing.md compiles", () => {
  assert.match(EXAMPLE, /waitUntilResolves[^]*lab\.replay/);
  const other = output.split("\n").filter((line) => line !== "" && !isAbout(line, Object.keys(MISTAKES)));
  assert.deepEqual(other, []);
});

for (const [name, { what }] of Object.entries(MISTAKES)) {
  test(`the types reject: ${what}`, () => {
    assert.notEqual(code, 0);
    const lines = output.split("\n").filter((line) => isAbout(line, [name]));
    assert.match(lines.join("\n"), /^\w+\.mts\(\d+,\d+\): error TS/);
  });
}

// An error in several lines goes on indented.
function isAbout(line: string, names: readonly string[]): boolean {
  return line.startsWith(" ") || names.some((name) => line.startsWith(`${name}.mts(`));
}

/** Each source is a file of this name. */
function compile(sources: Readonly<Record<string, string>>): { readonly code: number | null; readonly output: string } {
  const folder = mkdtempSync(join(tmpdir(), "d11-types-"));
  try {
    mkdirSync(join(folder, "node_modules"));
    symlinkSync(process.cwd(), join(folder, "node_modules", "dns11"));
    const files = Object.keys(sources).map((name) => `${name}.mts`);
    for (const [name, source] of Object.entries(sources)) writeFileSync(join(folder, `${name}.mts`), source);
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
    writeFileSync(join(folder, "tsconfig.json"), JSON.stringify({ compilerOptions: options, files }));
    const { status, stdout } = spawnSync(join(process.cwd(), "node_modules/.bin/tsc"), ["-p", "."], {
      cwd: folder,
      encoding: "utf8",
    });
    return { code: status, output: stdout };
  } finally {
    rmSync(folder, { recursive: true });
  }
}
