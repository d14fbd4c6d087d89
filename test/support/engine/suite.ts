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

/** Which of several engines this run has; not given where it has all. */
const TURN = process.env["DNS11_TEST_TURN"];

/** Of what a test does with each of several engines, what this run does: a run for each change has one, in a turn that the commit decides. */
export function inTurn<T>(each: readonly T[]): readonly T[] {
  return TURN === undefined ? each : each.filter((_, index) => index === Number(TURN) % each.length);
}

const ENGINE = "docker.io,iptables,nftables,iproute2,ca-certificates";
const ROOTLESS = "rootlesskit,slirp4netns,uidmap,passt,systemd,dbus";
/** What users type: `docker compose` of the same release as the engine. */
const COMMANDS = "docker-cli,docker-compose";
/** Building one takes much processor time, so users' engines, runners of jobs and Compose projects share that of the others, which use nothing of theirs. */
const ROOTFS = {
  trixie: { name: "trixie-runner", packages: `${ENGINE},curl,sudo` },
  forky: { name: "forky-compose", packages: `${ENGINE},${ROOTLESS},${COMMANDS}` },
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

/**
 * For another architecture, whose programs QEMU runs. The kernel is told so in a user namespace only (Linux 6.7), so nothing
 * changes for others; its map of users is that of the machine.
 */
const EMULATED_MAKE_ROOTFS = `
set -eu
go=$1.go
rm -f "$go"
mkfifo "$go"
unshare --user --mount --pid --fork sh -c '
read -r _ <"$1"
mount -t binfmt_misc none /proc/sys/fs/binfmt_misc
cat /usr/lib/binfmt.d/qemu-aarch64.conf >/proc/sys/fs/binfmt_misc/register
shift 2
exec sh -c "$0" sh "$@"
' '${MAKE_ROOTFS}' "$go" -- "$@" &
child=$!
until test "$(readlink "/proc/$child/ns/user")" != "$(readlink /proc/self/ns/user)"; do sleep 0.1; done
for map in uid_map gid_map; do echo "0 0 4294967295" >"/proc/$child/$map"; done
echo >"$go"
rm -f "$go"
wait "$child"
`;

/**
 * What all tests are to run against in place of their own choice: "machine" for the machine's own engine, or the folder of a root file
 * system with a dockerd, for which DNS11_TEST_ENGINE_ARGS has more arguments, such as --firewall-backend=nftables.
 */
const GIVEN = process.env["DNS11_TEST_ENGINE"];
export const GIVEN_ROOT = GIVEN?.startsWith("/") === true ? GIVEN : undefined;
export const GIVEN_ARGS = (process.env["DNS11_TEST_ENGINE_ARGS"] ?? "").split(" ").filter((word) => word !== "");

/** Folder of the suite's root file system; undefined for the machine's own release. */
export async function rootfsOf(suite: keyof typeof ROOTFS): Promise<string>;
export async function rootfsOf(suite: Suite): Promise<string | undefined>;
export async function rootfsOf(suite: Suite): Promise<string | undefined> {
  if (GIVEN_ROOT !== undefined) return GIVEN_ROOT;
  // In a virtual machine of another release, its own engine is the one that is tried.
  if (suite === "bookworm" || GIVEN === "machine") return undefined;
  const { name, packages } = ROOTFS[suite];
  return await cachedRootfs(name, suite, packages);
}

export interface RootfsOptions {
  /** More lines of sources.list. */
  readonly sources?: readonly string[];
  /** By Debian's name; by default the machine's own. */
  readonly architecture?: string;
  /** Files only: no program of a package runs, so the folder is of use to another machine alone. */
  readonly isExtracted?: boolean;
}

/** A root file system under its own name, with other packages than an engine's. They are asked for only if it is not there yet. */
export async function cachedRootfs(
  name: string,
  suite: string,
  packages: string | (() => Promise<string>),
  options: RootfsOptions = {},
): Promise<string> {
  const cache = process.env["DNS11_TEST_CACHE"] ?? join(homedir(), ".cache", "dns11", "rootfs");
  const rootfs = join(cache, name);
  if (existsSync(rootfs)) return rootfs;
  const wanted = typeof packages === "string" ? packages : await packages();
  await makeRootfs(suite, wanted, rootfs, options);
  return rootfs;
}

async function makeRootfs(
  suite: string,
  packages: string,
  rootfs: string,
  { sources = [], architecture, isExtracted = false }: RootfsOptions,
): Promise<void> {
  mkdirSync(dirname(rootfs), { recursive: true });
  const mirror = debianMirror();
  const bootstrap = [
    ...(isExtracted ? ["--variant=extract", "--skip=check/qemu"] : ["--variant=minbase"]),
    ...(architecture === undefined ? [] : [`--architectures=${architecture}`]),
    `--include=${packages}`,
    // Accept a mirror that is frozen at a day in the past.
    '--aptopt=Acquire::Check-Valid-Until "false"',
    ...(existsSync(KEYRING) ? [`--keyring=${KEYRING}`] : []),
    suite,
    `${rootfs}.partial`,
    mirror,
    ...sources,
  ];
  const isForeign = !isExtracted && architecture !== undefined && architecture !== (await ownArchitecture());
  const script = isForeign ? EMULATED_MAKE_ROOTFS : MAKE_ROOTFS;
  const result = await run("flock", [`${rootfs}.lock`, "sh", "-c", script, "sh", rootfs, ...bootstrap], {
    timeoutMs: isForeign ? 6 * TEN_MINUTES_MS : TEN_MINUTES_MS,
  });
  if (result.code !== 0) {
    const tried = `mmdebstrap ${bootstrap.join(" ")}`;
    const errors = result.stderr.trim().split("\n").slice(-20).join("\n");
    throw new Error(`cannot build the root file system of Debian ${suite} at ${rootfs} with ${tried}\n${errors}`);
  }
}

async function ownArchitecture(): Promise<string> {
  return (await run("dpkg", ["--print-architecture"])).stdout.trim();
}
