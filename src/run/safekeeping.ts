/**
 * Safekeeping: the keeper of a run, where it has one. It is an addition: whatever becomes of it, names are answered, and
 * without it the kernel takes the rules of a killed process away, one container after the other.
 */
import { join } from "node:path";

import type { Status } from "../api/status.ts";
import type { RunSettings } from "../config/settings.ts";
import { KeeperLink } from "../keeper/keeper-link.ts";
import type { Keep } from "../model/held-namespace.ts";
import type { RuleMeans } from "../model/rule-tier.ts";
import type { Log } from "../observe/log.ts";

const SOCKET = "keeper.sock";

export class Safekeeping {
  readonly #link: KeeperLink | undefined;

  constructor({ keeper }: RunSettings, { tier }: RuleMeans, folder: string, log: Log) {
    // The older iptables has no socket by which rules could be removed: it takes programs, inside the namespace.
    if (keeper === "off" || tier === "iptables-legacy") return;
    const onNews = (about: object, text: string): void => log.warn(about, text);
    this.#link = new KeeperLink({ socketPath: join(folder, SOCKET), onNews });
    this.#link.start();
  }

  /** undefined where nobody keeps. */
  get keep(): Keep | undefined {
    const link = this.#link;
    return link && ((namespace) => link.hold(namespace));
  }

  get report(): Status["keeper"] {
    return this.#link?.report ?? { state: "off", pid: null, namespaces: 0, restarts: 0 };
  }

  /** Everything is handed back. */
  end(): void {
    this.#link?.end();
  }
}
