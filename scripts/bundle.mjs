// @ts-check
/**
 * Bundle: the page of `dns11 ui` in dist/ui, and the programs in dist/cmd, each with its modules in few files. Loading 250 modules is a third of the processor time
 * of a start. Of the packages only zod is bundled, because three quarters of it, such as its messages in fifty languages,
 * are unused. The compiled modules remain for the tests and for ./client. The keeper and the worker are next to the
 * program, where it looks for them.
 */
import { cpSync, readFileSync } from "node:fs";

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

// A classic script, because a page that is opened from disk cannot load modules.
const PAGE = "src/ui/page";
await build({
  entryPoints: [
    { in: `${PAGE}/main.tsx`, out: "app" },
    { in: `${PAGE}/style/app.css`, out: "app" },
  ],
  outdir: "dist/ui",
  bundle: true,
  minify: true,
  format: "iife",
  platform: "browser",
  target: ["es2022", "chrome111", "firefox114", "safari16.4"],
  jsx: "automatic",
  jsxImportSource: "preact",
  logLevel: "warning",
});
for (const name of ["index.html", "icon.svg"]) cpSync(`${PAGE}/${name}`, `dist/ui/${name}`);
