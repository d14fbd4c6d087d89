/** Control groups of version 2 for the services of a test, as a service manager gives each one on a real machine. */
import { mkdirSync, rmdirSync, statfsSync } from "node:fs";
import { join } from "node:path";

const CGROUP2_MAGIC = 0x63677270;
const MOUNTS = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"];

export class ControlGroup implements Disposable {
  readonly folder: string;

  constructor(name: string) {
    const mount = MOUNTS.find((each) => statfsSync(each).type === CGROUP2_MAGIC);
    if (mount === undefined) throw new Error("no control groups of version 2 are mounted");
    this.folder = join(mount, name);
    mkdirSync(this.folder, { recursive: true });
  }

  /** The command that runs a command in the group, from its first socket on. */
  get prefix(): string[] {
    return ["sh", "-c", 'echo $$ > "$0/cgroup.procs"; exec "$@"', this.folder];
  }

  /** Its processes must have ended. */
  [Symbol.dispose](): void {
    rmdirSync(this.folder);
  }
}
