/**
 * Document: a YAML text as plain values, with the line and column of each of them.
 */
import { LineCounter, type Node, type Pair, isMap, isNode, isScalar, isSeq, parseDocument, visit } from "yaml";

export interface TextPosition {
  readonly line: number;
  readonly column: number;
}

export interface Mistake extends TextPosition {
  readonly what: string;
}

export interface Document {
  readonly value: unknown;
  /** Where the YAML itself is wrong; the value is then of no use. */
  readonly mistakes: readonly Mistake[];
  /** Where the value at a path stands, or the nearest thing around it. */
  positionOf(path: readonly PropertyKey[]): TextPosition;
  /** Where the key stands under which the value at a path is. */
  keyPositionOf(path: readonly PropertyKey[]): TextPosition;
}

/** Names for values (anchors) may be used so often: enough for people, too little to fill the memory. */
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
  });
  try {
    // The parser compares each key with all before it; `mistakesOfNodes` takes a fraction of that time.
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
    };
  } catch (error) {
    if (error instanceof RangeError) return bad(TOO_DEEP_MESSAGE);
    // Names that multiply.
    if (error instanceof ReferenceError) return bad("names (*) stand for more than a settings file can mean");
    throw error;
  }
}

const TOO_DEEP_MESSAGE = "nests too deeply";
const TOO_DEEP = /call stack/i;

interface NodeMistake {
  readonly at: number;
  readonly what: string;
}

/** What is good YAML, but means nothing: a key twice, a name that nothing has. */
function mistakesOfNodes(parsed: ReturnType<typeof parseDocument>): NodeMistake[] {
  const found: NodeMistake[] = [];
  visit(parsed, {
    Alias: (_, alias) => {
      if (alias.resolve(parsed) !== undefined) return;
      found.push({ at: startOf(alias) ?? 0, what: `nothing above is called "&${alias.source}"` });
    },
    Map: (_, map) => {
      const seen = new Set<unknown>();
      for (const { key } of map.items) {
        const name = isScalar(key) ? key.value : key;
        if (seen.has(name)) found.push({ at: startOf(key) ?? 0, what: `${String(name)}: stands here twice` });
        if (name === "__proto__") found.push({ at: startOf(key) ?? 0, what: "__proto__: cannot be a key" });
        seen.add(name);
      }
    },
  });
  return found;
}

/** The parser's own words, where they do not help whoever wrote the file. */
const CLEARER_MESSAGES: Readonly<Record<string, string>> = {
  TAB_AS_INDENT: "a tab stands where blanks must: YAML is indented with blanks",
  NON_STRING_KEY: "this key is no text",
  MULTIPLE_DOCS: 'a second document begins here: a settings file is one document, without "---" in it',
};

interface PathStep {
  readonly key: unknown;
  readonly value: unknown;
}

/** From the root to the value at a path, as far as there is something. */
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
  // A key without a value is the best place there is for it.
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
