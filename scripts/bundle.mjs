// @ts-check
/**
 * Bundle: the programs in dist/cmd, each with its modules in few files, and the page of `dns11 ui` in dist/ui. Loading 250
 * modules is a third of the processor time of a start. The packages are inside where that is possible: in few files they
 * load faster, and of dockerode most is left out. The compiled modules remain
 * for the tests and for ./client; the processes that tests start are bundled in place. The keeper and the worker are next to the program, where it looks for them.
 */
import { cpSync, readFileSync, readdirSync } from "node:fs";
import { dirname, resolve } from "node:path";

import { build, transform } from "esbuild";

const { dependencies } = JSON.parse(readFileSync("package.json", "utf8"));
/** koffi and netlink are native, and only a scrape loads prom-client. */
const BUNDLED = new Set(["commander", "dns-packet", "dockerode", "pino", "yaml"]);

/**
 * Has the native packages required. They are CommonJS, and for an import of that Node loads a parser, to look for the names
 * that a file exports.
 *
 * @type {import("esbuild").Plugin}
 */
const requireNative = {
  name: "require-native",
  setup(builder) {
    builder.onResolve({ filter: /^(koffi|node-netlink\/.*)$/ }, ({ path, kind }) =>
      kind === "require-call" ? { path, external: true } : { path, namespace: "required" },
    );
    builder.onLoad({ filter: /.*/, namespace: "required" }, ({ path }) => ({
      contents: `module.exports = require(${JSON.stringify(path)});`,
    }));
  },
};

/**
 * Leaves out of dockerode all but its HTTP client, which is what dns11 calls. The rest are classes for what the engine
 * manages, an ssh client, a gRPC client and tar-fs: 216 of the 226 files that it loads, 9 MB, 110 ms of CPU time, and code
 * that a root process should not load.
 *
 * @type {import("esbuild").Plugin}
 */
const leanDockerode = {
  name: "lean-dockerode",
  setup(builder) {
    const empty = { path: "nothing", namespace: "nothing" };
    builder.onResolve({ filter: /^\./ }, ({ path, importer }) =>
      importer.endsWith("/dockerode/lib/docker.js") || (path === "./ssh" && importer.includes("/docker-modem/"))
        ? empty
        : undefined,
    );
    // A copy of Node's streams for older versions.
    builder.onResolve({ filter: /^readable-stream$/ }, () => ({ path: "node:stream", external: true }));
    builder.onLoad({ filter: /.*/, namespace: "nothing" }, () => ({ contents: "" }));
  },
};

/**
 * Leaves out of the thread that reads settings what a run opens, which is four fifths of it: the thread is started for each file, and
 * loading it is most of what that takes. The settings of each feature are in its descriptor, which imports all else when it is asked for:
 * of that the thread needs what reads a part of the settings file (`file`), or the files of a folder (`reader`).
 *
 * @type {import("esbuild").Plugin}
 */
const onlySettings = {
  name: "only-settings",
  setup(builder) {
    builder.onResolve({ filter: /.*/ }, ({ path, kind, importer }) =>
      kind === "dynamic-import" && !isReader(importer, path) ? { path, external: true } : undefined,
    );
    // It writes no log, and of the log only the names of its levels are in the settings.
    builder.onResolve({ filter: /^pino$/ }, () => ({ path: "pino", namespace: "no-log" }));
    builder.onLoad({ filter: /.*/, namespace: "no-log" }, () => ({ contents: "export const pino = undefined;" }));
  },
};

/** @param {string} importer @param {string} path */
function isReader(importer, path) {
  const text = readFileSync(importer, "utf8");
  return ["file", "reader"].some((key) => text.includes(`${key}: async () => await import("${path}")`));
}

/**
 * Makes few and large chunks. esbuild makes one for each set of entries that reach the same modules, and whatever is imported on demand
 * is an entry: `dns11 run` was 215 chunks, and linking them more work than compiling. So what is always loaded together is one entry;
 * and as the command line is there before anything is loaded on demand, each entry imports it, and the modules of the command line
 * are in one chunk.
 *
 * @type {import("esbuild").Plugin}
 */
const fewChunks = {
  name: "few-chunks",
  setup(builder) {
    const groups = groupsOfEntries();
    builder.onLoad({ filter: /\/(?:cmd|src)\/.*\.ts$/, namespace: "file" }, ({ path }) => {
      // They load the command line itself, and before that they look whether this Node can.
      if (/\/(?:dns11|docker-dns)\.ts$/.test(path)) return undefined;
      const contents = readFileSync(path, "utf8").replaceAll(/\bimport\("(\.[^"]+)"\)/g, (_, relative) => {
        const file = resolve(dirname(path), relative);
        const [name] = [...groups].find(([, files]) => files.has(file)) ?? [];
        return name === undefined
          ? `import("entry:${file}")`
          : `import("entry:${name}").then((all) => all.${exportOf(file)})`;
      });
      return { contents, loader: "ts" };
    });
    builder.onResolve({ filter: /^entry:/ }, ({ path }) => ({ path: path.slice("entry:".length), namespace: "entry" }));
    builder.onLoad({ filter: /.*/, namespace: "entry" }, ({ path }) => {
      const files = groups.get(path);
      const exported =
        files === undefined
          ? [`export * from "${path}";`]
          : [...files].map((file) => `export * as ${exportOf(file)} from "${file}";`);
      return { contents: ['import "./cmd/program.ts";', ...exported].join("\n"), resolveDir: process.cwd() };
    });
  },
};

