/**
 * ComposeFile: reads the files of a Compose project, in the order in which Compose merges them. The paths come from labels, which
 * whoever made a container has chosen, so files, services and steps have a limit. What cannot be read is left out: advice then names the
 * first file, as without any of this.
 */
import { dirname, isAbsolute, join } from "node:path";

import { type Document, type YAMLMap, isAlias, isMap, isScalar, isSeq, parseDocument } from "yaml";

import type { ComposeKeyLocation, ComposeProjectText, ComposeServiceText } from "../../base/model/compose.ts";
import { readBytes } from "./files.ts";

const FILES_MAX = 16;
const FILE_BYTES_MAX = 256 * 1024;
/** Services, networks, and what a list of one has. */
const ENTRIES_MAX = 256;
/** A service that extends one that extends one. */
const DEPTH_MAX = 8;
/** To find what an alias stands for, the parser searches the file. */
const ALIASES_MAX = 200;
/** What is printed of a file is what Compose accepts as a name. */
const PLAIN_NAME = /^[\w][\w.-]{0,127}$/;
const HOST_NAME = /^[\w.-]{1,253}$/;

/** A file, read once. */
class ComposeText {
  readonly path: string;
  readonly #document: Document;
  #aliases = 0;

  constructor(path: string, document: Document) {
    this.path = path;
    this.#document = document;
  }

