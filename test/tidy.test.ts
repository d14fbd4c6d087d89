/**
 * Rules of the source tree as tests: which layer may import which, and what every file looks like. ARCHITECTURE.md has the
 * drawing.
 */
import assert from "node:assert/strict";
import { existsSync, readFileSync, readdirSync } from "node:fs";
import { dirname, join, normalize } from "node:path";
import { test } from "node:test";

/** The layers, from the bottom up: a folder imports its own layer and those below it. */
const LAYERS: readonly (readonly (string | RegExp)[])[] = [
  ["src/base"],
  // System calls; what the control socket promises.
  ["src/kernel", "src/api"],
  // The list of features, which says of each what is known without its code.
  ["src/config", "src/features.ts", /^src\/features\/[^/]+\/(?:feature\.ts$|model\/)/],
  // The two sides, and the process that outlives them. They do not import each other.
  ["src/query", "src/container", "src/keeper"],
  // What a run says of itself.
  ["src/control", "src/metrics"],
  ["src/features"],
  // Programs beside a run: clients of the control socket.
  ["src/doctor", "src/ui", "src/action"],
  ["src/run"],
  ["cmd", /^src\/features\/.+\/command\.ts$/],
];

/** Programs and clients that know little of the rest, whatever their layer: what they import besides their own files. */
const ALONE: Readonly<Record<string, readonly string[]>> = {
  "src/kernel": ["src/base"],
  "src/api": ["src/base"],
  "src/features/policy/model": ["src/base"],
  "src/features/policy/judge": ["src/base", "src/features/policy/model"],
  "src/keeper": ["src/base", "src/kernel"],
  "src/metrics": ["src/base", "src/api", "src/query/record"],
  "src/control/causes": ["src/base", "src/api", "src/container"],
  "src/ui/page": ["src/base", "src/api"],
  "src/action": ["src/base", "src/api"],
};

