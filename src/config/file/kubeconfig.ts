/**
 * Kubeconfig: how kubectl reaches a cluster, read for dns11. What would need another program or a proxy is a mistake: dns11
 * starts no program.
 */
import { dirname, isAbsolute, join } from "node:path";

import { LIMITS } from "../../base/limits.ts";
import type { ClusterAccess } from "../../base/model/cluster-policy.ts";
import { BadSettings } from "../bad-settings.ts";
import { quoteValue } from "../kinds.ts";
import { readDocument } from "./document.ts";
import { readBytes, textOf } from "./file-text.ts";

type Fields = Readonly<Record<string, unknown>>;

/** Throws a Fault that says what is wrong. `context`: undefined for its current one. */
export async function readKubeconfig(path: string, context: string | undefined): Promise<ClusterAccess> {
  try {
    return await accessOf(path, context);
  } catch (error) {
    if (error instanceof BadSettings) throw error;
    throw new BadSettings([`${path}: ${(error as Error).message}`]);
  }
}

async function accessOf(path: string, chosen: string | undefined): Promise<ClusterAccess> {
  const document = readDocument(textOf(await readBytes(path, LIMITS.clusterFileBytes), path));
  const [mistake] = document.mistakes;
  if (mistake !== undefined) throw new BadSettings([`${path}:${mistake.line}:${mistake.column}: ${mistake.what}`]);
  const config = fieldsOf(document.value);
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
  return textOf(await readBytes(place, LIMITS.clusterFileBytes), place);
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
