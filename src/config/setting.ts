/**
 * Setting: what is declared of one setting: the kind of its value, its default, its flag if people type it by hand, and what
 * it does.
 */
import type { Document } from "./file/document.ts";
import type { Schema } from "./file/schema-parts.ts";
import type { Kind } from "./kinds.ts";

/** A flag that corresponds to a key. */
interface FlagDeclaration {
  /** With its argument: `kind-ip <address>`. */
  readonly flag: string;
  /** The value without an argument, where that is optional. */
  readonly preset?: string;
}

interface Setting<T> {
  readonly kind: Kind<T>;
  /** The value, a list of values, or a list that the file may have as its only value. */
  readonly form: "one" | "list" | "one-or-more";
  /** What separates the values of a list in a variable. */
  readonly separator: RegExp;
  /** In one sentence, without a full stop. */
  readonly help: string;
  readonly flag: FlagDeclaration | undefined;
  /** A reload does not change it: what it decides happens once, at the start. */
  readonly isForStart: boolean;
  /** It has no effect inside of a KIND node. */
  readonly needsEngine: boolean;
}

export interface OneSetting<T> extends Setting<T> {
  readonly form: "one";
  /** Undefined where there is none. */
  readonly fallback: T | undefined;
}

export interface ListSetting<T> extends Setting<T> {
  readonly form: "list" | "one-or-more";
  readonly fallback: readonly T[];
}

/** One of any type. */
export type AnySetting = OneSetting<unknown> | ListSetting<unknown>;

export type SettingsTable = Readonly<Record<string, AnySetting>>;

type ValueOf<S> = S extends OneSetting<infer T> ? T : S extends ListSetting<infer T> ? readonly T[] : never;

export type ValuesOf<T> = { readonly [K in keyof T]: ValueOf<T[K]> };

/** The values of a feature's own settings. */
export function featureValues<T extends SettingsTable>(
  table: T,
  { features }: { readonly features: Readonly<Record<string, unknown>> },
): ValuesOf<T> {
  return Object.fromEntries(Object.keys(table).map((key) => [key, features[key]])) as ValuesOf<T>;
}

/** A map with keys of people's choice, which only the settings file has. */
export interface MapSetting<T = unknown> {
  readonly fallback: T;
  readonly help: string;
  /** In the form of the settings file, so that a changed one is seen. */
  write(value: T): unknown;
  /** How a file is read: loaded where there is one, because the packages for it take memory. */
  readonly file: () => Promise<MapFile<T>>;
}

interface MapFile<T = unknown> {
  readonly SCHEMA: Schema;
  /** The value of what the schema has read. Throws a Fault that lists what the schema cannot see. */
  place(written: unknown, document: Document, path: string): T;
}

export type MapsTable = Readonly<Record<string, MapSetting>>;

export type MapValuesOf<T> = { readonly [K in keyof T]: T[K] extends MapSetting<infer V> ? V : never };

/** The values of a feature's own maps. */
export function mapValues<T extends MapsTable>(
  table: T,
  { features }: { readonly features: Readonly<Record<string, unknown>> },
): MapValuesOf<T> {
  return Object.fromEntries(Object.keys(table).map((key) => [key, features[key]])) as MapValuesOf<T>;
}

interface About {
  readonly flag?: string;
  readonly preset?: string;
  readonly isForStart?: boolean;
  readonly needsEngine?: boolean;
}

export function one<T>(
  kind: Kind<T>,
  fallback: NoInfer<T> | undefined,
  help: string,
  about: About = {},
): OneSetting<T> {
  const { isForStart = false, needsEngine = false } = about;
  return { kind, form: "one", separator: /^/, fallback, help, flag: flagOf(about), isForStart, needsEngine };
}

interface AboutList<T> extends About {
  readonly isOneOrMore?: boolean;
  readonly separator?: RegExp;
  readonly fallback?: readonly T[];
}

export function list<T>(kind: Kind<T>, help: string, about: AboutList<NoInfer<T>> = {}): ListSetting<T> {
  const { isOneOrMore = false, separator = /[\s,]+/, fallback = [], isForStart = false, needsEngine = false } = about;
  return {
    kind,
    form: isOneOrMore ? "one-or-more" : "list",
    separator,
    fallback,
    help,
    flag: flagOf(about),
    isForStart,
    needsEngine,
  };
}

function flagOf({ flag, preset }: About): FlagDeclaration | undefined {
  return flag === undefined ? undefined : { flag, ...(preset !== undefined && { preset }) };
}
