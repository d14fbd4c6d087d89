/**
 * Only: the setting that selects which containers are served, where not all are.
 */

/** `label=KEY[=VALUE]` and `network=NAME`. */
export type OnlyFilter =
  | { readonly kind: "label"; readonly key: string; readonly value: string | undefined }
  | { readonly kind: "network"; readonly name: string };

export const ONLY_FORMS = "label=KEY, label=KEY=VALUE or network=NAME";

/** Parses one filter; undefined where it has neither form. */
export function parseOnly(text: string): OnlyFilter | undefined {
  const [, kind, rest] = /^(label|network)=(.+)$/s.exec(text) ?? [];
  if (rest === undefined) return undefined;
  if (kind === "network") return { kind: "network", name: rest };
  const equals = rest.indexOf("=");
  if (equals === 0) return undefined;
  return equals === -1
    ? { kind: "label", key: rest, value: undefined }
    : { kind: "label", key: rest.slice(0, equals), value: rest.slice(equals + 1) };
}

export function onlyText(filter: OnlyFilter): string {
  if (filter.kind === "network") return `network=${filter.name}`;
  return `label=${filter.key}${filter.value === undefined ? "" : `=${filter.value}`}`;
}