const IMPORT = /(?:^import\s[^"]*?|^} from |^export .* from )"([^"]+)"/gm;
const IMPORT_OR_LOAD = /(?:^import\s[^"]*?|^} from |^export .* from |import\()"([^"]+)"/gm;

/** Neither on demand nor for a type alone. */
const LOADED_AT_ONCE = /^(?:import|export)\s+(?!type\b)(?:[^;"]*?\bfrom\s+)?"([^"]+)";/gm;

const SOURCES = [...sources("src"), ...sources("cmd")];

const LINES_MAX = 700;
/** Folders with a list that is easier to find in one place: every limit has its reason beside it. */
const LONG_LISTS: ReadonlySet<string> = new Set(["src/base"]);

test("every file is in a layer, and imports nothing from a layer above it", () => {
  const broken = SOURCES.flatMap(({ path, targets }) =>
    targets.filter((target) => layerOf(target) > layerOf(path)).map((target) => `${path} imports ${target}`),
  );
  assert.deepEqual(broken, []);
});

test("only the list of features names a feature", () => {
  const featureOf = (path: string): string | undefined => /^src\/features\/([^/]+)\//.exec(path)?.[1];
  const broken = SOURCES.flatMap(({ path, targets }) =>
    targets
      .filter((target) => featureOf(target) !== undefined && featureOf(target) !== featureOf(path))
      .filter((target) => path !== "src/features.ts" || !target.endsWith("/feature.ts"))
      .map((target) => `${path} imports ${target}`),
  );
  assert.deepEqual(broken, []);
});

test("programs and clients that stand alone import what they may", () => {
  const broken = Object.entries(ALONE).flatMap(([folder, others]) =>
    SOURCES.filter(({ path }) => isIn(folder, path)).flatMap(({ path, targets }) =>
      targets
        .filter((target) => ![folder, ...others].some((each) => isIn(each, target)))
        .map((target) => `${path} imports ${target}`),
    ),
  );
  assert.deepEqual(broken, []);
});

test("there are no import cycles of files, including types", () => {
  assert.deepEqual(cyclic(new Map(SOURCES.map(({ path, targets }) => [path, new Set(targets)]))), []);
});

test("there are no import cycles of the folders in a folder, at any level", () => {
  const levels = new Map<string, Map<string, Set<string>>>();
  for (const { path, targets } of SOURCES) {
    // The command of a feature belongs to the commands.
    if (path.endsWith("/command.ts")) continue;
    for (const target of targets) {
      const [from, to] = [path.split("/"), target.split("/")];
      const depth = from.findIndex((part, index) => part !== to[index]);
      // A file beside the folders composes them, or is what they have in common.
      if (depth === from.length - 1 || depth === to.length - 1) continue;
      const level = from.slice(0, depth).join("/");
      const folders = levels.get(level) ?? new Map<string, Set<string>>();
      levels.set(level, folders);
      const [folder, other] = [from[depth] ?? "", to[depth] ?? ""];
      folders.set(folder, (folders.get(folder) ?? new Set()).add(other));
    }
  }
  assert.ok(levels.size > 5);
  const broken = [...levels].flatMap(([level, folders]) => cyclic(folders).map((folder) => `${level}/${folder}`));
  assert.deepEqual(broken, []);
});

/** What imports a cycle, or is part of one: what remains when all that imports nothing, or only what is gone, is gone. */
function cyclic(graph: ReadonlyMap<string, ReadonlySet<string>>): string[] {
  const imports = new Map(graph);
  for (let before = -1; before !== imports.size;) {
    before = imports.size;
    for (const [name, targets] of imports) if (![...targets].some((each) => imports.has(each))) imports.delete(name);
  }
  // What no remaining one imports is not part of a cycle either.
  for (let before = -1; before !== imports.size;) {
    before = imports.size;
    const imported = new Set([...imports.values()].flatMap((targets) => [...targets]));
    for (const name of imports.keys()) if (!imported.has(name)) imports.delete(name);
  }
  return [...imports.keys()];
}

test("what every command loads brings one package, the parser of command lines", () => {
  const loaded = new Set(["cmd/program.ts"]);
  const packages = new Set<string>();
  for (const path of loaded) {
    for (const [, specifier = ""] of readFileSync(path, "utf8").matchAll(LOADED_AT_ONCE)) {
      if (specifier.startsWith(".")) loaded.add(normalize(join(dirname(path), specifier)));
      else if (!specifier.startsWith("node:")) packages.add(specifier);
    }
  }
  assert.ok(loaded.size > 50);
  assert.deepEqual([...packages], ["commander"]);
});

test("the query side and the container side do not import each other", () => {
  const sideOf = (path: string): string | undefined => /^src\/(?:query|container)\b/.exec(path)?.[0];
  const crossing = SOURCES.flatMap(({ path, targets }) =>
    targets
      .filter((target) => sideOf(path) !== undefined && ![undefined, sideOf(path)].includes(sideOf(target)))
      .map((target) => `${path} -> ${target}`),
  );
  assert.deepEqual(crossing, []);
});

/**
 * Folders whose code opens or reads files directly, and why a container never controls the path. All others use
 * kernel/regular-file.ts (checked before, opened without blocking) or kernel/proc-text.ts (bounded reads).
 */
const OPENERS = new Map([
  ["src/kernel", "the common implementation; files under /proc about our own processes; /dev/null"],
  ["src/features/kernel-answers/kernel", "this thread's namespace"],
  [
    "src/action",
    "files of the step's own folder, of its checkout, and the policies that it names; the state of its processes under /proc",
  ],
  ["src/api", "settings of the user who started dns11"],
  ["src/api/lab", "a file of the test suite that uses the client"],
  ["src/container/files", "dns11's own folder; with O_PATH; the resolv.conf of a container, by regular-file.ts"],
  [
    "src/container/namespace",
    "namespaces; paths of the engine and of a container's root, by regular-file.ts, or openat2 within it",
  ],
  ["src/container/watch", "with O_PATH"],
  ["src/control/server", "/etc/group; files under /proc about clients of the control socket"],
  ["src/doctor", "the engine's socket; dns11's own folder"],
  ["src/doctor/bundle", "a new file at the path that the user gives, with O_EXCL; the kernel's release under /proc"],
  ["src/features/default-bridge", "for a watch, by regular-file.ts"],
  ["src/features/kind", "this thread's namespace; files of a node, by regular-file.ts"],
  ["src/features/mdns", "sockets of programs of the engine's host, with O_PATH, which are connected to and not opened"],
  ["src/features/listener", "the resolv.conf of a guest, by regular-file.ts"],
  ["src/features/search", "the resolv.conf that Docker made for a container, by regular-file.ts"],
  ["src/features/policy/leases", "dns11's own folder, by regular-file.ts; a file that the user gives"],
  ["src/keeper", "/dev/null"],
  ["src/features/host-names", "the TUN device below the engine's root, which is the host's"],
  ["src/metrics", "files of this process"],
  ["src/features/policy/boot", "dns11's own folder, by regular-file.ts"],
  ["src/query/upstream", "the file of authorities, the machine's or the operator's, by regular-file.ts"],
  ["src/run", "files of the package; dns11's own folder"],
  ["src/run/node", "this thread's namespace"],
  ["src/run/quarantine", "dns11's own folder"],
  ["src/ui/server", "files of the package"],
  ["src/ui/snapshot", "the user's own folder, with O_EXCL"],
  ["cmd/process", "files of the package"],
]);
const OPENING = /(?:^|[^.#\w])(?:openSync|readFileSync|readSync|openInRoot|createReadStream|readFile|openAsBlob)\(/m;

test("the list of folders that open files directly is complete and current", () => {
  const opening = new Set(
    SOURCES.filter(({ text }) => OPENING.test(text.replaceAll(/^import .*$/gm, ""))).map(({ path }) => dirname(path)),
  );
  // A feature that is taken out leaves its rows.
  const listed = [...OPENERS.keys()].filter((folder) => !folder.startsWith("src/features/") || existsSync(folder));
  assert.deepEqual([...opening].toSorted(), listed.toSorted());
});

/**
 * What src/base/dns defines: the layout of a DNS message and the meaning of its numbers. Defining one of these
 * elsewhere would duplicate it.
 */
const SECOND_VOCABULARY: readonly RegExp[] = [
  /\b(?:HEADER_BYTES|QUESTION_\w*BYTES|RECORD_\w*BYTES|OPT_BYTES|MESSAGE_BYTES_MAX|NAME_BYTES_MAX|OUR_UDP_BYTES) = /,
  /\b(?:TYPE|CLASS|RCODE|OPCODE|OPTION)_(?!AT\b)[A-Z]+ = (?:0x)?\d/,
  /const (?:TYPES?|RCODES?|CLASS|OPCODE|OPTION) = (?:\{|\[\d|new )/,
  /function (?:read|write|set)?[uU](?:int)?(?:16|32)\(/,
];
/** Where messages are read and written, src/base/dns reads the numbers, and masks have names. */
const RAW_BYTES = /\b(?:read|write)UInt(?:16|32)BE\(|0xc0\b|0x3f\b|& 0x(?:0?f|f0)\b|& 15\b/;
const ON_MESSAGES = /^src\/(?:query\/(?!listen)|base\/model\/(?!address))/;

test("DNS message formats are defined only in src/base/dns", () => {
  // The kernel's program has messages of its own in its tables.
  const defining = ["src/base/dns/", "src/kernel/", "src/features/kernel-answers/kernel/"];
  const second = SOURCES.filter(({ path }) => !defining.some((folder) => path.startsWith(folder))).flatMap(
    ({ path, text }) =>
      [...SECOND_VOCABULARY, ...(ON_MESSAGES.test(path) ? [RAW_BYTES] : [])]
        .map((pattern) => pattern.exec(text)?.[0])
        .filter((found) => found !== undefined)
        .map((found) => `${path}: ${found}`),
  );
  assert.deepEqual(second, []);
});

test("commands print JSON with jsonLine, which escapes control characters", () => {
  const own = SOURCES.filter(
    ({ path, text }) => path.startsWith("cmd/") && /JSON\.stringify\([^`]*\)\}\\n`/.test(text),
  ).map(({ path }) => path);
  // What docker asks its plugin about, in which nothing is from outside.
  assert.deepEqual(own, ["cmd/docker-dns.ts"]);
});

/** Settings on the side of dns11, and tapes in the test suites that use its client. */
const YAML = "yaml";

test("every runtime package is imported by one folder only", () => {
  const { dependencies } = JSON.parse(readFileSync("package.json", "utf8")) as { dependencies: Record<string, string> };
  for (const name of Object.keys(dependencies)) {
    const folders = new Set(
      SOURCES.filter(({ packages }) => packages.some((each) => each === name || each.startsWith(`${name}/`))).map(
        // The command of a feature belongs to the commands.
        ({ path }) => (path.endsWith("/command.ts") ? "cmd" : dirname(path)),
      ),
    );
    // A subfolder belongs to its folder.
    const outermost = [...folders].filter((folder) => ![...folders].some((other) => folder.startsWith(`${other}/`)));
    assert.ok(outermost.length === 1 || name === YAML, `${name} is imported by ${list([...folders])}`);
  }
});

test("every import names a file that exists", () => {
  const missing = SOURCES.flatMap(({ path, targets }) =>
    targets.filter((target) => !/\.tsx?$/.test(target) || !existsSync(target)).map((target) => `${path}: ${target}`),
  );
  assert.deepEqual(missing, []);
});

test("every file can be read in one sitting", () => {
  for (const { path, text } of [...SOURCES, ...sources("test/support")]) {
    if (LONG_LISTS.has(dirname(path))) continue;
    assert.ok(text.split("\n").length <= LINES_MAX, `${path} has over ${LINES_MAX} lines`);
  }
});

test("the top level contains only the expected files", () => {
  const allowed = [
    "cmd",
    "src",
    "test",
    "scripts",
    "docs",
    "package.json",
    "package-lock.json",
    "tsconfig.json",
    "Makefile",
  ];
  const documents = ["README.md", "ARCHITECTURE.md", "CHANGELOG.md", "SECURITY.md", "CONTRIBUTING.md", "LICENSE"];
  const made = ["node_modules", "dist"];
  const others = readdirSync(".").filter(
    (name) => !name.startsWith(".") && ![...allowed, ...documents, ...made].includes(name),
  );
  assert.deepEqual(others, []);
});

interface Source {
  readonly path: string;
  readonly text: string;
  /** The files that it imports, also for their types, and the modules and packages. */
  readonly targets: readonly string[];
  readonly packages: readonly string[];
}

function sources(folder: string): Source[] {
  return readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((file) => /\.tsx?$/.test(file))
    .map((file) => {
      const path = join(folder, file);
      const text = readFileSync(path, "utf8");
      // What a feature's entry in the list loads later is not imported by the list.
      const pattern = path.endsWith("/feature.ts") ? IMPORT : IMPORT_OR_LOAD;
      const imports = [...text.matchAll(pattern)].map(([, specifier = ""]) => specifier);
      const isOwn = (specifier: string): boolean => specifier.startsWith(".");
      return {
        path,
        text,
        targets: imports.filter(isOwn).map((specifier) => normalize(join(dirname(path), specifier))),
        packages: imports.filter((specifier) => !isOwn(specifier)),
      };
    });
}

function layerOf(path: string): number {
  const isOf = (each: string | RegExp): boolean => (typeof each === "string" ? isIn(each, path) : each.test(path));
  // A single file counts before its folder.
  const exact = LAYERS.findIndex((parts) => parts.some((each) => typeof each !== "string" && isOf(each)));
  const layer = exact === -1 ? LAYERS.findIndex((parts) => parts.some(isOf)) : exact;
  assert.notEqual(layer, -1, `${path} is in no layer`);
  return layer;
}

function isIn(folder: string, path: string): boolean {
  return path === folder || path.startsWith(`${folder}/`);
}

function list(items: readonly string[]): string {
  return items.length === 0 ? "nothing" : items.join(", ");
}
