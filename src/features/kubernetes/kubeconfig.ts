import { dirname, isAbsolute, join } from "node:path";

import { BadSettings } from "../../config/bad-settings.ts";
import { readBytes, textOf } from "../../config/file/files.ts";
import { readDocumentInWorker } from "../../config/file/worker.ts";
import { quoteValue } from "../../config/kinds.ts";
import { KUBERNETES_LIMITS } from "./limits.ts";

type Fields = Readonly<Record<string, unknown>>;

/** How the API is reached, from a kubeconfig or a service account. */
export interface ClusterAccess {
  /** Its URL. */
  readonly server: string;
  /** The certificates of the authority that signed its certificate, in PEM; undefined for those that Node knows. */
  readonly ca: string | undefined;
  /** The name in its certificate, where that is another one than in the URL. */
  readonly serverName: string | undefined;
  /** Of the client, in PEM. */
  readonly certificate: string | undefined;
  readonly key: string | undefined;
  readonly token: string | undefined;
  /** A file with the token, which is replaced before the token expires. */
  readonly tokenFile: string | undefined;
}

/**
 * How kubectl reaches a cluster. What would need another program or a proxy is a mistake: dns11 starts no program. Throws a Fault that
 * says what is wrong. `context`: undefined for its current one.
 */
export async function readKubeconfig(path: string, context: string | undefined): Promise<ClusterAccess> {
  try {
    return await accessIn(await readDocumentInWorker(path, KUBERNETES_LIMITS.fileBytes), path, context);
  } catch (error) {
    if (error instanceof BadSettings) throw error;
    throw new BadSettings([`${path}: ${(error as Error).message}`]);
  }
}

/** The same for the value of a file. Throws an Error that does not name it. */
export async function accessIn(document: unknown, path: string, chosen: string | undefined): Promise<ClusterAccess> {
  const config = fieldsOf(document);
  const name = chosen ?? textIn(config, "current-context");
  if (name === undefined) throw new Error("has no current context: set kubernetes.context");
  const context = named(config, "contexts", name, "context");
  const cluster = named(config, "clusters", textIn(context, "cluster"), "cluster");
  const user = named(config, "users", textIn(context, "user"), "user");
  refuse(cluster, user);
  const readPem = async (fields: Fields, key: string): Promise<string | undefined> => await pemIn(fields, key, path);
  const tokenFile = textIn(user, "tokenFile");
  return {
    server: serverIn(cluster),
    ca: await readPem(cluster, "certificate-authority"),
    serverName: textIn(cluster, "tls-server-name"),
    certificate: await readPem(user, "client-certificate"),
    key: await readPem(user, "client-key"),
    token: textIn(user, "token"),
    tokenFile: tokenFile === undefined ? undefined : besides(path, tokenFile),
  };
}

/** What dns11 does not do, each with what to do instead. */
function refuse(cluster: Fields, user: Fields): void {
  if (cluster["insecure-skip-tls-verify"] === true) {
    throw new Error("insecure-skip-tls-verify is not supported: set certificate-authority, or tls-server-name");
  }
  if (cluster["proxy-url"] !== undefined) throw new Error("proxy-url is not supported: use a server without a proxy");
  for (const key of ["exec", "auth-provider"]) {
    if (user[key] !== undefined) {
      throw new Error(`${key} is not supported, because dns11 starts no program: use the token of a service account`);
    }
  }
  if (user["username"] !== undefined) throw new Error("a user name and password are not supported: use a token");
}

function serverIn(cluster: Fields): string {
  const text = textIn(cluster, "server") ?? "";
  let url: URL | undefined;
  try {
    url = new URL(text);
  } catch {
    // The same error as for another scheme.
  }
  if (url === undefined || !/^https?:$/.test(url.protocol) || url.username !== "") {
    throw new Error(`the server ${quoteValue(text)} is not valid: use a URL, such as https://10.0.0.5:6443`);
  }
  return url.href.replace(/\/$/, "");
}

/** The text of KEY-data, or of the file of KEY. */
async function pemIn(fields: Fields, key: string, path: string): Promise<string | undefined> {
  const data = textIn(fields, `${key}-data`);
  if (data !== undefined) return Buffer.from(data, "base64").toString();
  const file = textIn(fields, key);
  if (file === undefined) return undefined;
  const place = besides(path, file);
  return textOf(await readBytes(place, KUBERNETES_LIMITS.fileBytes), place);
}

/** Relative paths are those of the kubeconfig's folder. */
function besides(path: string, file: string): string {
  return isAbsolute(file) ? file : join(dirname(path), file);
}

/** The entry of this name in one of the lists. */
function named(config: Fields, list: string, name: string | undefined, what: string): Fields {
  const all = Array.isArray(config[list]) ? (config[list] as readonly unknown[]) : [];
  const found = all.map(fieldsOf).find((each) => each["name"] === name);
  if (found === undefined) throw new Error(`has no ${what} ${quoteValue(name ?? "")}`);
  return fieldsOf(found[what]);
}

function fieldsOf(value: unknown): Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Fields) : {};
}

function textIn(fields: Fields, key: string): string | undefined {
  const value = fields[key];
  return typeof value === "string" && value !== "" ? value : undefined;
}
