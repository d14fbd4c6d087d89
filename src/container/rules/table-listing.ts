/**
 * TableListing: our nf_tables tables in a namespace as nft prints them, for a bug report. dns11 itself does not need nft.
 */
import { spawnSync } from "node:child_process";

import { LIMITS } from "../../base/limits.ts";
import { codeOf } from "../../base/lib/fault.ts";
import { IP_FAMILIES, TABLE_NAME } from "./plan.ts";

/** Searched after PATH, which often lacks the sbin folders. */
const SYSTEM_FOLDERS = "/usr/sbin:/sbin:/usr/bin:/bin";
const NO_SUCH_TABLE = /No such file or directory/;

/** `namespace` is a descriptor. An error is part of the text. */
export function tableListing(namespace: number): string {
  return IP_FAMILIES.map((family) => {
    const { error, status, stdout, stderr } = spawnSync(
      "nsenter",
      ["--net=/proc/self/fd/3", "--", "nft", "list", "table", family, TABLE_NAME],
      {
        encoding: "utf8",
        timeout: LIMITS.nftListMs,
        killSignal: "SIGKILL",
        env: { PATH: [process.env["PATH"], SYSTEM_FOLDERS].filter(Boolean).join(":"), LC_ALL: "C" },
        stdio: ["ignore", "pipe", "pipe", namespace],
      },
    );
    if (status === 0) return stdout;
    if (error !== undefined) return `nsenter and nft: ${codeOf(error) ?? error.message}\n`;
    return NO_SUCH_TABLE.test(stderr) ? "" : stderr;
  }).join("");
}
