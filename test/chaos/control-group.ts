// Control group of dns11, created inside that of the engine under test and removed with it.

import { existsSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const MEMORY_V1 = "/sys/fs/cgroup/memory";
const ROOT = "/sys/fs/cgroup";
const NO_LIMIT = { v1: "-1", v2: "max" } as const;

export class ControlGroup {
  readonly #folder: string;
  readonly #version: "v1" | "v2";

  constructor(engineId: string) {
    this.#version = existsSync(MEMORY_V1) ? "v1" : "v2";
    this.#folder = join(this.#version === "v1" ? MEMORY_V1 : ROOT, engineId, "dns11");
    mkdirSync(this.#folder, { recursive: true });
  }

  // Prefix of a command that runs in the group.
  get prefix(): string[] {
    return ["sh", "-c", 'echo $$ > "$0" && exec "$@"', join(this.#folder, "cgroup.procs")];
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
