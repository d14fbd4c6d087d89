import { type DeclaredName, scopeText } from "../../base/model/declared-name.ts";
import { type FolderFormat, NOT_WITH_STRICT } from "../../config/feature-entry.ts";
import { path } from "../../config/kinds.ts";
import { type MapSetting, featureValues, mapValues, one } from "../../config/setting.ts";
import type { Settings } from "../../config/settings.ts";

const SHOWN_MAX = 100;

const settings = {
  "records-dir": one(
    path("/etc/dns11/records"),
    undefined,
    "folder with files of records, in YAML or the format of /etc/hosts, followed while dns11 runs",
    { flag: "records-dir <folder>" },
  ),
};

const maps = {
  records: {
    fallback: [],
    help: "names that containers resolve, with their records: {NAME: ADDRESS} or {NAME: {cname: NAME}}; also below networks.NAME and projects.NAME",
    write: written,
    file: async () => await import("./file-schema.ts"),
  } satisfies MapSetting<readonly DeclaredName[]>,
};

/** Names that the operator declares, in the settings and in a folder of files. */
export const RECORDS = {
  settings,
  maps,
  folders: {
    "records-dir": { reader: async () => await import("./files.ts") } satisfies FolderFormat,
  },
  conflicts,
  report: async () => await import("./report.ts"),
  load: async () => await import("./records.ts"),
} as const;

export interface RecordsSettings {
  /** The names that the settings declare. */
  readonly records: readonly DeclaredName[];
  /** The folder with files that declare more. */
  readonly folder: string | undefined;
}

export function recordsOf(all: Pick<Settings, "features">): RecordsSettings {
  return { records: mapValues(maps, all).records, folder: featureValues(settings, all)["records-dir"] };
}

/** Declared names are more than Docker has, and their other types are never forwarded. */
function conflicts(all: Settings): readonly (readonly ["records" | "records-dir", string])[] {
  if (all.behaviour.answersAllTypes) return [];
  const { records, folder } = recordsOf(all);
  return [
    ...(records.length === 0 ? [] : [["records", NOT_WITH_STRICT] as const]),
    ...(folder === undefined ? [] : [["records-dir", NOT_WITH_STRICT] as const]),
  ];
}

/** A list for every name; a long one only as a number. */
function written(names: readonly DeclaredName[]): unknown {
  if (names.length > SHOWN_MAX) return `${names.length} names`;
  return Object.fromEntries(
    names.map(({ name, scope, records, alias, containers }) => [
      scope.kind === "everybody" ? name : `${name} (${scopeText(scope)})`,
      [
        ...records.map(({ text }) => text),
        ...(alias === undefined ? [] : [`CNAME ${alias}`]),
        ...containers.map((each) => `container ${each}`),
      ],
    ]),
  );
}
