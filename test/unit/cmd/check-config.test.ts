// Proves check-config, and the errors of run for invalid settings, from the command line: neither needs root, an engine or
// kernel features.

import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, test } from "node:test";

import { PROGRAM } from "../../support/program/built.ts";
import { run } from "../../support/program/command.ts";
import { dns11 } from "../../support/program/dns11.ts";
import { refusedHere } from "../../support/program/refused-here.ts";
import { useEnvironment } from "../support/environment.ts";

const folder = mkdtempSync(join(tmpdir(), "d11-check-"));
after(() => rmSync(folder, { recursive: true }));
let files = 0;

test("a valid file: the effective settings with their sources", async () => {
  const path = file("version: 1\nttl: 1m\ndns: [host, /lan/]\nnetworks: {web: {dns: [10.0.0.1]}}\n");
  const { code, stdout, stderr } = await dns11(["check-config", path]);
  assert.deepEqual([code, stderr], [0, ""]);
  assert.ok(stdout.startsWith(`${path} is valid\n\nSETTING`), stdout);
  assert.match(stdout, /^ttl +file +1m$/m);
  assert.match(stdout, /^dns +file +host \/lan\/$/m);
  assert.match(stdout, /^networks +file +\{"web":\{"dns":\["10\.0\.0\.1"\]\}\}$/m);
  assert.match(stdout, /^cache\.size +default +32MiB$/m);
  assert.match(stdout, /^resolv-conf +default +-$/m);
});

test("the same as JSON", async () => {
  const path = file("version: 1\nstrict: true\n");
  const { code, stdout } = await dns11(["check-config", "--json", path]);
  assert.equal(code, 0);
  const report = JSON.parse(stdout) as { file: string; settings: Record<string, unknown> };
  assert.equal(report.file, path);
  assert.deepEqual(report.settings["strict"], { value: true, source: "file" });
  assert.deepEqual(report.settings["ttl"], { value: "10m", source: "default" });
});

test("an invalid file: a line for each mistake, and exit code 2", async () => {
  const path = file("version: 1\nttl: x\ncache: {sise: 1}\n");
  const { code, stdout, stderr } = await dns11(["check-config", path]);
  assert.deepEqual([code, stdout], [2, ""]);
  assert.match(
    stderr,
    new RegExp(`^${path}:2:6: ttl: .*\n${path}:3:9: cache.sise: unknown key; did you mean "size".\n$`),
  );
});

test("output that cannot be written is an error, and an error of the command stays one", async () => {
  const settings = file("version: 1\n");
  for (const [args, code, message] of [
    [["check-config", settings], 1, /^dns11: cannot write its output: ENOSPC/],
    [["help"], 1, /^dns11: cannot write its output: ENOSPC/],
    [["check-config", join(folder, "nowhere")], 2, /nowhere: cannot be read: ENOENT/],
  ] as const) {
    const full = await run("sh", ["-c", 'exec "$@" >/dev/full', "sh", process.execPath, PROGRAM, ...args]);
    assert.match(full.stderr, message);
    assert.equal(full.code, code);
  }
});

test("a conflict is reported with its place", async () => {
  const path = file("version: 1\nstrict: true\ncache:\n  size: 1MiB\n");
  const { code, stderr } = await dns11(["check-config", path]);
  assert.equal(code, 2);
  assert.match(
    stderr,
    new RegExp(`^${path}:4:3: cache\\.size: has no effect with forward.order: docker, which strict sets`),
  );
});

// Arguments of run, its environment, and the error, which comes before run connects to an engine.
const REFUSED: readonly (readonly [readonly string[], NodeJS.ProcessEnv, RegExp])[] = [
  [
    ["--dns", "10.0.0"],
    {},
    /option '--dns <server>' argument '10\.0\.0' is invalid\. .*"host", an IP address or container:NAME/,
  ],
  [
    ["--dns-opt", "rotate"],
    {},
    /no flag '--dns-opt': options of resolv\.conf [\s\S]*forward\.order: rotate \(for rotate\)/,
  ],
  [["--dns-search", "lan"], {}, /no flag '--dns-search': search lists are applied by the resolver library/],
  [["--own-project"], {}, /no flag '--own-project': set DNS11_OWN_PROJECT, or own-project in the settings file/],
  [["--once"], {}, /option '--once' needs --in-node/],
  [["--in-node"], {}, /option '--host' has no effect with --in-node/],
  [["--ttl", "-1"], {}, /is invalid\. Use whole seconds from 0 to 7d, such as 30s or 5m\.$/m],
  [["--only", "web"], {}, /is invalid\. Use label=KEY/],
  [[], { DNS11_RESOLV_CONF: "resolv.conf" }, /^DNS11_RESOLV_CONF: invalid path .*: use an absolute path, such as/],
  [["--log-level", "loud"], {}, /Use one of debug, info/],
  [["--strict"], { DNS11_CACHE_SIZE: "1MiB" }, /^DNS11_CACHE_SIZE: has no effect .*, which strict sets/],
  [
    [],
    { DNS11_STRICT: "perhaps", DNS11_TTL: "x" },
    /^DNS11_STRICT: invalid value "perhaps": .*\nDNS11_TTL: invalid duration "x": /,
  ],
  [["--config", join(folder, "nowhere")], {}, /nowhere: cannot be read: ENOENT/],
  [[], { DNS11_CONFIG: join(folder, "nowhere") }, /nowhere: cannot be read: ENOENT/],
  [["--config", file("version: 1\nttl: x\n")], {}, /:2:6: ttl: invalid duration "x": use whole seconds/],
  [
    [],
    { DNS11_FORWARD_ORDER: "docker", DNS11_CONFIG: file("version: 1\ncache: {size: 1MiB}\n") },
    /:2:9: cache\.size: has no effect/,
  ],
];

for (const [args, env, message] of REFUSED) {
  describe(`run ${args.join(" ")} ${Object.keys(env).join(" ")}`, () => {
    useEnvironment(env);
    test("is refused", async () => {
      // With --dry-run it would end as well if it were not.
      const refusal = await refusedHere(["run", "--dry-run", "-H", "unix:///nowhere", ...args]);
      assert.match(refusal?.stderr ?? "", message);
      assert.equal(refusal?.code, 2);
    });
  });
}

test("the program prints what is refused on stderr, and exits with 2", async () => {
  for (const [args, env, message] of [
    [["--ttl", "-1"], {}, /^error: option '--ttl <time>' argument '-1' is invalid\. /],
    [[], { DNS11_TTL: "x" }, /^DNS11_TTL: invalid duration "x": /],
  ] as const) {
    const { code, stdout, stderr } = await dns11(["run", "-H", "unix:///nowhere", ...args], { env });
    assert.match(stderr, message);
    assert.deepEqual([code, stdout], [2, ""]);
  }
});

function file(text: string): string {
  const path = join(folder, `settings-${(files += 1)}.yaml`);
  writeFileSync(path, text);
  return path;
}
