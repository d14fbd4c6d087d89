/**
 * Fields: reads the fields of a lease's lines. What is unknown or has another form is an error that says what to use, so that a
 * typo never makes a rule that does something else.
 */
import { Fault } from "../../base/lib/fault.ts";
import { nearest } from "../../base/lib/nearest.ts";

export type Fields = Readonly<Record<string, unknown>>;

export function badRule(message: string): Fault {
  return new Fault("BAD_RULE", message);
}

export function fieldsOf(value: unknown, what: string, example: string): Fields {
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as Fields;
  throw badRule(`Invalid ${what}: use a map such as ${example}`);
}

export function refuseUnknownKeys(fields: object, known: readonly string[], what: string): void {
  const unknown = Object.keys(fields).find((key) => !known.includes(key));
  if (unknown === undefined) return;
  const suggestion = nearest(unknown, known);
  const hint = suggestion === undefined ? "" : `did you mean ${suggestion}? `;
  throw badRule(`Unknown field ${quoted(unknown)} of ${what}: ${hint}use ${known.join(", ")}`);
}

export function textOf(fields: Fields, key: string): string | undefined {
  const value = fields[key];
  if (value === undefined) return undefined;
  if (typeof value === "string" && value !== "") return value;
  throw badRule(`Invalid ${key} ${quoted(value)}: use a text`);
}

/** A number between two others. */
export function numberOf(fields: Fields, key: string, min: number, max: number, isWhole = true): number | undefined {
  const value = fields[key];
  if (value === undefined) return undefined;
  if (typeof value === "number" && value >= min && value <= max && (!isWhole || Number.isInteger(value))) return value;
  throw badRule(`Invalid ${key} ${quoted(value)}: use a ${isWhole ? "whole " : ""}number from ${min} to ${max}`);
}

export function flagOf(fields: Fields, key: string): boolean | undefined {
  const value = fields[key];
  if (value === undefined || typeof value === "boolean") return value;
  throw badRule(`Invalid ${key} ${quoted(value)}: use true or false`);
}

export function listOf(fields: Fields, key: string, max: number): readonly unknown[] | undefined {
  const value = fields[key];
  if (value === undefined) return undefined;
  if (Array.isArray(value) && value.length > 0 && value.length <= max) return value;
  throw badRule(`Invalid ${key}: use a list of 1 to ${max}`);
}

const SHOWN_MAX = 60;

/** A value in a message. What is nested is shown by its kind alone, because it may be nested very deeply. */
export function quoted(value: unknown): string {
  if (Array.isArray(value)) return "(a list)";
  if (typeof value === "object" && value !== null) return "(a map)";
  const text = JSON.stringify(value) ?? String(value);
  return text.length > SHOWN_MAX ? `${text.slice(0, SHOWN_MAX)}...` : text;
}
