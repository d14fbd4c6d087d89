/**
 * OwnFiles: files of a container's own file system, such as its C library, for the process that answers queries. The container may mount
 * a file system there that waits for a program of its own, and then this process would wait, too. So a file is read only if it lies on
 * the file system that the engine has mounted, in the engine's own namespace, for the container's root folder.
 */
import { openInRoot } from "../../kernel/libc.ts";
import { procText } from "../../kernel/process.ts";
import { readRegular } from "../../kernel/regular-file.ts";
import { codeOf } from "../../base/lib/fault.ts";
import { withContainerRoot } from "./container-root.ts";
import type { EngineHost } from "./engine-host.ts";

/** The first bytes of a file; undefined if there is none. Throws if it must not be read, or cannot be. */
type ReadOwn = (path: string, bytesMax: number) => Buffer | undefined;

/** None of them waits for anything but a disk. */
const FILE_SYSTEMS: ReadonlySet<string> = new Set(["overlay", "ext4", "xfs", "btrfs", "zfs"]);

/** Throws if the container's files must not be read, or cannot be. */
export function withOwnFiles<T>(
  pid: number,
  containerId: string,
  host: Pick<EngineHost, "pid" | "sharesPids">,
  use: (read: ReadOwn) => T,
): T {
  return withContainerRoot(pid, containerId, host, (root) => {
    const device = deviceOf(root, pid);
    if (device === undefined || !isEngines(device, host.pid)) throw new Error("not a file system of the engine's");
    return use((path, bytesMax) => {
      try {
        return readRegular((flags) => openInRoot(root, path, flags, { isOneMount: true }), bytesMax);
      } catch (error) {
        if (codeOf(error) === "ENOENT" || codeOf(error) === "ENOTDIR") return undefined;
        throw error;
      }
    });
  });
}

/** The device of an open folder's mount. Nothing asks the file system itself, which may not answer. */
function deviceOf(fd: number, pid: number): string | undefined {
  const mount = /^mnt_id:\s*(\d+)$/m.exec(procText(`/proc/self/fdinfo/${fd}`) ?? "")?.[1];
  return mountsOf(pid).find(({ id }) => id === mount)?.device;
}

function isEngines(device: string, pid: number): boolean {
  return mountsOf(pid).some((each) => each.device === device && FILE_SYSTEMS.has(each.kind));
}

function mountsOf(pid: number): { readonly id: string; readonly device: string; readonly kind: string }[] {
  const lines = (procText(`/proc/${pid}/mountinfo`) ?? "").split("\n");
  return lines.map((line) => {
    const [id = "", , device = ""] = line.split(" ");
    const [kind = ""] = line.slice(line.indexOf(" - ") + 3).split(" ");
    return { id, device, kind };
  });
}
