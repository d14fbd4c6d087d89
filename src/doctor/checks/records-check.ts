/**
 * Records check: files of the records folder that turned bad. The names that such a file had before stay, so nothing else
 * shows that a change of it has no effect.
 */
import type { Status } from "../../api/status.ts";
import { type Finding, finding } from "../../base/model/finding.ts";

const CORRECT = "Correct the file: dns11 reads it again at once. `dns11 check-config` lists all mistakes.";
/** One file may have very many mistakes. */
const SHOWN = 8;

/** Finds nothing where no names are declared, or dns11 does not run. */
export function recordsFindings({ records }: Pick<Status, "records">): Finding[] {
  const { names = 0, problems = [] } = records ?? {};
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
