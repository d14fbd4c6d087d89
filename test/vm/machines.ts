/**
 * Machines: the kernels and Debian releases that dns11 is tried on in a virtual machine, each with that release's dockerd, systemd,
 * iptables and nftables; and the kernels that only load the program that answers in the kernel. The kernels are Debian's for cloud machines:
 * the same source, with fewer drivers.
 */
import type { Architecture } from "./emulator.ts";

export type Release = "bullseye" | "bookworm" | "trixie" | "forky";

export interface Kernel {
  /** What a user types to choose it. */
  readonly name: string;
  readonly suite: Release;
  readonly architecture: Architecture;
  /** The beginning of the version of a kernel of the release's backports; by default the release's own kernel. */
  readonly backport?: string;
}

const amd64 = (name: string, suite: Release): Kernel => ({ name, suite, architecture: "amd64" });
const backport = (version: string, architecture: Architecture = "amd64"): Kernel => ({
  name: architecture === "amd64" ? version : `${version}-${architecture}`,
  suite: "trixie",
  architecture,
  backport: version,
});
const TRIXIE_ARM64: Kernel = { name: "6.12-arm64", suite: "trixie", architecture: "arm64" };

/** Each has a whole Debian. */
export const MACHINES: readonly Kernel[] = [
  amd64("5.10", "bullseye"),
  amd64("6.1", "bookworm"),
  amd64("6.12", "trixie"),
  TRIXIE_ARM64,
  amd64("7.2", "forky"),
  backport("7.3"),
];

/**
 * The verifiers that the program has to pass: those of releases with atomic additions (Linux 5.12), and of the kernels in the backports
 * that can be installed; of others a part is missing.
 */
export const VERIFIERS: readonly Kernel[] = [
  amd64("6.1", "bookworm"),
  amd64("6.12", "trixie"),
  TRIXIE_ARM64,
  backport("6.16"),
  backport("6.17"),
  amd64("7.2", "forky"),
  backport("7.3"),
  backport("7.3", "arm64"),
];

/** A file of tests, and which of them. */
export interface ChosenTests {
  readonly file: string;
  readonly only?: string;
}

/**
 * Each capability on which a kernel or a release has a part: containers that come and go, hand-back by SIGTERM and SIGKILL, a flood, a
 * KIND node, replacement, names on the host, the doctor. The demonstration has the names and forwarding.
 */
export function testsOf(suite: Release): readonly ChosenTests[] {
  const common = [
    { file: "docker/lifecycle" },
    { file: "docker/replacement", only: "a takeover under load|serves fewer containers" },
  ];
  // Rules have no owner there, so names on the host are refused, and the doctor warns. docs/internals/tests.md has the rest.
  if (suite === "bullseye") {
    const handBack = { file: "docker/handover", only: "SIGTERM hands back|SIGKILL hands back" };
    return [...common, handBack, { file: "docker/doctor", only: "one that was killed" }];
  }
  return [
    ...common,
    { file: "docker/handover", only: "SIGTERM hands back|SIGKILL hands back|in its own conntrack zone" },
    { file: "features/kind/hand-back" },
    { file: "features/host-names/host-names", only: "every form of a name|no query for another name" },
    { file: "docker/doctor", only: "a healthy container|one that was killed" },
  ];
}

/** In the checkout: which of them run. */
export const TESTS_FILE = "vm-tests.json";

const COMMON = [
  "bind9-dnsutils",
  "busybox-static",
  "ca-certificates",
  "conntrack",
  "dbus",
  "dnsperf",
  "docker.io",
  "e2fsprogs",
  "iproute2",
  "iptables",
  "kmod",
  "nftables",
  "procps",
  "strace",
  "systemd",
  "systemd-sysv",
  "udev",
];

/** Packages of a release beside the kernel. */
export function packagesOf(suite: Release): readonly string[] {
  // There systemd-resolved is a part of systemd, and the command of Docker one of docker.io; it has no dnsperf, which is what floods.
  // Without usrmerge, programs are in /bin, which containers of the tests do not see.
  if (suite === "bullseye") return [...COMMON.filter((name) => name !== "dnsperf"), "usrmerge"];
  return [...COMMON, "systemd-resolved", ...(suite === "bookworm" ? [] : ["docker-cli"])];
}
