/**
 * BootClosing: whether the networks of enforced policies are closed before Docker starts, after the next boot: what is to be
 * closed is kept in the folder of the service, and a unit of its own reads it.
 */
import { existsSync } from "node:fs";
import { join } from "node:path";

import { reasonOf } from "../../base/lib/fault.ts";
import type { ClosedNetwork } from "../model/closed-network.ts";
import { writeClosedNetworks } from "./closed-networks-file.ts";

const BOOT_UNIT = "dns11-boot.service";
const WANTED_BY = "docker.service.wants";
/** Where systemd looks for what a unit wants. */
const UNIT_FOLDERS = ["/etc/systemd/system", "/run/systemd/system", "/usr/lib/systemd/system", "/lib/systemd/system"];

interface BootClosingParts {
  /** That of the service; undefined where dns11 is no service. */
  readonly folder: string | undefined;
  readonly unitFolders?: readonly string[];
}

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
