/**
 * ContainerLibc: the C library by which programs in a container resolve names, found in its files.
 */
interface Libc {
  readonly kind: "musl" | "glibc";
  readonly version: string | undefined;
}

const LIBRARY_BYTES_MAX = 8 * 1024 * 1024;
const MACHINES = ["x86_64", "aarch64"];
const MUSL = MACHINES.map((machine) => `/lib/ld-musl-${machine}.so.1`);
const GLIBC = ["", ...MACHINES.map((machine) => `${machine}-linux-gnu/`)].flatMap((folder) =>
  ["/lib/", "/lib64/", "/usr/lib/", "/usr/lib64/"].map((place) => `${place}${folder}libc.so.6`),
);
const PACKAGES = "/lib/apk/db/installed";

/** The first bytes of a file of the container; undefined if there is none. */
type Read = (path: string, bytesMax: number) => Buffer | undefined;

/** musl may be there beside glibc, for a compiler; on a system of musl, what has the name of glibc has not its version. */
export function libcOf(read: Read): Libc | undefined {
  const glibc = firstOf(GLIBC, read);
  const version = glibc && /stable release version (\d+\.\d+)/.exec(glibc.toString("latin1"))?.[1];
  if (version !== undefined) return { kind: "glibc", version };
  const musl = firstOf(MUSL, read);
  if (musl !== undefined) {
    return { kind: "musl", version: muslVersion(musl, read(PACKAGES, LIBRARY_BYTES_MAX)) };
  }
  return glibc && { kind: "glibc", version };
}

function firstOf(paths: readonly string[], read: Read): Buffer | undefined {
  for (const path of paths) {
    const bytes = read(path, LIBRARY_BYTES_MAX);
    if (bytes !== undefined) return bytes;
  }
  return undefined;
}

/** From Alpine's package list, or else from the strings in the library itself. */
function muslVersion(library: Buffer, packages: Buffer | undefined): string | undefined {
  const listed = /^V:(\d+\.\d+\.\d+)/m.exec(aboutMusl(packages?.toString("latin1") ?? ""))?.[1];
  // oxlint-disable-next-line no-control-regex -- strings in a library end with a zero byte
  return listed ?? /\0(1\.\d\.\d{1,2})\0/.exec(library.toString("latin1"))?.[1];
}

/** The container controls the list and its length, so this scans it once. */
function aboutMusl(packages: string): string {
  const text = `\n${packages}`;
  const begin = text.indexOf("\nP:musl\n");
  if (begin === -1) return "";
  const end = text.indexOf("\n\n", begin);
  return text.slice(begin, end === -1 ? text.length : end);
}
