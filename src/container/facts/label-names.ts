/**
 * LabelNames: the names that a label gives a container, in addition to its aliases, and which aliases are wildcards. The
 * author of either creates containers, so their number is limited.
 */
import { LIMITS } from "../../base/limits.ts";
import { shortened } from "../../base/lib/shortened.ts";
import { WILDCARD, normalName, problemOf } from "../../base/model/extra-name.ts";
import type { Labels } from "./labels.ts";

/** The label with names of a container on all its networks, separated by blanks or commas. */
export const NAMES_LABEL = "io.dns11.names";

export interface ExtraNames {
  /** Normal names; wildcards begin with "*.". */
  readonly names: readonly string[];
  readonly warning?: string;
}

/** The names of the label. Invalid ones are ignored, and the warning quotes the first of them. */
export function labelNames(labels: Labels): ExtraNames {
  const text = labels[NAMES_LABEL] ?? "";
  const all = text
    .slice(0, LIMITS.labelChars)
    .split(/[\s,]+/)
    .filter((word) => word !== "");
  const isTooLong = text.length > LIMITS.labelChars;
  // The last name of a label that is too long may be cut.
  return readNames(isTooLong ? all.slice(0, -1) : all, `label ${NAMES_LABEL}`, isTooLong);
}

/** The aliases of an endpoint that are wildcards. */
export function aliasWildcards(aliases: readonly string[], network: string): ExtraNames {
  return readNames(
    aliases.filter((alias) => alias === "*" || alias.startsWith(WILDCARD)),
    `alias on network "${network}"`,
    false,
  );
}

function readNames(texts: readonly string[], where: string, isTooLong: boolean): ExtraNames {
  const distinct = [...new Set(texts.map((text) => normalName(text)))];
  const valid = distinct.filter((name) => problemOf(name) === undefined);
  const bad = distinct.find((name) => problemOf(name) !== undefined);
  const isTooMany = isTooLong || valid.length > LIMITS.labelNames;
  const warnings = [
    ...(bad === undefined
      ? []
      : [`invalid ${where}: "${shortened(bad, LIMITS.labelCharsShown)}" is ignored: ${problemOf(bad) ?? ""}`]),
    ...(isTooMany
      ? [`${where} has too many names: the limit is ${LIMITS.labelNames} names in ${LIMITS.labelChars} characters`]
      : []),
  ];
  const names = valid.slice(0, LIMITS.labelNames);
  return warnings.length === 0 ? { names } : { names, warning: warnings.join("; ") };
}
