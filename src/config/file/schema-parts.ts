/**
 * SchemaParts: what the schemas of files are made of: values that are read, lists and maps of them, and what their mistakes are
 * called.
 */
import * as z from "zod";

import { quoteValue } from "../kinds.ts";

export type Schema = z.ZodType;

/** What is read with a schema. */
export type Read<S extends Schema> = z.output<S>;

/** A value that one of the `READERS` validates. */
export function leaf<T>(read: (value: unknown) => T): z.ZodType<T> {
  return z.unknown().transform((value, context) => {
    try {
      return read(value);
    } catch (error) {
      context.addIssue({ code: "custom", message: value === null ? EMPTY : (error as Error).message });
      return z.NEVER;
    }
  });
}

/** A longer list hides the mistake. */
export const KEYS_LISTED_MAX = 8;
const EMPTY = "has no value: set one, or remove the key to use the default";

export function list<T>(read: (value: unknown) => T): z.ZodOptional<z.ZodArray<z.ZodType<T>>> {
  return z
    .array(leaf(read), {
      error: ({ input }) => mistakeOf(read, input) ?? wrongType(`a list, such as ${listExample(input)}`, input),
    })
    .optional();
}

/** What is wrong with a single value, which a list of it would not mend; undefined if nothing is. */
function mistakeOf(read: (value: unknown) => unknown, value: unknown): string | undefined {
  if (typeof value !== "string" && typeof value !== "number") return undefined;
  try {
    read(value);
    return undefined;
  } catch (error) {
    return (error as Error).message;
  }
}

/** A list, or its only value. */
export function oneOrMore<T>(read: (value: unknown) => T): z.ZodOptional<z.ZodType<T[]>> {
  const all = (value: unknown): T[] => (Array.isArray(value) ? value : [value]).map((each) => read(each));
  return leaf(all).optional();
}

function listExample(value: unknown): string {
  return typeof value === "string" || typeof value === "number" ? `[${value}]` : "[one, two]";
}

function wrongType(expected: string, value: unknown): string {
  return value === null ? EMPTY : `invalid value ${quoteValue(value)}: use ${expected}`;
}

export function map<S extends z.ZodRawShape>(shape: S): z.ZodObject<S, z.core.$strict> {
  const keys = Object.keys(shape);
  const which =
    keys.length > KEYS_LISTED_MAX ? `a map with keys such as ${keys[0]}` : `a map with the keys ${keys.join(", ")}`;
  return z.strictObject(shape, { error: ({ input }) => wrongType(which, input) });
}

/** A map by the names of networks or projects. */
export function byName<T extends z.ZodType>(
  what: string,
  value: T,
  example: string,
): z.ZodOptional<z.ZodRecord<z.ZodString, T>> {
  return z
    .record(z.string().min(1), value, {
      error: ({ code, input }) =>
        code === "invalid_key" ? `the ${what} name is empty` : wrongType(`a map, such as ${example}`, input),
    })
    .optional();
}
