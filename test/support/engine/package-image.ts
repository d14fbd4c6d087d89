/**
 * Builder of dns11's image in an engine without access to a registry. The base images of its Dockerfile are imported
 * from the machine's own files (Node, glibc, busybox), and the packages that it would install are copied into the build
 * context.
 */
import { copyFile, mkdir, mkdtemp, rm, symlink } from "node:fs/promises";
import { readFileSync, realpathSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";

import { check, stdoutOf } from "../program/command.ts";
import type { Engine } from "./engine.ts";

export const IMAGE = "dns11-built";

export async function buildPackageImage(engine: Engine): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), "d11-image-"));
  try {
    await importBase(engine, join(folder, "base"), "dns11-base", []);
    await importBase(engine, join(folder, "build"), "dns11-build", [process.execPath]);
    const context = join(folder, "context");
    await fillContext(context);
    const args = ["build", "-f", join(context, "scripts/image/Dockerfile"), "-t", IMAGE];
    const from = ["--build-arg", "BASE=dns11-base", "--build-arg", "BUILD=dns11-build"];
    // The builder that is part of the engine.
    const env = { DOCKER_BUILDKIT: "0" };
    const built = await engine.dockerCommand([...args, ...from, context], { env, timeoutMs: 240_000 });
    stdoutOf(built, "docker build");
  } finally {
    await rm(folder, { recursive: true });
  }
}

/** busybox as the shell, the libraries that Node needs, and further programs. */
async function importBase(engine: Engine, root: string, name: string, programs: readonly string[]): Promise<void> {
  const busybox = (await check("sh", ["-c", "command -v busybox"])).trim();
  for (const path of ["bin", "usr/local/bin", "etc", "run", "tmp", "proc", "sys", "dev"]) {
    await mkdir(join(root, path), { recursive: true });
  }
  await symlink("../run", join(await made(join(root, "var")), "run"));
  await copyFile(busybox, join(root, "bin/busybox"));
  for (const applet of ["sh", "rm"]) await symlink("busybox", join(root, "bin", applet));
  for (const program of programs) await copyFile(program, join(root, "usr/local/bin", program.split("/").at(-1) ?? ""));
  const libraries = (await check("ldd", [process.execPath])).matchAll(/(\/\S+\.so\S*)/g);
  for (const [, library = ""] of libraries) {
    await mkdir(join(root, dirname(library)), { recursive: true });
    await copyFile(realpathSync(library), join(root, library));
  }
  const archive = `${root}.tar`;
  await check("tar", ["-C", root, "--owner=0", "--group=0", "-cf", archive, "."]);
  const path = "ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
  await engine.docker("import", "--change", path, archive, name);
}

async function made(folder: string): Promise<string> {
  await mkdir(folder, { recursive: true });
  return folder;
}

/** Expects a checkout after `npm ci` and `npm run build`. */
async function fillContext(context: string): Promise<void> {
  const built = ["build.json", "cmd", "man", "src", "ui"].map((path) => `dist/${path}`);
  const { packages } = JSON.parse(readFileSync("node_modules/.package-lock.json", "utf8")) as {
    packages: Record<string, { dev?: boolean }>;
  };
  const nested = (path: string): boolean => path.lastIndexOf("node_modules/") > 0;
  const installed = Object.keys(packages).filter((each) => packages[each]?.dev !== true && !nested(each));
  const paths = ["package.json", "package-lock.json", "LICENSE", "scripts", ...built, ...installed];
  await mkdir(context);
  await check("cp", ["--recursive", "--dereference", "--parents", ...paths, context]);
}
