/** Control groups of version 2 for the services of a test, as a service manager gives each one on a real machine. */
import { mkdirSync, readFileSync, rmdirSync, statfsSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";

const CGROUP2_MAGIC = 0x63677270;
const MOUNTS = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"];

export class ControlGroup implements Disposable {
  readonly folder: string;
  readonly #isLeft: boolean;

  /** `isLeft`: a keeper may be in it for a moment more when it is removed. */
  constructor(name: string, { isLeft = false }: { readonly isLeft?: boolean } = {}) {
    const mount = MOUNTS.find((each) => statfsSync(each).type === CGROUP2_MAGIC);
    if (mount === undefined) throw new Error("no control groups of version 2 are mounted");
    this.folder = join(mount, name);
    this.#isLeft = isLeft;
    mkdirSync(this.folder, { recursive: true });
  }

  /** The command that runs a command in the group, from its first socket on. */
  get prefix(): string[] {
    return ["sh", "-c", 'echo $$ > "$0/cgroup.procs"; exec "$@"', this.folder];
  }

  [Symbol.dispose](): void {
    if (this.#isLeft) this.#moveAll();
    rmdirSync(this.folder);
  }

  #moveAll(): void {
    for (const pid of readFileSync(join(this.folder, "cgroup.procs"), "utf8").split("\n").filter(Boolean)) {
      try {
        writeFileSync(join(dirname(this.folder), "cgroup.procs"), pid);
      } catch {
        // It has ended meanwhile.
      }
    }
  }
}
