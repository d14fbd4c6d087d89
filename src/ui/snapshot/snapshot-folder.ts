/**
 * SnapshotFolder: writes a snapshot as a folder that a browser opens from disk: the files of the page, and the data as a script, because
 * a page from disk may read nothing else. A folder with anything that is not such a snapshot stays as it is.
 */
import { lstatSync, mkdirSync, readFileSync, readdirSync, unlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import type { Snapshot } from "../../api/snapshot.ts";
import { Fault, codeOf } from "../../base/lib/fault.ts";
import { INDEX, type PageFiles, SNAPSHOT_POLICY } from "../server/page-files.ts";

const DATA = "data.js";
const BEGINNING = "globalThis.dns11Snapshot =";
/** The place in the page's index where the snapshot puts its policy and its data. */
const PLACE = "<!-- snapshot -->";
/** Only its owner can read it. */
const FOLDER_MODE = 0o700;
const FILE_MODE = 0o600;

export class SnapshotFolder {
  readonly #path: string;
  readonly #files: PageFiles;

  /** Creates the folder if needed; throws a Fault if something else is there. */
  constructor(path: string, files: PageFiles) {
    this.#path = path;
    this.#files = files;
    try {
      mkdirSync(path, { mode: FOLDER_MODE });
    } catch (cause) {
      if (codeOf(cause) !== "EEXIST") {
        throw new Fault("SNAPSHOT", `Cannot create "${path}"`, {
          cause,
          remedy: "Choose a folder below a directory that exists and that you may write to.",
        });
      }
      if (!this.#isOurs()) throw foreign(path);
    }
  }

  write(snapshot: Snapshot): { readonly files: number; readonly bytes: number } {
    const contents = new Map([...this.#files].map(([name, { bytes }]) => [name, bytes]));
    contents.set(INDEX, Buffer.from(indexOf(contents.get(INDEX)?.toString() ?? "")));
    contents.set(DATA, Buffer.from(`${BEGINNING} ${scriptText(snapshot)};\n`));
    let bytes = 0;
    for (const [name, content] of contents) {
      writeNew(join(this.#path, name), content);
      bytes += content.length;
    }
    return { files: contents.size, bytes };
  }

  /** It is empty, or an earlier snapshot; and no link, and nobody else's, who could put links into it. */
  #isOurs(): boolean {
    const stat = lstatSync(this.#path);
    if (!stat.isDirectory() || stat.uid !== process.geteuid?.()) return false;
    const names = readdirSync(this.#path);
    if (names.length === 0) return true;
    return names.every((name) => name === DATA || this.#files.has(name)) && this.#hasData(names);
  }

  #hasData(names: readonly string[]): boolean {
    const path = join(this.#path, DATA);
    return names.includes(DATA) && lstatSync(path).isFile() && readFileSync(path, "latin1").startsWith(BEGINNING);
  }
}

/** Follows no link. */
function writeNew(path: string, content: Buffer): void {
  try {
    unlinkSync(path);
  } catch (error) {
    if (codeOf(error) !== "ENOENT") throw error;
  }
  // O_EXCL: not even a link is followed.
  writeFileSync(path, content, { flag: "wx", mode: FILE_MODE });
}

function indexOf(html: string): string {
  const policy = `<meta http-equiv="Content-Security-Policy" content="${SNAPSHOT_POLICY}">`;
  return html.replace(PLACE, () => `${policy}<script src="${DATA}" defer></script>`);
}

/** ASCII only, and without the beginning of any markup: names are chosen by others. */
function scriptText(snapshot: Snapshot): string {
  return JSON.stringify(snapshot).replaceAll(
    /[<>&\u007F-\uFFFF]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

function foreign(path: string): Fault {
  return new Fault("SNAPSHOT_EXISTS", `"${path}" exists and is not an earlier snapshot of yours`, {
    remedy: "Choose a folder that does not exist yet, or an empty one.",
  });
}
