/**
 * Libc check: which C library resolves names in a container, found in its files. musl and glibc read the same reply
 * differently, and the limits of musl before 1.2.4 explain many names that resolve in some images only.
 */
import { type Finding, finding } from "../../base/model/finding.ts";
import { DOCKER_RESOLVER } from "../../container/capture/capture.ts";
import { readUnder } from "../../container/namespace/container-root.ts";
import { parseResolvConf } from "../../container/watch/resolv-conf.ts";

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
/** The first musl that retries truncated replies over TCP. */
const MUSL_WITH_TCP = [1, 2, 4];

/** `root`: the container's root directory; `resolvConf`: the text of its file. */
export function libcFinding(root: number, resolvConf: string | undefined): Finding {
  const libc = libcBelow(root);
  if (libc === undefined) {
    return finding("libc", "ok", "no glibc or musl found; programs use their own resolver");
  }
  const name = `${libc.kind} ${libc.version ?? "(unknown version)"}`;
  if (libc.kind === "glibc") {
    const detail = `${name}: queries the nameservers one after the other, 5 s each, and retries truncated replies over TCP`;
    return finding("libc", "ok", detail);
  }
  const others = parseResolvConf(resolvConf ?? "").nameservers.filter((server) => server !== DOCKER_RESOLVER);
  const hints = [
    ...(isBefore(libc.version, MUSL_WITH_TCP)
      ? ["no TCP support before 1.2.4, so replies over 512 bytes are truncated or fail"]
      : []),
    ...(others.length > 0 ? [`queries ${others.join(", ")} at the same time and uses the first reply`] : []),
  ];
  const always = "takes an NXDOMAIN for AAAA as an answer for the whole name";
  if (hints.length === 0) return finding("libc", "ok", `${name}: queries all nameservers at once, and ${always}`);
  const remedy = "Use an image with musl 1.2.4 (Alpine 3.18) or later, and name only 127.0.0.11 in resolv.conf.";
  return finding("libc", "warning", `${name}: ${[...hints, always].join("; ")}`, remedy);
}

/** musl may be there beside glibc, for a compiler; on a system of musl, what has the name of glibc has not its version. */
function libcBelow(root: number): Libc | undefined {
  const glibc = firstBelow(root, GLIBC);
  const version = glibc && /stable release version (\d+\.\d+)/.exec(glibc.toString("latin1"))?.[1];
  if (version !== undefined) return { kind: "glibc", version };
  const musl = firstBelow(root, MUSL);
  if (musl !== undefined) {
    return { kind: "musl", version: muslVersion(musl, readUnder(root, PACKAGES, LIBRARY_BYTES_MAX)) };
  }
  return glibc && { kind: "glibc", version };
}

function firstBelow(root: number, paths: readonly string[]): Buffer | undefined {
  for (const path of paths) {
    const bytes = readUnder(root, path, LIBRARY_BYTES_MAX);
    if (bytes !== undefined) return bytes;
  }
  return undefined;
}

/** Takes it from Alpine's package list, or else from the strings in the library itself. */
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

function isBefore(version: string | undefined, wanted: readonly number[]): boolean {
  if (version === undefined) return false;
  const parts = version.split(".").map(Number);
  const at = wanted.findIndex((number, index) => parts[index] !== number);
  return at !== -1 && (parts[at] ?? 0) < (wanted[at] ?? 0);
}
