/**
 * ClosedNetworksFile: the networks that were closed last, for the next boot: Docker starts containers before dns11 runs, and
 * before it does nobody knows its networks. What it says can only close, and not the whole machine.
 */
import { closeSync, constants, fstatSync, openSync, existsSync } from "node:fs";
import { mkdir, open, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Fault, codeOf, reasonOf } from "../../../base/lib/fault.ts";
import { readRegular } from "../../../kernel/regular-file.ts";
import { type AddressBlock, blockText, readAddressBlock } from "../../../base/model/address.ts";
import type { ClosedNetwork } from "../model/policy.ts";
import { POLICY_LIMITS } from "../model/limits.ts";

const FILE = "closed-networks.json";
const VERSION = 1;
const MODE = 0o600;
const OTHERS_MAY_WRITE = 0o022;
/** No network of containers is larger, and a mistake does not cut off the machine. */
const PREFIX_MIN = 8;
const LOOPBACK_FIRST_OCTET = 127;
/** A name of a link (IFNAMSIZ), but for lo. */
const BRIDGE_NAME = /^(?!lo$|\.\.?$)[^\s/:]{1,15}$/;

/** The folder that systemd gives the service, or its first one; undefined where dns11 is no service. */
export function serviceFolder(): string | undefined {
  const [folder = ""] = (process.env["STATE_DIRECTORY"] ?? "").split(":", 1);
  return folder === "" ? undefined : folder;
}

export function closedNetworksPath(folder: string): string {
  return join(folder, FILE);
}

/** Replaces it; without networks there is none. */
export async function writeClosedNetworks(folder: string, networks: readonly ClosedNetwork[]): Promise<void> {
  const path = closedNetworksPath(folder);
  if (networks.length === 0) return await rm(path, { force: true });
  const stored = networks.map(({ name, bridge, blocks }) => ({ name, bridge, blocks: blocks.map(blockText) }));
  const text = `${JSON.stringify({ version: VERSION, networks: stored }, undefined, 2)}\n`;
  // What would not be read is not written.
  networksIn(text);
  await mkdir(folder, { recursive: true, mode: 0o700 });
  // Also after a power cut it is the former one or this one.
  await writeFile(`${path}.new`, text, { mode: MODE, flush: true });
  await rename(`${path}.new`, path);
  const opened = await open(folder, "r");
  try {
    await opened.sync();
  } finally {
    await opened.close();
  }
}

/** Undefined without a file. Throws a Fault that says what is wrong with it. */
export function readClosedNetworks(folder: string): ClosedNetwork[] | undefined {
  const path = closedNetworksPath(folder);
  try {
    return networksIn(readOwn(path));
  } catch (error) {
    if (codeOf(error) === "ENOENT") return undefined;
    throw new Fault("CLOSED_NETWORKS", `"${path}" cannot be used`, {
      remedy: "dns11 writes it anew when it runs; until then no network is closed before Docker starts.",
      cause: error,
    });
  }
}

/** Nobody else may have written it. */
function readOwn(path: string): string {
  const bytes = readRegular((flags) => {
    const fd = openSync(path, flags | constants.O_NOFOLLOW);
    const { uid, mode } = fstatSync(fd);
    if (uid === process.getuid?.() && (mode & OTHERS_MAY_WRITE) === 0) return fd;
    closeSync(fd);
    throw new Error("another user may write it");
  }, POLICY_LIMITS.closedNetworksBytes + 1);
  return bytes.toString("utf8");
}

function networksIn(text: string): ClosedNetwork[] {
  if (Buffer.byteLength(text) > POLICY_LIMITS.closedNetworksBytes)
    throw new Error(`it is longer than ${POLICY_LIMITS.closedNetworksBytes} bytes`);
  const value: unknown = JSON.parse(text);
  if (!isRecord(value) || value["version"] !== VERSION || !Array.isArray(value["networks"]))
    throw new Error("it is not of this version of dns11");
  const networks = value["networks"] as unknown[];
  if (networks.length > POLICY_LIMITS.closedNetworks)
    throw new Error(`it has more than ${POLICY_LIMITS.closedNetworks} networks`);
  return networks.map(networkIn);
}

function networkIn(value: unknown): ClosedNetwork {
  if (!isRecord(value)) throw new Error("a network is no object");
  const { name, bridge, blocks } = value;
  if (typeof name !== "string" || !Array.isArray(blocks)) throw new Error("a network has no name, or no blocks");
  const isBridge = bridge === undefined || (typeof bridge === "string" && BRIDGE_NAME.test(bridge));
  if (!isBridge) throw new Error(`${JSON.stringify(bridge)} is no bridge`);
  if (blocks.length > POLICY_LIMITS.closedNetworkBlocks) throw new Error(`network "${name}" has too many blocks`);
  return { name, bridge, blocks: (blocks as unknown[]).map(blockIn) };
}

function blockIn(text: unknown): AddressBlock {
  const block = typeof text === "string" ? readAddressBlock(text) : undefined;
  if (block === undefined) throw new Error(`${JSON.stringify(text)} is no block of addresses`);
  const isLoopback = block.bytes.length === 4 && block.bytes[0] === LOOPBACK_FIRST_OCTET;
  if (block.prefix < PREFIX_MIN || isLoopback) throw new Error(`${blockText(block)} is no network of containers`);
  return block;
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

const BOOT_UNIT = "dns11-boot.service";
const WANTED_BY = "docker.service.wants";
/** Where systemd looks for what a unit wants. */
const UNIT_FOLDERS = ["/etc/systemd/system", "/run/systemd/system", "/usr/lib/systemd/system", "/lib/systemd/system"];

interface BootClosingParts {
  /** That of the service; undefined where dns11 is no service. */
  readonly folder: string | undefined;
  readonly unitFolders?: readonly string[];
}

/**
 * Whether the networks of enforced policies are closed before Docker starts, after the next boot: what is to be
 * closed is kept in the folder of the service, and a unit of its own reads it.
 */
export class BootClosing {
  readonly #folder: string | undefined;
  readonly #unitFolders: readonly string[];
  #failure: string | undefined = "nothing is kept yet";

  constructor({ folder, unitFolders = UNIT_FOLDERS }: BootClosingParts) {
    this.#folder = folder;
    this.#unitFolders = unitFolders;
  }

  /** These are to be closed at the next boot. Returns why they cannot be. */
  async keep(networks: readonly ClosedNetwork[]): Promise<string | undefined> {
    if (this.#folder === undefined) return undefined;
    try {
      await writeClosedNetworks(this.#folder, networks);
      this.#failure = undefined;
    } catch (error) {
      this.#failure = reasonOf(error);
    }
    return this.#failure;
  }

  /** Why they are not closed, as a clause; undefined if they are. */
  get problem(): string | undefined {
    if (this.#folder === undefined) return "dns11 does not run as the service of its package";
    if (this.#failure !== undefined) return `what is to be closed cannot be kept: ${this.#failure}`;
    const isEnabled = this.#unitFolders.some((folder) => existsSync(join(folder, WANTED_BY, BOOT_UNIT)));
    return isEnabled ? undefined : `${BOOT_UNIT} is not enabled`;
  }
}
