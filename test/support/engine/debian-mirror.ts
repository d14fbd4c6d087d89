/**
 * Owns the question where this machine gets its Debian packages from. The rig asks the same mirror for other suites,
 * for a machine shut off from the internet often reaches a mirror of its own only.
 */
import { readdirSync } from "node:fs";
import { textOf } from "../rig/text-of.ts";

const FALLBACK_MIRROR = "http://deb.debian.org/debian";

type Source = { readonly uri: string; readonly suites: string[]; readonly components: string[] };

/**
 * The own suite in full, as against an update, security or third-party one, is what tells Debian's mirror from others.
 */
export function debianMirror(): string {
  const own = /^VERSION_CODENAME=(\S+)/m.exec(textOf("/etc/os-release"))?.[1] ?? "bookworm";
  const sources = [...listSources(), ...deb822Sources()];
  const mirror = sources.find(
    ({ uri, suites, components }) => isPlain(uri) && suites.includes(own) && components.includes("main"),
  );
  return mirror?.uri ?? FALLBACK_MIRROR;
}

/** A mirror list (mirror+file:) names no mirror that mmdebstrap could be given. */
function isPlain(uri: string): boolean {
  return /^(https?|file|copy):/.test(uri);
}

function listSources(): Source[] {
  const text = ["/etc/apt/sources.list", ...filesIn("/etc/apt/sources.list.d", ".list")].map(textOf).join("\n");
  const matches = text.matchAll(/^deb\s+(?:\[[^\]]*\]\s+)?(\S+)\s+(\S+)\s+(.*)$/gm);
  return [...matches].map(([, uri = "", suite = "", components = ""]) => ({
    uri,
    suites: [suite],
    components: components.split(/\s+/),
  }));
}

function deb822Sources(): Source[] {
  const stanzas = filesIn("/etc/apt/sources.list.d", ".sources").flatMap((file) => textOf(file).split(/\n\s*\n/));
  return stanzas
    .filter((stanza) => !/^enabled:\s*no/im.test(stanza) && fieldOf(stanza, "types").includes("deb"))
    .flatMap((stanza) =>
      fieldOf(stanza, "uris").map((uri) => ({
        uri,
        suites: fieldOf(stanza, "suites"),
        components: fieldOf(stanza, "components"),
      })),
    );
}

function fieldOf(stanza: string, field: string): string[] {
  const value = new RegExp(`^${field}:\\s*(.*)$`, "im").exec(stanza)?.[1] ?? "";
  return value.split(/\s+/).filter((word) => word !== "");
}

function filesIn(folder: string, ending: string): string[] {
  try {
    return readdirSync(folder)
      .filter((name) => name.endsWith(ending))
      .map((name) => `${folder}/${name}`);
  } catch {
    return [];
  }
}
