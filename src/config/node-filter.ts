/**
 * Node filters: how settings select the containers that are KIND nodes.
 */
import type { NodeFilter } from "../base/model/kind-policy.ts";

export const NODE_FILTER_FORMS = "auto, label=KEY, label=KEY=VALUE or name=PATTERN";

/** Parses one filter; undefined if it has none of the forms. */
export function parseNodeFilter(text: string): NodeFilter | undefined {
  if (text === "auto") return { kind: "auto" };
  const [, kind, rest] = /^(label|name)=(.+)$/s.exec(text) ?? [];
  if (rest === undefined) return undefined;
  if (kind === "name") return { kind: "name", pattern: rest };
  const [, key, value] = /^([^=]+)(?:=(.*))?$/s.exec(rest) ?? [];
  return key === undefined ? undefined : { kind: "label", key, value };
}

export function nodeFilterText(filter: NodeFilter): string {
  if (filter.kind === "auto") return "auto";
  if (filter.kind === "name") return `name=${filter.pattern}`;
  return `label=${filter.key}${filter.value === undefined ? "" : `=${filter.value}`}`;
}
