/**
 * systemd that runs one unit beside an engine. It is not process 1 but a user manager started by root, which confines
 * services as the system's would. It has its own /run and a control group below the engine's, and is removed with the
 * engine.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { type CommandResult, SYSTEM_PATH, run } from "./command.ts";
import type { Engine } from "../engine/engine.ts";
import { waitFor } from "../rig/wait.ts";

/**
 * Paths of the engine's folder and of the program as the service sees them: it has a private /tmp, where they may lie.
 */
export const ENGINE_FOLDER = "/run/engine";
export const PROGRAM_FOLDER = "/run/program";
const RUNTIME = "/run/manager";

/**
 * What process 1 would have created at boot: the inaccessible placeholder files, and the targets that each unit needs.
 */
const START = `
set -eu
id=$1 folder=$2 program=$3
if [ -e /sys/fs/cgroup/cgroup.controllers ]; then roots=/sys/fs/cgroup
else roots='/sys/fs/cgroup/systemd /sys/fs/cgroup/unified'; fi
for root in $roots; do
  [ -d "$root" ] || continue
  mkdir -p "$root/$id/manager"
  echo $$ >"$root/$id/manager/cgroup.procs"
done
exec unshare --mount --cgroup sh -euc '
  folder=$1 program=$2; shift 2
  mount --make-rprivate /
  mkdir "$folder/run"
  mount -t tmpfs tmpfs "$folder/run"
  mkdir -p "$folder/run/engine" "$folder/run/program" "$folder/run/manager" "$folder/run/systemd/system"
  mkdir -p "$folder/run/systemd/inaccessible/dir"
  for kind in reg chr blk fifo sock; do : >"$folder/run/systemd/inaccessible/$kind"; done
  chmod 700 "$folder/run/manager"
  mount --bind "$folder" "$folder/run/engine"
  mount --bind "$program" "$folder/run/program"
  mount --rbind "$folder/run" /run
  for root in "$@"; do
    [ -d "$root" ] || continue
    umount -l "$root"
    case $root in
      */systemd) mount -t cgroup -o none,name=systemd cgroup "$root" ;;
      *) mount -t cgroup2 cgroup2 "$root" ;;
    esac
  done
  exec /lib/systemd/systemd --user --unit=basic.target --log-target=null
' manager "$folder" "$program" $roots
`;

export class ServiceManager {
  readonly #child: ChildProcess;

  private constructor(child: ChildProcess) {
    this.#child = child;
  }

  /** `units` maps the names of unit files and drop-ins to their content. */
  static async start(engine: Engine, units: Readonly<Record<string, string>>): Promise<ServiceManager> {
    const folder = join(engine.folder, "units");
    mkdirSync(folder);
    for (const target of ["basic", "default", "exit", "shutdown", "sysinit"]) {
      writeFileSync(join(folder, `${target}.target`), "[Unit]\nDefaultDependencies=no\n");
    }
    for (const [name, text] of Object.entries(units)) {
      mkdirSync(join(folder, name, ".."), { recursive: true });
      writeFileSync(join(folder, name), text);
    }
    const child = spawn("sh", ["-c", START, "manager", engine.id, engine.folder, process.cwd()], {
      stdio: "ignore",
      env: {
        PATH: SYSTEM_PATH,
        XDG_RUNTIME_DIR: RUNTIME,
        SYSTEMD_UNIT_PATH: join(ENGINE_FOLDER, "units"),
        HOME: "/root",
      },
    });
    child.unref();
    const manager = new ServiceManager(child);
    await waitFor("systemd to respond", async () => {
      if (child.exitCode !== null) throw new Error(`systemd exited: ${child.exitCode}`);
      return (await manager.systemctl("show-environment")).code === 0 ? true : undefined;
    });
    return manager;
  }

  async systemctl(...args: readonly string[]): Promise<CommandResult> {
    return await this.enter("systemctl", "--user", "--no-pager", ...args);
  }

  /** Runs a program where this systemd is the user's. */
  async enter(...command: readonly string[]): Promise<CommandResult> {
    const inside = ["--target", String(this.#child.pid), "--mount", "--", "env", `XDG_RUNTIME_DIR=${RUNTIME}`];
    return await run("nsenter", [...inside, ...command]);
  }

  /** A property of a unit, as systemctl shows it. */
  async show(unit: string, property: string): Promise<string> {
    return (await this.systemctl("show", "--value", `--property=${property}`, unit)).stdout.trim();
  }
}
