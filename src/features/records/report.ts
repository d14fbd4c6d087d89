import type { Status } from "../../api/status.ts";
import { type Finding, findingsOf } from "../../base/model/finding.ts";
import { DeclaredSet } from "../../config/records/declared-set.ts";
import type { Settings } from "../../config/settings.ts";
import type { StatusLine } from "../contract.ts";
import { recordsOf } from "./feature.ts";

export const checks = {
  records: {
    title: "declared names",
    examines:
      "names that you declare: whether a file of the records folder has turned bad, so that a change of it has no effect",
  },
};
const finding = findingsOf(checks);

/** The declared names, if there are any, and what is wrong with their files. */
export function statusLines({ records = { names: 0, problems: [] } }: Pick<Status, "records">): StatusLine[] {
  const { names, problems } = records;
  return [
    ...(names === 0 && problems.length === 0 ? [] : [{ label: "records", text: `${names} declared names` }]),
    ...problems.map((text) => ({ label: "", text, colour: "red" as const })),
  ];
}

const CORRECT = "Correct the file: dns11 reads it again at once. `dns11 check-config` lists all mistakes.";
/** One file may have very many mistakes. */
const SHOWN = 8;

/**
 * Files of the records folder that turned bad. The names that such a file had before stay, so nothing else shows that a change of it has
 * no effect.
 */
export function findings({ status }: { readonly status: Pick<Status, "records"> | undefined }): Finding[] {
  const { names = 0, problems = [] } = status?.records ?? {};
  if (problems.length === 0) {
    const count = `${names} declared ${names === 1 ? "name" : "names"}`;
    return names === 0 ? [] : [finding("records", "ok", `${count}, and every file is valid`)];
  }
  const more = problems.length - SHOWN;
  return problems.slice(0, SHOWN).map((problem, index) => {
    const rest = index === SHOWN - 1 && more > 0 ? `; and ${more} more` : "";
    return finding("records", "warning", `${problem}; names that the file had before stay${rest}`, CORRECT);
  });
}

/** The mistakes in the files of the folder. Throws a Fault if it cannot be read. */
export async function fileMistakes(settings: Settings): Promise<readonly string[]> {
  const { records, folder } = recordsOf(settings);
  if (folder === undefined) return [];
  const all = new DeclaredSet();
  all.add(records);
  const { readFolder } = await import("./files.ts");
  const files = await readFolder(folder);
  return files.flatMap(({ names, mistakes }) => (names === undefined ? mistakes : all.add(names)));
}
