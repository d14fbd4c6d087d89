/**
 * Document: a YAML text as plain values, with the line and column of each value.
 */
import { LineCounter, type Node, type Pair, isAlias, isMap, isNode, isScalar, isSeq, parseDocument, visit } from "yaml";

import { BadSettings, MISTAKES_SHOWN_MAX } from "../bad-settings.ts";
import { type Kind, badPartsOf } from "../kinds.ts";

interface TextPosition {
  readonly line: number;
  readonly column: number;
}

interface Mistake extends TextPosition {
  readonly what: string;
}

export interface Document {
  readonly value: unknown;
  /** Mistakes in the YAML itself; if there are any, the value is undefined. */
  readonly mistakes: readonly Mistake[];
  /** The position of the value at a path, or of the nearest node around it. */
  positionOf(path: readonly PropertyKey[]): TextPosition;
  /** The position of the key of the value at a path. */
  keyPositionOf(path: readonly PropertyKey[]): TextPosition;
  /** The positions of all keys of the map at a path. */
  keyPositions(path: readonly PropertyKey[]): ReadonlyMap<string, TextPosition>;
}

/** Throws a Fault that lists the mistakes in the YAML itself. */
export function readYaml(text: string, path: string): Document {
  const document = readDocument(text);
  if (document.mistakes.length > 0) throw new BadSettings(document.mistakes.map((each) => mistakeText(path, each)));
  return document;
}

/** The value of a document. Throws a Fault that lists what is wrong with it, in the order of the lines. */
export function readAs<T>(kind: Kind<T>, document: Document, path: string): T {
  try {
    return kind.read(document.value);
  } catch (error) {
    const all = badPartsOf(error, document.value);
    const shown = all.slice(0, MISTAKES_SHOWN_MAX).map((each) => ({
      ...(each.isKey ? document.keyPositionOf(each.path) : document.positionOf(each.path)),
      what: `${pathText(each.path)}: ${each.what()}`,
    }));
    const lines = shown
      .toSorted((a, b) => a.line - b.line || a.column - b.column)
      .map((each) => mistakeText(path, each));
    throw new BadSettings(lines, all.length);
  }
}

/** Of a key, for messages: `dns11.yaml:3:1: cache.size`. */
export function keyPlace(document: Document, path: string, of: readonly string[]): string {
  return mistakeText(path, { ...document.keyPositionOf(of), what: of.join(".") });
}

function mistakeText(path: string, { line, column, what }: Mistake): string {
  return `${path}:${line}:${column}: ${what}`;
}

function pathText(path: readonly PropertyKey[]): string {
  return path
    .map((step) => (typeof step === "number" ? `[${step}]` : `.${String(step)}`))
    .join("")
    .slice(1);
}

/** How often aliases may be used: enough for any real file, too few to exhaust the memory. */
const ALIASES_MAX = 100;
const START: TextPosition = { line: 1, column: 1 };

export function readDocument(text: string): Document {
  const lines = new LineCounter();
  const placeAt = (offset: number): TextPosition => {
    const { line, col } = lines.linePos(offset);
    return { line: Math.max(1, line), column: Math.max(1, col) };
  };
  const bad = (what: string, place = START): Document => ({
    value: undefined,
    mistakes: [{ ...place, what }],
    positionOf: () => START,
    keyPositionOf: () => START,
    keyPositions: () => new Map(),
  });
  try {
    // With uniqueKeys the parser compares each key with all others; `mistakesOfNodes` is much faster.
    const parsed = parseDocument(text, {
      lineCounter: lines,
      prettyErrors: false,
      stringKeys: true,
      uniqueKeys: false,
    });
    const tooDeep = parsed.errors.find(({ message }) => TOO_DEEP.test(message));
    if (tooDeep !== undefined) return bad(TOO_DEEP_MESSAGE, placeAt(tooDeep.pos[0]));
    const mistakes = [
      ...[...parsed.errors, ...parsed.warnings].map(({ code, message, pos }) => ({
        at: pos[0],
        what: CLEARER_MESSAGES[code] ?? lowered(message),
      })),
      ...mistakesOfNodes(parsed),
    ].map(({ at, what }): Mistake => ({ ...placeAt(at), what }));
    const root = parsed.contents;
    return {
      value: mistakes.length > 0 ? undefined : parsed.toJS({ maxAliasCount: ALIASES_MAX }),
      mistakes,
      positionOf: (path) => placeAt(startOf(stepsTo(root, path).at(-1)?.value) ?? 0),
      keyPositionOf: (path) => placeAt(startOf(stepsTo(root, path).at(-1)?.key) ?? 0),
      keyPositions: (path) => {
        const map = resolved(parsed, stepsTo(root, path).at(-1)?.value);
        const items = isMap(map) ? map.items : [];
        return new Map(items.map(({ key }) => [isScalar(key) ? String(key.value) : "", placeAt(startOf(key) ?? 0)]));
      },
    };
  } catch (error) {
    if (error instanceof RangeError) return bad(TOO_DEEP_MESSAGE);
    // Too many aliases.
    if (error instanceof ReferenceError) return bad("too many aliases (*)");
    throw error;
  }
}

