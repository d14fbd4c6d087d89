/** The Debian package of a kernel, and what it needs of the archive. */
import { debianMirror } from "../support/engine/debian-mirror.ts";
import { run, stdoutOf } from "../support/program/command.ts";
import type { Kernel } from "./machines.ts";

/** More lines of sources.list, where the kernel is from the backports. */
export function backportsOf({ suite, backport }: Kernel): readonly string[] {
  return backport === undefined ? [] : [`deb ${debianMirror()} ${suite}-backports main`];
}

/** For a release's own kernel the package that depends on it; otherwise the newest kernel of the version. */
export async function kernelPackages({ suite, architecture, backport }: Kernel): Promise<readonly string[]> {
  if (backport === undefined) return [`linux-image-cloud-${architecture}`];
  const list = `${debianMirror()}/dists/${suite}-backports/main/binary-${architecture}/Packages.xz`;
  const command = `curl -fsS "$1" | xz -d | sed -n 's/^Package: \\(linux-image-[^ ]*-cloud-'"$2"'\\)$/\\1/p'`;
  const names = stdoutOf(await run("sh", ["-c", command, "sh", list, architecture]), "curl").split("\n");
  const newest = names.filter((each) => each.startsWith(`linux-image-${backport}.`)).toSorted(byVersion);
  const found = newest.at(-1);
  if (found === undefined) throw new Error(`no Linux ${backport} in ${list}`);
  // Newer kernels need a newer one than the release has.
  return [`linux-base/${suite}-backports`, found];
}

function byVersion(a: string, b: string): number {
  return a.localeCompare(b, "en", { numeric: true });
}
