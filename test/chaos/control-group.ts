// Control group of dns11, created inside that of the engine under test and removed with it.

import { existsSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const MEMORY_V1 = "/sys/fs/cgroup/memory";
const PROCESSOR_V1 = "/sys/fs/cgroup/cpu";
const ROOT = "/sys/fs/cgroup";
const NO_LIMIT = { v1: "-1", v2: "max" } as const;
// As the unit of its package has it: ten times that of a container.
const WEIGHT = { v1: ["cpu.shares", "10240"], v2: ["cpu.weight", "1000"] } as const;

export class ControlGroup {
  readonly #folder: string;
  // The same folder in version 2.
  readonly #processorFolder: string;
  readonly #version: "v1" | "v2";

  constructor(engineId: string) {
    this.#version = existsSync(MEMORY_V1) ? "v1" : "v2";
    const folderIn = (root: string): string => join(root, engineId, "dns11");
    this.#folder = folderIn(this.#version === "v1" ? MEMORY_V1 : ROOT);
    this.#processorFolder = this.#version === "v1" ? folderIn(PROCESSOR_V1) : this.#folder;
    for (const folder of [this.#folder, this.#processorFolder]) mkdirSync(folder, { recursive: true });
    const [file, weight] = WEIGHT[this.#version];
    // Without a delegated controller the processor is shared as it comes.
    if (existsSync(join(this.#processorFolder, file))) writeFileSync(join(this.#processorFolder, file), weight);
  }

  // Prefix of a command that runs in the group.
  get prefix(): string[] {
    const files = [this.#folder, this.#processorFolder].map((folder) => join(folder, "cgroup.procs"));
    return ["sh", "-c", 'echo $$ > "$0" && echo $$ > "$1" && shift && exec "$@"', ...files];
  }

  // Without a delegated memory controller memory cannot be limited.
  get canLimitMemory(): boolean {
    return readdirSync(this.#folder).includes(this.#limitFile);
  }

  get memoryBytes(): number {
    const file = this.#version === "v1" ? "memory.usage_in_bytes" : "memory.current";
    return Number(readFileSync(join(this.#folder, file), "utf8"));
  }

  limitMemory(bytes: number | undefined): void {
    writeFileSync(join(this.#folder, this.#limitFile), String(bytes ?? NO_LIMIT[this.#version]));
  }

  get #limitFile(): string {
    return this.#version === "v1" ? "memory.limit_in_bytes" : "memory.max";
  }
}
