/**
 * StartRemedy: how whoever finds that dns11 is not running starts it: by its unit, where one is installed.
 */
import { existsSync } from "node:fs";

const UNITS = ["/etc/systemd/system", "/usr/lib/systemd/system", "/lib/systemd/system"];

export function startRemedy(otherwise: string, folders: readonly string[] = UNITS): string {
  const isInstalled = folders.some((folder) => existsSync(`${folder}/dns11.service`));
  return isInstalled
    ? "Start it with: sudo systemctl start dns11. If it has ended: journalctl -u dns11"
    : `Start it with: ${otherwise}`;
}
