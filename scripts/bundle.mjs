// @ts-check
/**
 * Bundle: the programs in dist/cmd, each with its modules in few files. Loading 250 modules is a third of the processor time
 * of a start. Of the packages only zod is bundled, because three quarters of it, such as its messages in fifty languages,
 * are unused. The compiled modules remain for the tests and for ./client. The keeper and the worker are next to the
 * program, where it looks for them.
 */
import { readFileSync } from "node:fs";

import { build } from "esbuild";

const { dependencies } = JSON.parse(readFileSync("package.json", "utf8"));

await build({
  entryPoints: ["./cmd/dns11.ts", "./cmd/docker-dns.ts", "./src/**/*-main.ts"],
  entryNames: "[name]",
  outdir: "dist/cmd",
  bundle: true,
  // What only some commands need is loaded only by those.
  splitting: true,
  format: "esm",
  platform: "node",
  target: "node20",
  external: Object.keys(dependencies).filter((name) => name !== "zod"),
  sourcemap: true,
  logLevel: "warning",
});
