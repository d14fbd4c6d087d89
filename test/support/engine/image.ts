/**
 * Images of the tests' containers, built from the machine's own files, so that no registry is needed: one with busybox,
 * and one that is empty except for the links a Debian system expects, to be filled with the machine's folders.
 */
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, renameSync, rmSync } from "node:fs";
import { copyFile, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { check, run } from "../program/command.ts";
import { countStart } from "../rig/started.ts";
import type { DockerHost } from "./docker-host.ts";

export interface Image {
  readonly name: string;
  /** Lines of a Dockerfile. */
  readonly changes: readonly string[];
  readonly fill: (folder: string) => Promise<void>;
}

const PATH = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
const SEARCH_PATH = `ENV ${PATH}`;

const BUSYBOX_IMAGE: Image = {
  name: "dns11-test",
  // Process 1 of a container ignores signals without a handler, and a stop would take ten seconds.
  changes: [SEARCH_PATH, 'CMD ["sh", "-c", "trap exit TERM INT; sleep infinity & wait"]'],
  fill: fillBusybox,
};

/** The busybox image with labels, under another name. */
export function labelledImage(name: string, labels: Readonly<Record<string, string>>): Image {
  // A line of a Dockerfile may have 64 KB; longer ones continue on the next line.
  const quoted = (text: string): string => JSON.stringify(text).replaceAll(/.{30000}/g, "$&\\\n");
  const changes = Object.entries(labels).map(([key, value]) => `LABEL ${quoted(key)}=${quoted(value)}`);
  return { ...BUSYBOX_IMAGE, name, changes: [...BUSYBOX_IMAGE.changes, ...changes] };
}

/** The busybox image with a port that it exposes, under another name. */
export function exposingImage(name: string, port: number): Image {
  return { ...BUSYBOX_IMAGE, name, changes: [...BUSYBOX_IMAGE.changes, `EXPOSE ${port}`] };
}

/** The busybox image under another name, with more of its applets, and with programs and the libraries that they load, by their paths. */
export function busyboxWith(
  name: string,
  programs: Readonly<Record<string, string>>,
  applets: readonly string[],
): Image {
  const fill = async (root: string): Promise<void> => {
    await fillBusybox(root);
    for (const applet of applets) await symlink("busybox", join(root, "bin", applet)).catch(() => undefined);
    for (const [path, from] of Object.entries(programs)) {
      const { stdout } = await run("ldd", [from]);
      const libraries = [...stdout.matchAll(/(?:=> |^\s*)(\/\S+)/gm)].map(([, library = ""]) => [library, library]);
      for (const [to = "", file = ""] of [[path, from], ...libraries]) {
        await mkdir(dirname(join(root, to)), { recursive: true });
        await copyFile(file, join(root, to));
      }
    }
  };
  return { ...BUSYBOX_IMAGE, name, fill };
}

/** A program of a Debian package, which is unpacked in the cache and not installed. */
export async function unpacked(name: string, program: string): Promise<string> {
  const folder = resolve(".cache", name);
  const file = join(folder, program);
  if (existsSync(file)) return file;
  const part = `${folder}.${process.pid}`;
  mkdirSync(part, { recursive: true });
  await check("sh", ["-c", `apt-get download ${name} && dpkg-deb -x ${name}_*.deb .`], { cwd: part });
  rmSync(folder, { recursive: true, force: true });
  renameSync(part, folder);
  return file;
}

export const MACHINE_IMAGE: Image = {
  name: "dns11-test-machine",
  changes: [SEARCH_PATH],
  fill: fillMachine,
};

/** What tests run in a container: links are most of the processor time of an import, and busybox has hundreds. */
const APPLETS = `
  sh cat chmod cp cut date dd echo env false find getopt grep head hostname id kill killall ln ls
  mkdir mkfifo mount mv nc nslookup od ping ping6 printf ps pwd readlink rm rmdir sed seq sleep sort
  stat tail tar test timeout top touch tr true umount uname vi wc wget which xargs yes
`
  .trim()
  .split(/\s+/);

const imported = new WeakMap<DockerHost, Map<Image, Promise<void>>>();
/** By the function that fills them: images with the same files share an archive. */
const archives = new Map<Image["fill"], Promise<Buffer>>();

/** Imports the image once per engine, also for concurrent calls. */
export async function ensureImage(host: DockerHost, image: Image = BUSYBOX_IMAGE): Promise<string> {
  const ofHost = imported.get(host) ?? new Map<Image, Promise<void>>();
  imported.set(host, ofHost);
  const importing = ofHost.get(image) ?? importImage(host, image);
  ofHost.set(image, importing);
  await importing;
  return image.name;
}

// What an image's author decides, and the engine says of each of its containers.
export interface ImageConfig {
  readonly Labels?: Readonly<Record<string, string>>;
  readonly Env?: readonly string[];
  readonly ExposedPorts?: Readonly<Record<string, object>>;
}

// Loads the busybox image with a configuration of any size, under another name: lines of a Dockerfile are limited.
export async function loadImage(host: DockerHost, name: string, config: ImageConfig): Promise<string> {
  const layer = await archiveOf(BUSYBOX_IMAGE);
  const folder = await mkdtemp(join(tmpdir(), `${name}-`));
  try {
    const image = {
      architecture: process.arch === "arm64" ? "arm64" : "amd64",
      os: "linux",
      config: {
        Cmd: ["sh", "-c", "trap exit TERM INT; sleep infinity & wait"],
        ...config,
        Env: [PATH, ...(config.Env ?? [])],
      },
      rootfs: { type: "layers", diff_ids: [`sha256:${createHash("sha256").update(layer).digest("hex")}`] },
    };
    const files = {
      "manifest.json": JSON.stringify([{ Config: "config.json", RepoTags: [`${name}:latest`], Layers: ["layer.tar"] }]),
      "config.json": JSON.stringify(image),
      "layer.tar": layer,
    };
    for (const [file, content] of Object.entries(files)) await writeFile(join(folder, file), content);
    await check("tar", ["-C", folder, "-cf", join(folder, "image.tar"), ...Object.keys(files)]);
    await host.post("/images/load", await readFile(join(folder, "image.tar")));
    return name;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function importImage(host: DockerHost, image: Image): Promise<void> {
  countStart("image");
  const archive = archives.get(image.fill) ?? archiveOf(image);
  archives.set(image.fill, archive);
  const query = new URLSearchParams({ fromSrc: "-", repo: image.name });
  for (const change of image.changes) query.append("changes", change);
  const result = await host.post(`/images/create?${query.toString()}`, await archive);
  // A failure may come after the status of the response.
  if (typeof Reflect.get(result as object, "error") === "string") throw new Error(`import: ${JSON.stringify(result)}`);
}

async function archiveOf(image: Image): Promise<Buffer> {
  const folder = await mkdtemp(join(tmpdir(), `${image.name.replaceAll("/", "-")}-`));
  try {
    const root = join(folder, "root");
    await mkdir(root);
    await image.fill(root);
    const archive = join(folder, "image.tar");
    await check("tar", ["-C", root, "--owner=0", "--group=0", "-cf", archive, "."]);
    return await readFile(archive);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function fillCommon(root: string): Promise<void> {
  for (const folder of ["etc", "dev", "proc", "sys", "run", "root", "var/log", "var/lib", "opt", "usr"]) {
    await mkdir(join(root, folder), { recursive: true });
  }
  await mkdir(join(root, "tmp"), { mode: 0o777 });
  await symlink("../run", join(root, "var/run"));
  await writeFile(
    join(root, "etc/passwd"),
    "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n",
  );
  await writeFile(join(root, "etc/group"), "root:x:0:\nnogroup:x:65534:\n");
  await writeFile(join(root, "etc/nsswitch.conf"), "hosts: files dns\n");
}

async function fillBusybox(root: string): Promise<void> {
  await fillCommon(root);
  const busybox = (await check("sh", ["-c", "command -v busybox"])).trim();
  for (const folder of ["bin", "sbin", "usr/bin", "usr/sbin"]) await mkdir(join(root, folder), { recursive: true });
  await copyFile(busybox, join(root, "bin/busybox"));
  for (const applet of APPLETS) await symlink("busybox", join(root, "bin", applet));
}

async function fillMachine(root: string): Promise<void> {
  await fillCommon(root);
  for (const folder of ["bin", "sbin", "lib", "lib32", "lib64", "libx32"]) {
    await symlink(`usr/${folder}`, join(root, folder));
  }
}
