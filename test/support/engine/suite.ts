/**
 * Owns the Debian releases whose dockerd the tests run against. The machine's own release needs nothing; another one is
 * a root file system made once from Debian's packages and kept, for making it takes a quarter of a minute. It is never
 * refreshed: whoever wants newer packages removes the folder.
 */
import { existsSync, mkdirSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { run } from "../program/command.ts";
import { debianMirror } from "./debian-mirror.ts";

/** dockerd 20.10, the machine's own; 26.1; 28.5 or newer. */
export type Suite = "bookworm" | "trixie" | "forky";

const PACKAGES = "docker.io,iptables,nftables,iproute2,ca-certificates";
const KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg";
const TEN_MINUTES_MS = 600_000;

/**
 * The lock serves test files that run at the same time: the second one waits and finds what the first has made. The
 * rename at the end is what says "complete"; whatever lies beside it under the lock is of a run that was killed.
 */
const MAKE_ROOTFS = `
set -eu
rootfs=$1; shift
if test -d "$rootfs"; then exit 0; fi
rm -rf --one-file-system "$rootfs.partial"
mmdebstrap "$@" || { rm -rf --one-file-system "$rootfs.partial"; exit 1; }
mv -T "$rootfs.partial" "$rootfs"
`;

/** The folder of the suite's root file system; nothing for the machine's own. */
export async function rootfsOf(suite: Suite): Promise<string | undefined> {
  if (suite === "bookworm") return undefined;
  const cache = process.env["DNS11_TEST_CACHE"] ?? join(homedir(), ".cache", "dns11", "rootfs");
  const rootfs = join(cache, suite);
  if (!existsSync(rootfs)) await makeRootfs(suite, cache, rootfs);
  return rootfs;
}

async function makeRootfs(suite: Suite, cache: string, rootfs: string): Promise<void> {
  mkdirSync(cache, { recursive: true });
  const mirror = debianMirror();
  const bootstrap = [
    "--variant=minbase",
    `--include=${PACKAGES}`,
    // A mirror kept at one day in the past must do as well.
    '--aptopt=Acquire::Check-Valid-Until "false"',
    ...(existsSync(KEYRING) ? [`--keyring=${KEYRING}`] : []),
    suite,
    `${rootfs}.partial`,
    mirror,
  ];
  const result = await run("flock", [`${rootfs}.lock`, "sh", "-c", MAKE_ROOTFS, "sh", rootfs, ...bootstrap], {
    timeoutMs: TEN_MINUTES_MS,
  });
  if (result.code !== 0) {
    const tried = `mmdebstrap ${bootstrap.join(" ")}`;
    const errors = result.stderr.trim().split("\n").slice(-20).join("\n");
    throw new Error(`no root file system of Debian ${suite} in ${cache}; tried: ${tried}\n${errors}`);
  }
}
