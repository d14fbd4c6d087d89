// @ts-check
/**
 * Counts the house: files, lines, declarations, and for each feature what knows of it besides its folder. `make house` prints it; the
 * figures describe the code and are no targets.
 */
import { readFileSync, readdirSync } from "node:fs";
import { dirname, join, normalize } from "node:path";

const FOLDERS = ["src", "cmd"];
const SMALL_LINES = 30;

const files = FOLDERS.flatMap((folder) =>
  readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((name) => /\.tsx?$/.test(name))
    .map((name) => read(join(folder, name))),
);

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
  const loaded = [...text.matchAll(/import\("(\.[^"]+)"\)/g)].map(([, from = ""]) =>
    normalize(join(dirname(path), from)),
  );
  return {
    path,
    lines: text.split("\n").length - 1,
    interfaces: [...text.matchAll(/^(?:export )?interface /gm)].length,
    classes: [...text.matchAll(/^(?:export )?class /gm)].length,
    exports: exported.map(([, name = ""]) => name),
    imported,
    targets: new Set([...imported.map(([, from]) => from), ...loaded]),
    text,
  };
}

/** @type {Map<string, number>} Other files that import it, by file and name. */
const users = new Map();
for (const { imported } of files) for (const [name, from] of imported) add(`${from} ${name}`);
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
  sum(({ path, exports }) => exports.filter((name) => (users.get(`${path} ${name}`) ?? 0) === times).length);
const sorted = files.map(({ lines }) => lines).toSorted((a, b) => a - b);

const rows = {
  "files, lines of src and cmd": `${files.length}, ${sum(({ lines }) => lines)}`,
  "median lines of a file": sorted[Math.floor(sorted.length / 2)],
  [`files of ${SMALL_LINES} lines or fewer`]: sorted.filter((lines) => lines <= SMALL_LINES).length,
  "files that one other imports": files.filter(({ path }) => importers.get(path) === 1).length,
  "interfaces, classes": `${sum((file) => file.interfaces)}, ${sum((file) => file.classes)}`,
  "exports; used by no other file here, by one": `${sum((file) => file.exports.length)}; ${exportsUsed(0)}, ${exportsUsed(1)}`,
};
for (const [what, figure] of Object.entries(rows)) console.log(`${what.padEnd(46)} ${figure}`);

const FEATURES = "src/features";
console.log(
  "\nfeature        files  lines  files elsewhere that name it (reports and types of the API, causes, documents' words)",
);
for (const name of readdirSync(FEATURES, { withFileTypes: true }).filter((each) => each.isDirectory())) {
  const own = files.filter(({ path }) => path.startsWith(`${FEATURES}/${name.name}/`));
  const lines = own.reduce((total, file) => total + file.lines, 0);
  // As a word, also within a longer name: not the "lan" of a plan, nor an event's listener.
  const capital =
    name.name[0]?.toUpperCase() + name.name.slice(1).replaceAll(/-(.)/g, (_, letter) => letter.toUpperCase());
  const camel = (capital[0]?.toLowerCase() ?? "") + capital.slice(1);
  const word = new RegExp(`["'/. ]${name.name}["'/.-]|(?<![A-Za-z])(?:${camel}|${capital})(?![a-z])`);
  const others = files.filter(({ path, text }) => !path.startsWith(`${FEATURES}/${name.name}/`) && word.test(text));
  console.log(
    `${name.name.padEnd(14)} ${String(own.length).padStart(5)}  ${String(lines).padStart(5)}  ${others.map(({ path }) => path).join(" ")}`,
  );
}
