import type { Explanation } from "../../api/names.ts";
import type { StatusLine } from "../contract.ts";

/** That addresses were left out: without it, an answer without any looks like a name without any. */
export function explanationLines({ steps }: Explanation): readonly StatusLine[] {
  return steps
    .filter(({ layer }) => layer === "filter")
    .slice(0, 1)
    .map(({ why }) => ({ label: "families", text: why }));
}