  get root(): YAMLMap | undefined {
    return this.map(this.#document.contents);
  }

  map(node: unknown): YAMLMap | undefined {
    const found = this.#meant(node);
    return isMap(found) ? found : undefined;
  }

  /** The values of a list; none for anything else. */
  items(node: unknown): unknown[] {
    const found = this.#meant(node);
    return isSeq(found) ? found.items.slice(0, ENTRIES_MAX) : [];
  }

  /** A text or a number as text. */
  text(node: unknown): string | undefined {
    const found = this.#meant(node);
    const value = isScalar(found) ? found.value : undefined;
    return typeof value === "string" || typeof value === "number" ? String(value) : undefined;
  }

  tag(node: unknown): string | undefined {
    return isMap(node) || isSeq(node) || isScalar(node) ? node.tag : undefined;
  }

  /** The entries of a map, and of those that `<<` adds to it. */
  entries(node: unknown, depth = 0): Map<string, unknown> {
    const own = new Map<string, unknown>();
    const merged = new Map<string, unknown>();
    for (const { key, value } of this.map(node)?.items.slice(0, ENTRIES_MAX) ?? []) {
      const name = this.text(key);
      if (name !== "<<") own.set(name ?? "", value);
      else if (depth < DEPTH_MAX)
        for (const each of this.map(value) === undefined ? this.items(value) : [value])
          for (const entry of this.entries(each, depth + 1)) if (!merged.has(entry[0])) merged.set(...entry);
    }
    return new Map([...merged, ...own]);
  }

  get(node: unknown, key: string): unknown {
    return this.entries(node).get(key);
  }

  #meant(node: unknown): unknown {
    if (!isAlias(node)) return node;
    if (++this.#aliases > ALIASES_MAX) return undefined;
    return node.resolve(this.#document);
  }
}

/** One definition of a service, to which a later one adds. */
interface Layer {
  readonly text: ComposeText;
  readonly place: ComposeKeyLocation;
  readonly keys: ReadonlyMap<string, unknown>;
  /** It stands under another service, which this one extends. */
  readonly isExtended: boolean;
}

/** `files` have absolute paths, which are found below `root`. */
export async function readComposeProject(files: readonly string[], root: string): Promise<ComposeProjectText> {
  const project = new ComposeProjectFiles(root);
  return await project.read(files);
}

class ComposeProjectFiles {
  readonly #root: string;
  readonly #texts = new Map<string, ComposeText | undefined>();

  constructor(root: string) {
    this.#root = root;
  }

  async read(files: readonly string[]): Promise<ComposeProjectText> {
    const texts: ComposeText[] = [];
    const queue = [...files];
    for (let path = queue.shift(); path !== undefined && texts.length < FILES_MAX; path = queue.shift()) {
      const text = await this.#text(path);
      if (text === undefined || texts.includes(text)) continue;
      texts.push(text);
      for (const each of text.items(text.get(text.root, "include"))) {
        const paths = text.map(each) === undefined ? each : text.get(each, "path");
        for (const node of text.items(paths).length > 0 ? text.items(paths) : [paths])
          queue.push(...pathsFrom(text, node));
      }
    }
    const services = new Map<string, ComposeServiceText>();
    const names = texts.flatMap((text) => [...text.entries(text.get(text.root, "services")).keys()]);
    for (const name of new Set(names)) {
      if (services.size >= ENTRIES_MAX) break;
      const layers = PLAIN_NAME.test(name) ? await this.#layers(name, texts) : [];
      const own = layers.find(({ isExtended }) => !isExtended);
      if (own !== undefined) services.set(name, serviceText(layers, own.place));
    }
    return { services, networks: networksIn(texts) };
  }

  /** The definitions of a service, the one that adds to all others at the end. */
  async #layers(service: string, texts: readonly ComposeText[], depth = 0): Promise<Layer[]> {
    const layers: Layer[] = [];
    for (const text of texts) {
      const definition = text.get(text.get(text.root, "services"), service);
      if (text.map(definition) === undefined) continue;
      const keys = text.entries(definition);
      const base = keys.get("extends");
      const name = text.text(base) ?? text.text(text.get(base, "service"));
      if (name !== undefined && depth < DEPTH_MAX) {
        const [path = text.path] = pathsFrom(text, text.get(base, "file"));
        const from = await this.#text(path);
        if (from !== undefined)
          layers.push(...(await this.#layers(name, [from], depth + 1)).map((each) => ({ ...each, isExtended: true })));
      }
      layers.push({ text, place: { file: text.path, service }, keys, isExtended: false });
    }
    return layers;
  }

  async #text(path: string): Promise<ComposeText | undefined> {
    if (!this.#texts.has(path))
      this.#texts.set(path, this.#texts.size < FILES_MAX ? await this.#read(path) : undefined);
    return this.#texts.get(path);
  }

  async #read(path: string): Promise<ComposeText | undefined> {
    try {
      const bytes = await readBytes(`${this.#root}${path}`, FILE_BYTES_MAX);
      const document = parseDocument(Buffer.from(bytes).toString("utf8"), {
        prettyErrors: false,
        uniqueKeys: false,
        logLevel: "silent",
      });
      return document.errors.length > 0 ? undefined : new ComposeText(path, document);
    } catch {
      // Not here, not for this user, or nested too deeply.
      return undefined;
    }
  }
}

function serviceText(layers: readonly Layer[], location: ComposeKeyLocation): ComposeServiceText {
  const keys = new Map<string, ComposeKeyLocation>();
  const extraHosts = new Map<string, ComposeKeyLocation>();
  const networks = new Set<string>();
  const profiles = new Set<string>();
  let isLong = false;
  let networkMode: string | undefined;
  let replicas: ComposeServiceText["replicas"];
  for (const { text, place: here, keys: own } of layers) {
    for (const [key, value] of own) {
      const tag = text.tag(value);
      if (tag === "!reset") keys.delete(key);
      else if (PLAIN_NAME.test(key)) keys.set(key, here);
      const isNew = tag === "!reset" || tag === "!override";
      if (key === "networks") {
        if (isNew) networks.clear();
        if (tag === "!reset") continue;
        isLong = text.map(value) !== undefined;
        for (const name of namesIn(text, value)) if (PLAIN_NAME.test(name)) networks.add(name);
      } else if (key === "profiles") {
        if (isNew) profiles.clear();
        for (const name of namesIn(text, value)) if (PLAIN_NAME.test(name)) profiles.add(name);
      } else if (key === "network_mode") networkMode = tag === "!reset" ? undefined : text.text(value);
      else if (key === "scale") replicas = countOf(key, text.text(value)) ?? replicas;
      else if (key === "deploy")
        replicas = countOf("deploy.replicas", text.text(text.get(value, "replicas"))) ?? replicas;
      else if (key === "extra_hosts") {
        if (isNew) extraHosts.clear();
        for (const entry of namesIn(text, value)) {
          const name = entry.split(/[:=]/, 1)[0]?.toLowerCase() ?? "";
          if (HOST_NAME.test(name)) extraHosts.set(name, here);
        }
      }
    }
  }
  return {
    keys,
    location,
    networks: keys.has("networks") ? { names: [...networks].slice(0, ENTRIES_MAX), isMap: isLong } : undefined,
    networkMode,
    profiles: [...profiles],
    replicas,
    extraHosts,
  };
}

function networksIn(texts: readonly ComposeText[]): ComposeProjectText["networks"] {
  const networks = new Map<string, string | undefined>();
  for (const text of texts) {
    for (const [key, value] of text.entries(text.get(text.root, "networks"))) {
      const name = text.text(text.get(value, "name"));
      if (PLAIN_NAME.test(key) && networks.size < ENTRIES_MAX) networks.set(key, name ?? networks.get(key));
    }
  }
  return networks;
}

/** The items of a list, or the keys of a map. */
function namesIn(text: ComposeText, node: unknown): string[] {
  if (text.map(node) !== undefined) return [...text.entries(node).keys()];
  return text.items(node).flatMap((each) => text.text(each) ?? []);
}

function countOf(key: string, text: string | undefined): ComposeServiceText["replicas"] {
  return text !== undefined && /^\d{1,6}$/.test(text) ? { key, count: Number(text) } : undefined;
}

/** Relative to the file; one with a variable is not known. */
function pathsFrom(text: ComposeText, node: unknown): string[] {
  const path = text.text(node);
  if (path === undefined || path === "" || /[$\0]|:\/\//.test(path)) return [];
  return [isAbsolute(path) ? path : join(dirname(text.path), path)];
}
