/**
 * UserManager: the systemd of a rootless engine's user, `systemd --user` as a login would start it, with the units of a
 * test. It has a control group of its own below the engine's, and is removed with the engine.
 */
import { spawn } from "node:child_process";

import type { CommandResult } from "../program/command.ts";
import { waitFor } from "../rig/wait.ts";
import type { EngineHost } from "./engine-host.ts";
import { INSIDE, OWNER } from "./rootless-host.ts";

/** What process 1 and a login would have done: the user's own part of the control groups, and the basic targets. */
const START = `
set -eu
group=$1 owner=$2 units=$3; shift 3
root=/sys/fs/cgroup
test -e "$root/cgroup.controllers" || root=$root/unified
# A folder by which programs recognize that systemd is process 1.
mkdir -p "$root/$group" /run/systemd/system
echo $$ > "$root/$group/cgroup.procs"
chown -R "$owner" "$root/$group"
for target in basic default exit shutdown sysinit; do
  printf '[Unit]\\nDefaultDependencies=no\\n' > "$units/$target.target"
done
exec unshare --mount --cgroup sh -euc '
  mount --make-rprivate /
  umount -l /sys/fs/cgroup
  mount -t cgroup2 cgroup2 /sys/fs/cgroup
  exec "$@" /usr/lib/systemd/systemd --user --unit=basic.target --log-target=null
' manager "$@"
`;

export class UserManager {
  readonly #host: EngineHost;
  readonly #asUser: readonly string[];

  private constructor(host: EngineHost, asUser: readonly string[]) {
    this.#host = host;
    this.#asUser = asUser;
  }

  /** `group` is the name of its control group; `asUser` starts a command as the user. */
  static async start(host: EngineHost, group: string, asUser: readonly string[]): Promise<UserManager> {
    const own = ["env", `SYSTEMD_UNIT_PATH=${INSIDE.units}`];
    const words = ["-c", START, "start", group, String(OWNER), INSIDE.units, ...asUser, ...own];
    const [command, args] = host.command("sh", words);
    const child = spawn(command, args, { stdio: "ignore" });
    child.unref();
    const manager = new UserManager(host, asUser);
    await waitFor("systemd of the user to respond", async () => {
      if (child.exitCode !== null) throw new Error(`systemd exited: ${child.exitCode}`);
      return (await manager.systemctl("show-environment")).code === 0 ? true : undefined;
    });
    return manager;
  }

  async systemctl(...args: readonly string[]): Promise<CommandResult> {
    const [first = "", ...rest] = [...this.#asUser, "systemctl", "--user", "--no-pager", ...args];
    return await this.#host.run(first, rest);
  }

  /** A property of a unit, as systemctl shows it. */
  async show(unit: string, property: string): Promise<string> {
    return (await this.systemctl("show", "--value", `--property=${property}`, unit)).stdout.trim();
  }
}
