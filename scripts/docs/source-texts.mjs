// @ts-check
/**
 * Source texts: the errors and log messages that a user can meet, read out of the source, so that the lists in the documents
 * are complete by construction. A value in a text becomes "…".
 */
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";

/** @typedef {{ code: string, text: string, remedy: string }} ErrorText */
/** @typedef {{ level: string, text: string, fields: readonly string[] }} LogText */

const ANY = "…";
const LEVELS = ["error", "warn", "info", "debug"];
/** Calls that log or report an event: a level or a callback, then the fields, then the text. */
const LOGGING =
  /\.(error|warn|info|debug)\(|\blog\[[^\]]*\]\(|#log\.line\(|\b(?:repeats|rateLimited\w*|limited\w*)\.\w+\(|\b(?:\w*[eE]vent|report|tell|log)\(/g;

/** @param {readonly string[]} folders @returns {{ path: string, text: string }[]} */
function sourcesIn(folders) {
  return folders.flatMap((folder) =>
    readdirSync(folder, { recursive: true, encoding: "utf8" })
      .filter((file) => file.endsWith(".ts"))
      .toSorted()
      .map((file) => join(folder, file))
      .map((path) => ({ path, text: readFileSync(path, "utf8") })),
  );
}

/** Every Fault with its own text, by code. @returns {ErrorText[]} */
export function errorTexts() {
  const sources = sourcesIn(["cmd", "src"]);
  const constants = constantsIn(sources);
  const found = sources.flatMap(({ text }) =>
    callsOf(text, /\bnew Fault\(/g).flatMap(({ args: [code = "", message = "", options = ""] }) => {
      const name = literal(code) ?? constants.get(code.trim());
      const sentence = textOf(message, constants);
      if (name === undefined || !/[a-z]{2}/.test(sentence)) return [];
      const remedy = /\bremedy:\s*/.exec(options);
      return [{ code: name, text: sentence, remedy: remedy === null ? "" : remedyIn(options, remedy, constants) }];
    }),
  );
  return unique(found, ({ code, text }) => `${code} ${text}`).toSorted(
    (a, b) => compare(a.code, b.code) || compare(a.text, b.text),
  );
}

/** Warnings and errors of the log, the most severe first: the others need no explanation. Events of the keeper are logged as warnings. @returns {LogText[]} */
export function logTexts() {
  const sources = sourcesIn(["cmd", "src"]);
  const constants = constantsIn(sources);
  const found = sources.flatMap(({ path, text }) =>
    callsOf(text, LOGGING).flatMap(({ callee, args: written }) => {
      const args = written.map((arg) => (constants.has(arg) ? JSON.stringify(constants.get(arg)) : arg));
      const at = messageAt(callee, args);
      // A line that is too long has its text in a constant before it.
      const local = new RegExp(`const ${/^\w+$/.test(args[at] ?? "") ? args[at] : "-"} = (["'\`].*);$`, "m").exec(text);
      const message = local?.[1] ?? args[at] ?? "";
      // Commander's errors are no log messages.
      if (!/["'`]/.test(message) || /^["'`]error: /.test(message)) return [];
      const named = args.map((arg) => literal(arg)).find((arg) => LEVELS.includes(arg ?? ""));
      const level =
        /\.(error|warn|info|debug)\($/.exec(callee)?.[1] ??
        LEVELS.find((each) => callee.includes(`"${each}"`)) ??
        named ??
        (path.startsWith("src/keeper/") ? "warn" : "info");
      return [{ level, text: textOf(message, constants), fields: fieldsOf(args[at - 1] ?? "") }];
    }),
  );
  const explained = found.filter(({ level }) => level === "error" || level === "warn");
  return unique(explained, ({ level, text }) => `${level} ${text}`).toSorted(
    (a, b) => LEVELS.indexOf(a.level) - LEVELS.indexOf(b.level) || compare(a.text, b.text),
  );
}

/** Where the message is among the arguments; -1 where the call logs nothing. @param {string} callee @param {readonly string[]} args */
function messageAt(callee, args) {
  const [first = "", second = ""] = args;
  if (LEVELS.includes(literal(first) ?? "")) return args.length >= 4 ? 3 : -1;
  if (/^\.(?:error|warn|info|debug)\($/.test(callee)) return /^["'`]/.test(first) ? 0 : 1;
  return /^(?:\{|about$)/.test(first) && /^["'`].* /.test(second) ? 1 : -1;
}

/** @param {string} options @param {RegExpExecArray} remedy @param {ReadonlyMap<string, string>} constants */
function remedyIn(options, remedy, constants) {
  const rest = options.slice(remedy.index + remedy[0].length);
  const text = textOf(argumentsFrom(`${rest.replace(/\}\s*$/, "")})`, 0)[0] ?? "", constants);
  return /[a-z]{2}/.test(text) ? text : "";
}

/** @param {string} text @returns {string[]} */
function fieldsOf(text) {
  if (!/^\s*\{/.test(text)) return [];
  return argumentsFrom(`${text.trim().slice(1).replace(/\}$/, "")})`, 0)
    .map((part) => /^\s*(\w+)\s*(?::|$)/.exec(part)?.[1] ?? "")
    .filter((name) => name !== "");
}

/** Constants that hold a text. @param {readonly { text: string }[]} sources @returns {Map<string, string>} */
function constantsIn(sources) {
  const all = sources.flatMap(({ text }) => [
    ...text.matchAll(/^(?:export )?const ([A-Z][A-Z0-9_]+) = ("(?:[^"\\]|\\.)*");$/gm),
  ]);
  return new Map(all.map(([, name = "", value = '""']) => [name, JSON.parse(value)]));
}

/** @param {string} text @returns {string | undefined} */
function literal(text) {
  return /^\s*"((?:[^"\\]|\\.)*)"\s*$/.exec(text)?.[1];
}

/** What an expression reads like: its literals, and "…" for what is only known when it runs. @param {string} expression @param {ReadonlyMap<string, string>} constants */
function textOf(expression, constants) {
  const choices = choicesOf(expression);
  if (choices.length > 1) {
    return unique(
      choices.map((choice) => textOf(choice, constants)).filter((text) => /[a-z]/i.test(text)),
      String,
    ).join(" / ");
  }
  const parts = [];
  for (let at = 0; at < expression.length;) {
    const quote = expression[at] ?? "";
    if (/["'`]/.test(quote)) {
      const end = endOfText(expression, at);
      parts.push(
        quote === "`"
          ? templateText(expression.slice(at + 1, end - 1), constants)
          : unescaped(expression.slice(at + 1, end - 1)),
      );
      at = end;
    } else if (/[\s+]/.test(quote)) at++;
    else {
      const end = nextText(expression, at);
      parts.push(
        constants.get(
          expression
            .slice(at, end)
            .trim()
            .replace(/\s*\+$/, ""),
        ) ?? ANY,
      );
      at = end;
    }
  }
  return parts
    .join("")
    .replaceAll(/…(?:\s*…)+/g, ANY)
    .replaceAll(/\s+/g, " ")
    .trim();
}

/** The texts between which `condition ? one : other` chooses; else the expression alone. @param {string} expression @returns {string[]} */
function choicesOf(expression) {
  const marks = [];
  for (let at = 0; at < expression.length;) {
    const character = expression[at] ?? "";
    if (/["'`]/.test(character)) at = endOfText(expression, at);
    else if (/[([{]/.test(character)) at = endOfBrackets(expression, at);
    else {
      if (/^[?:] /.test(expression.slice(at, at + 2)) && expression[at - 1] !== "?") marks.push(at);
      at++;
    }
  }
  if (marks.length < 2) return [expression];
  return marks.map((mark, index) => expression.slice(mark + 1, marks[index + 1])).map((text) => text.trim());
}

/** @param {string} body @param {ReadonlyMap<string, string>} constants */
function templateText(body, constants) {
  let text = "";
  for (let at = 0; at < body.length;) {
    if (body.startsWith("${", at)) {
      const end = endOfBrackets(body, at + 1);
      text += constants.get(body.slice(at + 2, end - 1).trim()) ?? ANY;
      at = end;
    } else if (body[at] === "\\") {
      text += unescaped(body.slice(at, at + 2));
      at += 2;
    } else text += body[at++];
  }
  return text;
}

/** @param {string} text */
function unescaped(text) {
  return text.replaceAll("\\n", " ").replaceAll(/\\(.)/g, "$1");
}

/** Where the next text of an expression begins that is not inside brackets. @param {string} expression @param {number} from */
function nextText(expression, from) {
  for (let at = from; at < expression.length;) {
    const character = expression[at] ?? "";
    if (/["'`]/.test(character)) return at;
    at = /[([{]/.test(character) ? endOfBrackets(expression, at) : at + 1;
  }
  return expression.length;
}

/** @param {string} text @param {RegExp} pattern @returns {{ callee: string, args: string[] }[]} */
function callsOf(text, pattern) {
  return [...text.matchAll(pattern)].map((match) => ({
    callee: match[0],
    args: argumentsFrom(text, match.index + match[0].length),
  }));
}

/** The arguments from behind an opening bracket to the one that closes it. @param {string} text @param {number} from */
function argumentsFrom(text, from) {
  const args = [];
  let begin = from;
  for (let at = from; at < text.length;) {
    const character = text[at] ?? "";
    if (/["'`]/.test(character)) at = endOfText(text, at);
    else if (text.startsWith("//", at)) at = Math.max(text.indexOf("\n", at), at + 1);
    else if (/[([{]/.test(character)) at = endOfBrackets(text, at);
    else if (character === "," || /[)\]}]/.test(character)) {
      if (text.slice(begin, at).trim() !== "") args.push(text.slice(begin, at).trim());
      if (character !== ",") return args;
      begin = ++at;
    } else at++;
  }
  return args;
}

/** Behind the bracket that closes the one at `from`. @param {string} text @param {number} from */
function endOfBrackets(text, from) {
  let at = from + 1;
  for (let depth = 1; depth > 0 && at < text.length;) {
    const character = text[at] ?? "";
    if (/["'`]/.test(character)) {
      at = endOfText(text, at);
      continue;
    }
    if (/[([{]/.test(character)) depth++;
    if (/[)\]}]/.test(character)) depth--;
    at++;
  }
  return at;
}

/** Behind the quote that closes the one at `from`. @param {string} text @param {number} from @returns {number} */
function endOfText(text, from) {
  const quote = text[from];
  for (let at = from + 1; at < text.length;) {
    if (text[at] === "\\") at += 2;
    else if (text[at] === quote) return at + 1;
    else if (quote === "`" && text.startsWith("${", at)) at = endOfBrackets(text, at + 1);
    else at++;
  }
  return text.length;
}

/** @template T @param {readonly T[]} items @param {(item: T) => string} keyOf @returns {T[]} */
function unique(items, keyOf) {
  return [...new Map(items.map((item) => [keyOf(item), item])).values()];
}

/** @param {string} a @param {string} b */
function compare(a, b) {
  return a < b ? -1 : Number(a > b);
}