/** What an alias (`*name`) stands for. */
function resolved(parsed: ReturnType<typeof parseDocument>, node: unknown): unknown {
  return isAlias(node) ? node.resolve(parsed) : node;
}

const TOO_DEEP_MESSAGE = "nested too deeply";
const TOO_DEEP = /call stack/i;

interface NodeMistake {
  readonly at: number;
  readonly what: string;
}

/** Mistakes in valid YAML: duplicate keys and undefined aliases. */
function mistakesOfNodes(parsed: ReturnType<typeof parseDocument>): NodeMistake[] {
  const found: NodeMistake[] = [];
  visit(parsed, {
    Alias: (_, alias) => {
      if (alias.resolve(parsed) !== undefined) return;
      found.push({
        at: startOf(alias) ?? 0,
        what: `undefined alias "*${alias.source}": define it before with "&${alias.source}"`,
      });
    },
    Map: (_, map) => {
      const seen = new Set<unknown>();
      for (const { key } of map.items) {
        const name = isScalar(key) ? key.value : key;
        if (seen.has(name)) found.push({ at: startOf(key) ?? 0, what: `${String(name)}: duplicate key` });
        if (name === "__proto__") found.push({ at: startOf(key) ?? 0, what: "__proto__: invalid key" });
        seen.add(name);
      }
    },
  });
  return found;
}

/** Replacements for unclear messages of the parser. */
const CLEARER_MESSAGES: Readonly<Record<string, string>> = {
  TAB_AS_INDENT: "tabs are not allowed for indentation; use spaces",
  NON_STRING_KEY: "the key must be a string",
  MULTIPLE_DOCS: 'multiple documents: remove the "---"',
};

interface PathStep {
  readonly key: unknown;
  readonly value: unknown;
}

/** The steps from the root to the value at a path, as far as they exist. */
function stepsTo(root: unknown, path: readonly PropertyKey[]): PathStep[] {
  const steps: PathStep[] = [{ key: root, value: root }];
  for (const name of path) {
    const node = steps.at(-1)?.value;
    const step = isMap(node) ? inMap(node.items, name) : isSeq(node) ? itemOf(node.items[Number(name)]) : undefined;
    if (step === undefined) break;
    steps.push(step);
  }
  return steps;
}

function inMap(items: readonly Pair[], name: PropertyKey): PathStep | undefined {
  const pair = items.find(({ key }) => (isScalar(key) ? String(key.value) : undefined) === String(name));
  // For a key without a value, the position of the key is used.
  return pair && { key: pair.key, value: startOf(pair.value) === undefined ? pair.key : pair.value };
}

function itemOf(node: unknown): PathStep | undefined {
  return node === undefined ? undefined : { key: node, value: node };
}

function startOf(node: unknown): number | undefined {
  return isNode(node) ? (node as Node).range?.[0] : undefined;
}

function lowered(message: string): string {
  return message.charAt(0).toLowerCase() + message.slice(1);
}
