/**
 * PageFiles: the files of the page, read once when the command starts. Only these are served, by their exact names, so that no path
 * leads anywhere else.
 */
import { readFileSync, readdirSync } from "node:fs";
import { extname } from "node:path";
import { fileURLToPath } from "node:url";
import { Fault } from "../../base/lib/fault.ts";

interface PageFile {
  readonly type: string;
  readonly bytes: Buffer;
}

/** The key is the name. */
export type PageFiles = ReadonlyMap<string, PageFile>;

export const INDEX = "index.html";

/** By the name of the package: the path differs between the bundled program and the compiled module. */
const FOLDER = fileURLToPath(new URL("dist/ui/", import.meta.resolve("dns11/package.json")));

const TYPES: Readonly<Record<string, string>> = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml",
  ".png": "image/png",
};

export function readPageFiles(folder = FOLDER): PageFiles {
  const files = new Map<string, PageFile>();
  try {
    for (const name of readdirSync(folder)) {
      const type = TYPES[extname(name)];
      if (type !== undefined) files.set(name, { type, bytes: readFileSync(`${folder}/${name}`) });
    }
  } catch (cause) {
    throw notBuilt(cause);
  }
  if (!files.has(INDEX)) throw notBuilt(undefined);
  return files;
}

function notBuilt(cause: unknown): Fault {
  return new Fault("UI_NO_PAGE", "The files of the page are missing from this installation", {
    cause,
    remedy: "Install dns11 again, or build it with: make build",
  });
}

/**
 * What the browser is told with every response: nothing from elsewhere, no inline code, no frame around the page, and
 * nothing is stored.
 */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self'",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "require-trusted-types-for 'script'",
];

export const SECURITY_HEADERS: Readonly<Record<string, string>> = {
  "content-security-policy": [...POLICY, "frame-ancestors 'none'"].join("; "),
  "x-content-type-options": "nosniff",
  "x-frame-options": "DENY",
  "referrer-policy": "no-referrer",
  "cache-control": "no-store",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
};

/** For a page that is opened from disk, which has no origin of its own; it makes no request. */
export const SNAPSHOT_POLICY = POLICY.map((each) =>
  each.replace("connect-src 'self'", "connect-src 'none'").replace("'self'", "'self' file:"),
).join("; ");
