// @ts-check
/**
 * Counts the house: files, lines, declarations, and what each feature has. `make house` prints it; the figures describe the code and are
 * no targets. That nothing but the list imports a feature is a test (test/tidy.test.ts).
 */
import { readFileSync, readdirSync } from "node:fs";
import { dirname, join, normalize } from "node:path";

const FOLDERS = ["src", "cmd"];
const SMALL_LINES = 30;

const files = FOLDERS.flatMap(filesBelow).map(read);

/** @param {string} folder */
function filesBelow(folder) {
  return readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((name) => /\.tsx?$/.test(name))
    .map((name) => join(folder, name));
}

/** @param {string} text */
function linesOf(text) {
  return text.split("\n").length - 1;
}

/** @param {string} path */
function read(path) {
  const text = readFileSync(path, "utf8");
  const exported = [...text.matchAll(/^export (?:async )?(?:const|let|function|class|interface|type) (\w+)/gm)];
  /** @type {[string, string][]} The name, and the file that it is imported from. */
  const imported = [...text.matchAll(/^(?:import|export) (?:type )?\{([^}]*)\} from "(\.[^"]+)"/gm)].flatMap(
    ([, names = "", from = ""]) =>
      names
        .split(",")
        .map(
          (name) =>
            name
              .trim()
              .replace(/^type /, "")
              .split(" as ")[0] ?? "",
        )
        .filter((name) => name !== "")
        .map((name) => /** @type {[string, string]} */ ([name, normalize(join(dirname(path), from))])),
  );
  const wholes = [...text.matchAll(/^import \* as \w+ from "(\.[^"]+)"/gm)].map(([, from = ""]) =>
    normalize(join(dirname(path), from)),
  );
  const loaded = [...text.matchAll(/import\("(\.[^"]+)"\)/g)].map(([, from = ""]) =>
    normalize(join(dirname(path), from)),
  );
  return {
    path,
    lines: linesOf(text),
    interfaces: [...text.matchAll(/^(?:export )?interface /gm)].length,
    classes: [...text.matchAll(/^(?:export )?class /gm)].length,
    exports: exported.map(([, name = ""]) => name),
    imported,
    /** Files of which all exports are imported, as one object. */
    wholes,
    targets: new Set([...imported.map(([, from]) => from), ...wholes, ...loaded]),
  };
}

/** @type {Map<string, number>} Other files that import it, by file and name. */
const users = new Map();
for (const { imported } of files) for (const [name, from] of imported) add(`${from} ${name}`);
const wholes = new Set(files.flatMap((file) => file.wholes));
/** @type {Map<string, number>} Files that import it. */
const importers = new Map();
for (const { targets } of files) for (const target of targets) importers.set(target, (importers.get(target) ?? 0) + 1);

/** @param {string} key */
function add(key) {
  users.set(key, (users.get(key) ?? 0) + 1);
}

/** @param {(file: (typeof files)[number]) => number} count */
const sum = (count) => files.reduce((total, file) => total + count(file), 0);
/** @param {number} times */
const exportsUsed = (times) =>
  sum(({ path, exports }) =>
    wholes.has(path) ? 0 : exports.filter((name) => (users.get(`${path} ${name}`) ?? 0) === times).length,
  );
const sorted = files.map(({ lines }) => lines).toSorted((a, b) => a - b);

const FEATURES = "src/features";
/** What is a room beside the core, or a feature. */
const BESIDE = ["cmd/", "src/ui/", "src/action/", `${FEATURES}/`];
const core = files.filter(({ path }) => !BESIDE.some((start) => path.startsWith(start)));
/** The features that use a file of the core, where nothing else does. @type {Map<string, Set<string>>} */
const owners = new Map();
let known = -1;
while (known < owners.size) {
  known = owners.size;
  for (const { path } of core) {
    const using = files.filter(({ targets }) => targets.has(path));
    const of = using.flatMap((user) => [...(owners.get(user.path) ?? [featureOf(user.path)])]);
    if (of.length > 0 && !of.includes("")) owners.set(path, new Set(of));
  }
}

/** @param {string} path */
function featureOf(path) {
  return path.startsWith(`${FEATURES}/`) ? (path.split("/")[2] ?? "") : "";
}

/** @param {(file: (typeof files)[number]) => boolean} isCounted */
function coreLines(isCounted) {
  return core.filter(isCounted).reduce((total, { lines }) => total + lines, 0);
}

const rows = {
  "files, lines of src and cmd": `${files.length}, ${sum(({ lines }) => lines)}`,
  "median lines of a file": sorted[Math.floor(sorted.length / 2)],
  [`files of ${SMALL_LINES} lines or fewer`]: sorted.filter((lines) => lines <= SMALL_LINES).length,
  "lines of the core, without cmd, ui and action": coreLines(() => true),
  "of these, without its reports (control, doctor, metrics, api)": coreLines(
    ({ path }) => !/^src\/(?:control|doctor|metrics|api)\//.test(path),
  ),
  "of these, used by one feature alone; by some": `${coreLines(({ path }) => owners.get(path)?.size === 1)}; ${coreLines(({ path }) => (owners.get(path)?.size ?? 0) > 1)}`,
  "files that one other imports": files.filter(({ path }) => importers.get(path) === 1).length,
  "interfaces, classes": `${sum((file) => file.interfaces)}, ${sum((file) => file.classes)}`,
  "exports; used by no other file here, by one": `${sum((file) => file.exports.length)}; ${exportsUsed(0)}, ${exportsUsed(1)}`,
};
for (const [what, figure] of Object.entries(rows)) console.log(`${what.padEnd(62)} ${figure}`);

console.log("\nfeature         files  lines  lines of its tests");
for (const { name } of readdirSync(FEATURES, { withFileTypes: true }).filter((each) => each.isDirectory())) {
  const own = files.filter(({ path }) => path.startsWith(`${FEATURES}/${name}/`));
  const lines = own.reduce((total, file) => total + file.lines, 0);
  const tests = filesBelow(`test/features/${name}`).reduce(
    (total, path) => total + linesOf(readFileSync(path, "utf8")),
    0,
  );
  console.log(
    `${name.padEnd(15)} ${String(own.length).padStart(5)}  ${String(lines).padStart(5)}  ${String(tests).padStart(5)}`,
  );
}
