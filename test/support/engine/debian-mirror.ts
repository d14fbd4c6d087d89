/**
 * Debian mirror of this machine. Root file systems of other suites come from the same mirror, because a machine without
 * internet access often reaches only a local one.
 */
import { readdirSync } from "node:fs";
import { textOf } from "../rig/text-of.ts";

const FALLBACK_MIRROR = "http://deb.debian.org/debian";

type Source = { readonly uri: string; readonly suites: string[]; readonly components: string[] };

/**
 * A source with the machine's own suite and component main is the Debian mirror, not an update, security or third-party
 * source.
 */
export function debianMirror(): string {
  const own = /^VERSION_CODENAME=(\S+)/m.exec(textOf("/etc/os-release"))?.[1] ?? "bookworm";
  const sources = [...listSources(), ...deb822Sources()];
  const mirror = sources.find(
    ({ uri, suites, components }) => isPlain(uri) && suites.includes(own) && components.includes("main"),
  );
  return mirror?.uri ?? FALLBACK_MIRROR;
}

/** mmdebstrap cannot use a mirror list (mirror+file:). */
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
