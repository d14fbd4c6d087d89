/**
 * Machines: the kernels and Debian releases that dns11 is tried on in a virtual machine, each with that release's dockerd, systemd,
 * iptables and nftables. The kernel is Debian's for cloud machines: the same source, with fewer drivers.
 */

export interface Machine {
  /** What a user types to choose it. */
  readonly name: string;
  readonly suite: "bullseye" | "bookworm" | "trixie" | "forky";
  /** The release that the kernel's package is from, where it is another one. */
  readonly backports?: string;
  /** The beginning of the version of the kernel's package; by default that of the release. */
  readonly kernel?: string;
}

export const MACHINES: readonly Machine[] = [
  { name: "5.10", suite: "bullseye" },
  { name: "6.1", suite: "bookworm" },
  { name: "6.12", suite: "trixie" },
  { name: "6.16", suite: "trixie", backports: "trixie-backports", kernel: "6.16" },
  { name: "7.0", suite: "trixie", backports: "trixie-backports", kernel: "7.0" },
  { name: "7.2", suite: "forky" },
  { name: "7.3", suite: "trixie", backports: "trixie-backports", kernel: "7.3" },
];

/** A file of tests, and which of them: some send more queries than an emulated processor answers in time. */
export interface ChosenTests {
  readonly file: string;
  readonly only?: string;
}

const NAMES: ChosenTests = { file: "docker/lifecycle" };
const HAND_BACK: ChosenTests = {
  file: "docker/handover",
  only: "SIGTERM hands back|SIGKILL hands back|the keeper kills|without a keeper",
};

/** Names, and hand-back by SIGTERM and SIGKILL; a KIND node, replacement, names on the host, the doctor. */
export const TESTS: Readonly<Record<"quick" | "whole", readonly ChosenTests[]>> = {
  quick: [NAMES, { ...HAND_BACK, only: "SIGTERM hands back|SIGKILL hands back" }],
  whole: [
    NAMES,
    HAND_BACK,
    { file: "kind/hand-back" },
    { file: "docker/replacement" },
    { file: "docker/host-names" },
    { file: "docker/doctor" },
  ],
};

/** In the checkout: which of them run. */
export const TESTS_FILE = "vm-tests.json";

const COMMON = [
  "bind9-dnsutils",
  "busybox-static",
  "ca-certificates",
  "conntrack",
  "dbus",
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
export function packagesOf(suite: Machine["suite"]): readonly string[] {
  // There systemd-resolved is a part of systemd, and the command of Docker one of docker.io.
  if (suite === "bullseye") return COMMON;
  return [...COMMON, "systemd-resolved", ...(suite === "bookworm" ? [] : ["docker-cli"])];
}
