// @ts-check
/**
 * Compiles the eBPF program of src/features/kernel-answers/kernel and writes its instructions into program.ts, or with --check compares
 * them. The same clang makes the same instructions; another version may not, so then only the hash of the source is
 * compared, and said so. Needs clang 14 and the headers of libbpf at development time only.
 */
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const FOLDER = join(import.meta.dirname, "../src/features/kernel-answers/kernel");
const SOURCE = join(FOLDER, "answers.bpf.c");
const OUTPUT = join(FOLDER, "program.ts");
const COMPILER = { command: "clang", version: 14 };
/** The section of the program, and of its places that refer to maps. */
const [CODE, REFERENCES] = ["tc", ".reltc"];
const LINE_CHARACTERS = 96;

const isCheck = process.argv.includes("--check");
const sourceHash = createHash("sha256").update(readFileSync(SOURCE)).digest("hex");
const problem = missingCompiler();
if (problem === undefined) {
  const text = moduleText(compiled());
  if (!isCheck) writeFileSync(OUTPUT, text);
  else if (readFileSync(OUTPUT, "utf8") === text) console.log("program.ts is what clang makes of answers.bpf.c");
  else fail("program.ts is not what clang makes of answers.bpf.c. Run: node scripts/kernel-program.mjs");
} else if (!isCheck) fail(problem);
else if (readFileSync(OUTPUT, "utf8").includes(sourceHash))
  console.log(`program.ts names this source; its instructions were not compared: ${problem}`);
else fail(`answers.bpf.c has changed since program.ts was made. ${problem}`);

/** @returns {string | undefined} why there is no compiler that makes the same instructions */
function missingCompiler() {
  const { status, stdout } = spawnSync(COMPILER.command, ["--version"], { encoding: "utf8" });
  const wanted = `Install clang ${COMPILER.version} and libbpf-dev, as in Debian 12.`;
  if (status !== 0) return `There is no clang. ${wanted}`;
  const version = Number(/version (\d+)/.exec(stdout)?.[1]);
  return version === COMPILER.version ? undefined : `This clang is of version ${version}. ${wanted}`;
}

/** @returns {Buffer} the object file */
function compiled() {
  const folder = mkdtempSync(join(tmpdir(), "dns11-program-"));
  try {
    const object = join(folder, "answers.o");
    const triplet = spawnSync("clang", ["-print-multiarch"], { encoding: "utf8" }).stdout.trim() || "x86_64-linux-gnu";
    const flags = ["-O2", "-target", "bpf", "-mcpu=v3", "-g0", "-Wall", "-Werror", `-I/usr/include/${triplet}`];
    const { status, stderr } = spawnSync("clang", [...flags, "-c", SOURCE, "-o", object], { encoding: "utf8" });
    if (status !== 0) fail(`clang failed:\n${stderr}`);
    return readFileSync(object);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** @param {Buffer} object */
function moduleText(object) {
  const { instructions, references } = partsOf(object);
  const lines = instructions.toString("base64").match(new RegExp(`.{1,${LINE_CHARACTERS}}`, "g")) ?? [];
  return `/**
 * The eBPF program of answers.bpf.c as instructions, made by scripts/kernel-program.mjs. Do not edit; \`make check\` compares
 * it with its source, whose SHA-256 is
 * ${sourceHash}.
 */

/** Instructions that load the address of a map, by index. */
export const MAP_REFERENCES: readonly (readonly [
  instruction: number,
  map: "answers" | "brief" | "counts" | "spaces",
])[] = [
${references.map(([at, map]) => `  [${at}, "${map}"],`).join("\n")}
];

export const INSTRUCTIONS =
${lines.map((line) => `  "${line}"`).join(" +\n")};
`;
}

/**
 * Reads the two sections of a 64-bit little-endian ELF file.
 * @param {Buffer} elf
 */
function partsOf(elf) {
  const tableAt = Number(elf.readBigUInt64LE(0x28));
  const [entryBytes, count, namesIndex] = [elf.readUInt16LE(0x3a), elf.readUInt16LE(0x3c), elf.readUInt16LE(0x3e)];
  const sections = Array.from({ length: count }, (_, index) => {
    const at = tableAt + index * entryBytes;
    const from = Number(elf.readBigUInt64LE(at + 24));
    const bytes = elf.subarray(from, from + Number(elf.readBigUInt64LE(at + 32)));
    return { nameAt: elf.readUInt32LE(at), bytes, link: elf.readUInt32LE(at + 40) };
  });
  /** @param {number} index @param {number} at */
  const textAt = (index, at) => {
    const bytes = sections[index]?.bytes ?? elf;
    return bytes.toString("latin1", at, bytes.indexOf(0, at));
  };
  /** @param {string} name */
  const section = (name) => {
    const found = sections.find(({ nameAt }) => textAt(namesIndex, nameAt) === name);
    if (found === undefined) throw new Error(`The object file has no section ${name}`);
    return found;
  };
  const relocations = section(REFERENCES);
  const symbols = sections[relocations.link] ?? relocations;
  /** @type {[number, string][]} */
  const references = [];
  for (let at = 0; at < relocations.bytes.length; at += 16) {
    const symbolAt = relocations.bytes.readUInt32LE(at + 12) * 24;
    const name = textAt(symbols.link, symbols.bytes.readUInt32LE(symbolAt));
    references.push([Number(relocations.bytes.readBigUInt64LE(at)) / 8, name]);
  }
  return { instructions: section(CODE).bytes, references };
}

/**
 * @param {string} text
 * @returns {never}
 */
function fail(text) {
  console.error(text);
  process.exit(1);
}
