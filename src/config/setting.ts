/**
 * Setting: what is declared of one setting: the kind of its value, its default, its flag if people type it by hand, and what
 * it does.
 */
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

interface About {
  readonly flag?: string;
  readonly preset?: string;
  readonly isForStart?: boolean;
}

export function one<T>(
  kind: Kind<T>,
  fallback: NoInfer<T> | undefined,
  help: string,
  about: About = {},
): OneSetting<T> {
  const { isForStart = false } = about;
  return { kind, form: "one", separator: /^/, fallback, help, flag: flagOf(about), isForStart };
}

interface AboutList<T> extends About {
  readonly isOneOrMore?: boolean;
  readonly separator?: RegExp;
  readonly fallback?: readonly T[];
}

export function list<T>(kind: Kind<T>, help: string, about: AboutList<NoInfer<T>> = {}): ListSetting<T> {
  const { isOneOrMore = false, separator = /[\s,]+/, fallback = [], isForStart = false } = about;
  return {
    kind,
    form: isOneOrMore ? "one-or-more" : "list",
    separator,
    fallback,
    help,
    flag: flagOf(about),
    isForStart,
  };
}

function flagOf({ flag, preset }: About): FlagDeclaration | undefined {
  return flag === undefined ? undefined : { flag, ...(preset !== undefined && { preset }) };
}
