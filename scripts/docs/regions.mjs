// @ts-check
/**
 * Regions: the parts of the documents that scripts write, each between two comments: `<!-- generated: NAME -->` and
 * `<!-- end: NAME -->`. `captured` instead of `generated` marks output of a real run, `measured` figures of the bench.
 */
import { spawnSync } from "node:child_process";
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";

/** Every document. @returns {string[]} */
function documents() {
  const pages = readdirSync("docs", { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(".md"));
  return [
    "README.md",
    "ARCHITECTURE.md",
    "SECURITY.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    ...pages.map((name) => join("docs", name)),
  ];
}

/**
 * The documents that change where each region of a name in `contents` holds that text, with their new text.
 * @param {"generated" | "captured" | "measured"} kind @param {Readonly<Record<string, string>>} contents @param {(text: string) => string} format
 * @returns {Map<string, string>}
 */
export function changedDocuments(kind, contents, format) {
  const left = new Set(Object.keys(contents));
  /** @type {Map<string, string>} */
  const changed = new Map();
  for (const path of documents()) {
    const before = readFileSync(path, "utf8");
    const replaced = before.replaceAll(pattern(kind), (region, /** @type {string} */ name) => {
      const text = contents[name];
      if (text === undefined) return region;
      left.delete(name);
      return `<!-- ${kind}: ${name} -->\n\n${text.trim()}\n\n<!-- end: ${name} -->`;
    });
    const after = replaced === before ? before : format(replaced);
    if (after !== before) changed.set(path, after);
  }
  if (left.size > 0) throw new Error(`no document has a region ${kind}: ${[...left].join(", ")}`);
  return changed;
}

/** As `make check` wants it. @param {string} text @returns {string} */
export function formatted(text) {
  return must("node_modules/.bin/oxfmt", ["--stdin-filepath", "document.md"], text);
}

/** What a command prints; without it there is nothing to write. @param {string} command @param {readonly string[]} args @param {string} [input] @returns {string} */
export function must(command, args, input) {
  const { status, stdout, stderr, error } = spawnSync(command, args, { encoding: "utf8", input });
  if (status !== 0) throw new Error(`${command} ${args.join(" ")}: ${error?.message ?? stderr}`);
  return stdout;
}

/** @param {string} kind */
function pattern(kind) {
  return new RegExp(`<!-- ${kind}: ([a-z-]+) -->[\\s\\S]*?<!-- end: \\1 -->`, "g");
}
