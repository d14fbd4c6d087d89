/**
 * Redactor: replaces what identifies people and their systems, consistently, so that a report can be understood without it:
 * names of containers, networks, projects and services, names that were queried, public addresses, and directories. Private
 * addresses stay, because they mean nothing elsewhere and everything here.
 */
import { isIP } from "node:net";

type Kind = "container" | "network" | "project" | "service" | "id";

/** Labels that identify nobody, words of Compose files, and results. */
const KEPT_LABELS = new Set(
  (
    "com net org io local internal lan home corp arpa in-addr ip6 test example invalid localhost onion docker svc " +
    "cluster services networks network_mode restart dns11 noerror nxdomain nodata servfail refused formerr notimp"
  ).split(" "),
);
/** Endings of file names, which look like domains. */
const FILE_ENDINGS = new Set("conf sock yaml yml json txt service js ts md log pid".split(" "));
/** Directories that are the same everywhere. */
const SYSTEM_PATH = /^\/+(?:run|var\/run|proc|sys|etc|dev|usr|lib|bin|sbin)(?:\/|$)/;
const SECRET = /token|secret|password|credential/i;
const NO_FIELDS: ReadonlySet<string> = new Set();
/** Names of one character are too common in sentences. */
const NAME_CHARS_MIN = 2;

/** Whatever may be a name, an address or a path. The patterns here take linear time: containers choose some of the texts. */
const TOKEN = /[\w.\\:/@+-]+/g;
const WORD = /[\w-]+/g;
const TIME = /^(?:\d{4}-\d\d-\d\dT)?\d\d:\d\d/;
const VERSION = /^v?(\d[\d.]*)(?:[-+~][\w.+~-]*)?$/;
/** Names may begin with digits, too: 203-0-113-5.example.com. */
const NAME_END = /\.[a-z]{2,}\.?$/i;
const PRIVATE_V4 =
  /^(?:0\.|10\.|127\.|169\.254\.|192\.168\.|172\.(?:1[6-9]|2\d|3[01])\.|100\.(?:6[4-9]|[7-9]\d|1[01]\d|12[0-7])\.|2(?:2[4-9]|[345]\d)\.)/;
const PRIVATE_V6 = /^(?:::1?$|fe[89ab]|f[cd]|ff)/i;

export class Redactor {
  readonly #replaced = new Map<string, string>();
  readonly #counts = new Map<string, number>();

  /** Registers names, which are replaced wherever they occur as a word. */
  add(kind: Kind, names: Iterable<string>): void {
    for (const name of names) if (name.length >= NAME_CHARS_MIN) this.#substitute(name, kind);
  }

  /** Registers names that were queried: each of their labels, and the parts of what is escaped in them. */
  addQueried(names: Iterable<string>): void {
    for (const name of names) {
      this.#domain(name);
      for (const [word] of name.matchAll(WORD))
        if (word !== name && !KEPT_LABELS.has(word)) this.#substitute(word, "name");
    }
  }

  /** A copy of a JSON value with all its texts replaced, except those of the fields `kept`, which have a few fixed values. */
  value(value: unknown, kept: ReadonlySet<string> = NO_FIELDS): unknown {
    if (typeof value === "string") return this.text(value);
    if (Array.isArray(value)) return value.map((each) => this.value(each, kept));
    if (typeof value !== "object" || value === null) return value;
    return Object.fromEntries(
      Object.entries(value).map(([key, each]) => {
        if (kept.has(key)) return [key, each];
        return [
          this.#replaced.get(key.toLowerCase()) ?? key,
          SECRET.test(key) && each !== null ? "(redacted)" : this.value(each, kept),
        ];
      }),
    );
  }

  text(text: string): string {
    return text.replaceAll(TOKEN, (token) => this.#token(token));
  }

  /** Each part is replaced once: what has been put in is not looked at again. */
  #token(token: string): string {
    const known = this.#replaced.get(token.toLowerCase());
    if (known !== undefined) return known;
    const family = isIP(token);
    if (family !== 0) {
      const isPrivate = (family === 4 ? PRIVATE_V4 : PRIVATE_V6).test(token);
      return isPrivate ? token : this.#substitute(token, "address");
    }
    if (TIME.test(token) || (isVersion(token) && !this.#hasName(token))) return token;
    // The end of a sentence, or of a name that is written with its root.
    const end = trimmedLength(token);
    if (end < token.length) return (end === 0 ? "" : this.#token(token.slice(0, end))) + token.slice(end);
    const slash = token.indexOf("/");
    // An address with the length of its prefix: the colons of IPv6 separate no parts.
    if (slash > 0 && isIP(token.slice(0, slash)) !== 0) return this.#parts(token, "/");
    if (token.includes(":")) return this.#parts(token, ":");
    if (token.startsWith("/")) return this.#path(token);
    if (token.includes("/")) return this.#parts(token, "/");
    return token.includes(".") ? this.#domain(token) : this.#words(token);
  }

  /** Whether one of its labels is known; numbers are as common in versions. */
  #hasName(token: string): boolean {
    return token.split(".").some((label) => /\D/.test(label) && this.#replaced.has(label.toLowerCase()));
  }

  #parts(token: string, separator: string): string {
    return token
      .split(separator)
      .map((part) => (part === "" ? part : this.#token(part)))
      .join(separator);
  }

  /** A file keeps its ending, because that says what it is. */
  #path(path: string): string {
    if (SYSTEM_PATH.test(path)) return path;
    const slash = path.lastIndexOf("/");
    const file = path.slice(slash + 1);
    const folder = slash === 0 ? "" : `/${this.#substitute(path.slice(0, slash), "directory")}`;
    return `${folder}/${file.startsWith("/") || file === "" ? file : this.#token(file)}`;
  }

  #domain(name: string): string {
    const labels = name.split(".");
    const last = labels.at(-1) ?? "";
    if (labels.length === 2 && FILE_ENDINGS.has(last.toLowerCase())) return `${this.#words(labels[0] ?? "")}.${last}`;
    return labels
      .map((label) => (label === "" || KEPT_LABELS.has(label.toLowerCase()) ? label : this.#substitute(label, "name")))
      .join(".");
  }

  #words(text: string): string {
    return text.replaceAll(WORD, (word) => this.#replaced.get(word.toLowerCase()) ?? word);
  }

  #substitute(text: string, kind: string): string {
    const key = text.toLowerCase();
    const known = this.#replaced.get(key);
    if (known !== undefined) return known;
    const count = (this.#counts.get(kind) ?? 0) + 1;
    this.#counts.set(kind, count);
    const substitute = `${kind}-${count}`;
    this.#replaced.set(key, substitute);
    return substitute;
  }
}

/** Addresses with something behind them are none. */
function isVersion(token: string): boolean {
  const [, numbers = ""] = VERSION.exec(token) ?? [];
  return numbers !== "" && !NAME_END.test(token) && isIP(numbers) === 0;
}

function trimmedLength(token: string): number {
  let end = token.length;
  while (end > 0 && (token[end - 1] === "." || token[end - 1] === ":")) end--;
  return end;
}
