/** Debian's kubectl, from its package in the cache: another one may be installed on the machine. */
import { existsSync, mkdirSync, renameSync, rmSync } from "node:fs";
import { join, resolve } from "node:path";

import { check } from "../../support/program/command.ts";

export async function debianKubectl(): Promise<string> {
  const folder = resolve(".cache", "kubernetes-client");
  const program = join(folder, "usr/bin/kubectl");
  if (existsSync(program)) return program;
  const part = `${folder}.${process.pid}`;
  mkdirSync(part, { recursive: true });
  await check("sh", ["-c", "apt-get download kubernetes-client && dpkg-deb -x kubernetes-client_*.deb ."], {
    cwd: part,
  });
  rmSync(folder, { recursive: true, force: true });
  renameSync(part, folder);
  return program;
}
