/**
 * Libc check: which C library resolves names in a container, found in its files. musl and glibc read the same reply
 * differently, and the limits of musl before 1.2.4 explain many names that resolve in some images only.
 */
import { type Finding, finding } from "../../base/model/finding.ts";
import { DOCKER_RESOLVER } from "../../container/capture/capture.ts";
import { libcOf } from "../../container/namespace/container-libc.ts";
import { readUnder } from "../../container/namespace/container-root.ts";
import { parseResolvConf } from "../../container/watch/resolv-conf.ts";

/** The first musl that retries truncated replies over TCP. */
const MUSL_WITH_TCP = [1, 2, 4];

/** `root`: the container's root directory; `resolvConf`: the text of its file. */
export function libcFinding(root: number, resolvConf: string | undefined): Finding {
  const libc = libcOf((path, bytesMax) => readUnder(root, path, bytesMax));
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
      ? [
          "no TCP support before 1.2.4, so of an answer over 512 bytes it gets the addresses that fit, and of other types nothing",
        ]
      : []),
    ...(others.length > 0 ? [`queries ${others.join(", ")} at the same time and uses the first reply`] : []),
  ];
  const always = "takes an NXDOMAIN for AAAA as an answer for the whole name";
  if (hints.length === 0) return finding("libc", "ok", `${name}: queries all nameservers at once, and ${always}`);
  const remedy = "Use an image with musl 1.2.4 (Alpine 3.18) or later, and name only 127.0.0.11 in resolv.conf.";
  return finding("libc", "warning", `${name}: ${[...hints, always].join("; ")}`, remedy);
}

function isBefore(version: string | undefined, wanted: readonly number[]): boolean {
  if (version === undefined) return false;
  const parts = version.split(".").map(Number);
  const at = wanted.findIndex((number, index) => parts[index] !== number);
  return at !== -1 && (parts[at] ?? 0) < (wanted[at] ?? 0);
}
