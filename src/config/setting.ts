/**
 * Setting: what is declared of one setting: the kind of its value, its default, its flag if people type it by hand, and what
 * it does.
 */
import type { Document } from "./file/document.ts";
import { type Kind, listOf, oneOrMore } from "./kinds.ts";

/** A flag that corresponds to a key. */
interface FlagDeclaration {
  /** With its argument: `kind-ip <address>`. */
  readonly flag: string;
  /** The value without an argument, where that is optional. */
  readonly preset?: string;
}

export interface Setting<T> {
  readonly kind: Kind<T>;
  /** Of a list, the kind of its values: a flag has one of them, and may be repeated. */
  readonly each?: Kind<unknown>;
  /** Undefined where there is none. */
  readonly fallback: T | undefined;
  /** The same in strict mode, where that is another one. */
  readonly strictFallback?: T | undefined;
  /** In one sentence, without a full stop. */
  readonly help: string;
  readonly flag: FlagDeclaration | undefined;
  /** A reload does not change it: what it decides happens once, at the start. */
  readonly isForStart: boolean;
  /** It has no effect inside of a KIND node. */
  readonly needsEngine: boolean;
}

/**
 * The variable of a setting, for where flags and files are awkward; a map has none. Its name follows from the key: DNS11_KIND_NODES for
 * kind.nodes.
 */
export function variableOf(key: string): string {
  return `DNS11_${key.toUpperCase().replaceAll(/[.-]/g, "_")}`;
}

/** One of any type. */
export type AnySetting = Setting<unknown>;

export type SettingsTable = Readonly<Record<string, AnySetting>>;

export type ValuesOf<T> = { readonly [K in keyof T]: T[K] extends Setting<infer V> ? V : never };

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
  /** How a file is read: loaded where there is one. */
  readonly file: () => Promise<MapFile<T>>;
}

interface MapFile<T = unknown> {
  readonly WRITTEN: Kind<unknown>;
  /** What else of a file the value is made of: keys of their own, and keys of each network. */
  readonly ALSO?: {
    readonly keys?: Readonly<Record<string, Kind<unknown>>>;
    readonly ofNetworks?: Readonly<Record<string, Kind<unknown>>>;
  };
  /**
   * The value of what was read; `file` is all that was. Undefined where nothing of it is the setting's. Throws a Fault that lists what its
   * kind cannot see.
   */
  place(written: unknown, document: Document, path: string, file: Readonly<Record<string, unknown>>): T | undefined;
  /** What is valid, and hardly meant. */
  warnings?(value: T): readonly string[];
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

interface AboutOne<T> extends About {
  /** The default in strict mode, where that is another one. */
  readonly strict?: T;
}

export function one<T>(
  kind: Kind<T>,
  fallback: NoInfer<T> | undefined,
  help: string,
  about: AboutOne<NoInfer<T>> = {},
): Setting<T> {
  const { strict: strictFallback = fallback } = about;
  return { kind, fallback, strictFallback, help, ...declared(about) };
}

interface AboutList<T> extends About {
  /** A file may have the only value of the list in place of the list. */
  readonly isOneOrMore?: boolean;
  /** What separates the values in a variable. */
  readonly separator?: RegExp;
  readonly fallback?: readonly T[];
}

export function list<T>(each: Kind<T>, help: string, about: AboutList<NoInfer<T>> = {}): Setting<readonly T[]> {
  const { isOneOrMore = false, separator, fallback = [] } = about;
  const kind = isOneOrMore ? oneOrMore(each, separator) : listOf(each, separator);
  return { kind, each, fallback, help, ...declared(about) };
}

function declared({
  flag,
  preset,
  isForStart = false,
  needsEngine = false,
}: About): Pick<AnySetting, "flag" | "isForStart" | "needsEngine"> {
  return {
    flag: flag === undefined ? undefined : { flag, ...(preset !== undefined && { preset }) },
    isForStart,
    needsEngine,
  };
}