/** Those of features, which may be none. @param {string} folder @param {string} end */
function filesIn(folder, end) {
  const names = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(end));
  return names.map((name) => `${folder}/${name}`);
}

/** Files that are loaded together, by a name for them. */
function groupsOfEntries() {
  const run = new Set([resolve("cmd/modules/host-modules.ts")]);
  /** @type {Set<string>} */
  const report = new Set();
  /** @type {Set<string>} */
  const command = new Set();
  for (const [, path = ""] of readFileSync("src/features.ts", "utf8").matchAll(/ from "(.*)";$/gm)) {
    const file = resolve("src", path);
    for (const [line, relative = ""] of readFileSync(file, "utf8").matchAll(/^.*\bimport\("(\.[^"]+)"\).*$/gm)) {
      const loaded = resolve(dirname(file), relative);
      if (line.startsWith("  load:")) run.add(loaded);
      else if (line.startsWith("  report:")) report.add(loaded);
      else if (line.includes("{ group: ")) command.add(loaded);
    }
  }
  return new Map(Object.entries({ run, report, command }));
}

/** @param {string} file */
function exportOf(file) {
  return `of_${file.slice(process.cwd().length + 1).replaceAll(/\W/g, "_")}`;
}

/**
 * Shortens the names inside of packages: V8 keeps the text of what it runs.
 *
 * @type {import("esbuild").Plugin}
 */
const shortNames = {
  name: "short-names",
  setup(builder) {
    builder.onLoad({ filter: /\/node_modules\/.*\.[cm]?js$/ }, async ({ path }) => ({
      contents: (await transform(readFileSync(path, "utf8"), { minifyIdentifiers: true })).code,
    }));
  },
};

/** @type {import("esbuild").BuildOptions} */
const options = {
  entryNames: "[name]",
  outdir: "dist/cmd",
  bundle: true,
  format: "esm",
  platform: "node",
  target: "node20",
  external: Object.keys(dependencies).filter((name) => !BUNDLED.has(name)),
  // For the packages that are CommonJS.
  banner: {
    js: 'import { createRequire as requireOf } from "node:module";\nconst require = requireOf(import.meta.url);',
  },
  // V8 keeps indentation and comments as well. Our own names stay, for the stacks of errors.
  minifyWhitespace: true,
  minifySyntax: true,
  lineLimit: 120,
  plugins: [requireNative, leanDockerode, shortNames],
  sourcemap: true,
  logLevel: "warning",
};

await Promise.all([
  // What only some commands need is loaded only by those.
  build({
    ...options,
    entryPoints: ["./cmd/dns11.ts", "./cmd/docker-dns.ts"],
    plugins: [fewChunks, ...(options.plugins ?? [])],
    splitting: true,
  }),
  // These run in a process or a thread of their own, and share nothing with the program.
  build({
    ...options,
    entryPoints: ["src/keeper/keeper-main.ts", ...filesIn("src/features", "-main.ts")],
  }),
  // Unit tests start this one where it was compiled, which is 300 modules for each file that they read.
  ...["dist/cmd", "dist/src/config/file"].map((outdir) =>
    build({
      ...options,
      entryPoints: ["./src/config/file/worker-main.ts"],
      plugins: [onlySettings, ...(options.plugins ?? [])],
      outdir,
    }),
  ),
  // Servers and clients of the tests, of which a run starts hundreds; and what is alone in a machine.
  build({
    ...options,
    entryPoints: ["client", "rig", "scripted", "servers"]
      .map((folder) => `./test/support/${folder}/*-main.ts`)
      .concat("./test/docker/**/*-main.ts", "./test/hostile/**/*-main.ts", filesIn("test/features", "/bare-main.ts")),
    entryNames: "[dir]/[name]",
    outbase: "test",
    outdir: "dist/test",
  }),
]);

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
  // The license of preact, which is bundled.
  banner: { js: `/*!\npreact\n\n${readFileSync("node_modules/preact/LICENSE", "utf8")}*/` },
  logLevel: "warning",
});
for (const name of ["index.html", "icon.svg"]) cpSync(`${PAGE}/${name}`, `dist/ui/${name}`);
