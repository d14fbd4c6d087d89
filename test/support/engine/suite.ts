/**
 * Debian releases whose dockerd the tests run against. The machine's own release needs nothing; another one is a root
 * file system that is built once from Debian's packages and cached, because that takes a quarter of a minute. It is
 * never refreshed: remove the folder to get newer packages.
 */
import { existsSync, mkdirSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { run } from "../program/command.ts";
import { debianMirror } from "./debian-mirror.ts";

/** dockerd 20.10, of the machine; 26.1; 28.5 or newer. */
export type Suite = "bookworm" | "trixie" | "forky";

const ENGINE = "docker.io,iptables,nftables,iproute2,ca-certificates";
const ROOTLESS = "rootlesskit,slirp4netns,uidmap,passt,systemd,dbus";
/** Building one takes much processor time, so users' engines and runners of jobs share that of the others, which use nothing of theirs. */
const ROOTFS = {
  trixie: { name: "trixie-runner", packages: `${ENGINE},curl,sudo` },
  forky: { name: "forky-user", packages: `${ENGINE},${ROOTLESS}` },
} as const;
const KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg";
const TEN_MINUTES_MS = 600_000;

/**
 * The lock is for concurrent test files: the second one waits and finds the result of the first. The final rename marks
 * it complete; a partial folder under the lock is left from a run that was killed.
 */
const MAKE_ROOTFS = `
set -eu
rootfs=$1; shift
if test -d "$rootfs"; then exit 0; fi
rm -rf --one-file-system "$rootfs.partial"
mmdebstrap "$@" || { rm -rf --one-file-system "$rootfs.partial"; exit 1; }
mv -T "$rootfs.partial" "$rootfs"
`;

/** Folder of the suite's root file system; undefined for the machine's own release. */
export async function rootfsOf(suite: keyof typeof ROOTFS): Promise<string>;
export async function rootfsOf(suite: Suite): Promise<string | undefined>;
export async function rootfsOf(suite: Suite): Promise<string | undefined> {
  // In a virtual machine of another release, its own engine is the one that is tried.
  if (suite === "bookworm" || process.env["DNS11_TEST_ENGINE"] === "machine") return undefined;
  const { name, packages } = ROOTFS[suite];
  return await cachedRootfs(name, suite, packages);
}

/** A root file system under its own name, with other packages than an engine's; `sources` are more lines of sources.list. */
export async function cachedRootfs(
  name: string,
  suite: string,
  packages: string,
  sources: readonly string[] = [],
): Promise<string> {
  const cache = process.env["DNS11_TEST_CACHE"] ?? join(homedir(), ".cache", "dns11", "rootfs");
  const rootfs = join(cache, name);
  if (!existsSync(rootfs)) await makeRootfs(suite, packages, rootfs, sources);
  return rootfs;
}

async function makeRootfs(suite: string, packages: string, rootfs: string, sources: readonly string[]): Promise<void> {
  mkdirSync(dirname(rootfs), { recursive: true });
  const mirror = debianMirror();
  const bootstrap = [
    "--variant=minbase",
    `--include=${packages}`,
    // Accept a mirror that is frozen at a day in the past.
    '--aptopt=Acquire::Check-Valid-Until "false"',
    ...(existsSync(KEYRING) ? [`--keyring=${KEYRING}`] : []),
    suite,
    `${rootfs}.partial`,
    mirror,
    ...sources,
  ];
  const result = await run("flock", [`${rootfs}.lock`, "sh", "-c", MAKE_ROOTFS, "sh", rootfs, ...bootstrap], {
    timeoutMs: TEN_MINUTES_MS,
  });
  if (result.code !== 0) {
    const tried = `mmdebstrap ${bootstrap.join(" ")}`;
    const errors = result.stderr.trim().split("\n").slice(-20).join("\n");
    throw new Error(`cannot build the root file system of Debian ${suite} at ${rootfs} with ${tried}\n${errors}`);
  }
}
