/**
 * Rules of the source tree as tests: which folder may import which, which package belongs to which folder, and what
 * every file looks like. ARCHITECTURE.md explains the table.
 */
import assert from "node:assert/strict";
import { existsSync, readFileSync, readdirSync, statSync } from "node:fs";
import { dirname, join, normalize } from "node:path";
import { test } from "node:test";

interface Room {
  /** A folder: its files, and those of its folders that have no row of their own. */
  readonly room: string;
  /** The rooms whose files it may import besides its own; a name that ends with a slash and two stars is all below a folder. */
  readonly mayImport: readonly string[];
  /** Node modules and packages that it may import. */
  readonly modules: readonly string[];
}

const BASE = ["src/base", "src/base/lib", "src/base/dns", "src/base/model"];
/** What the engine reports of containers and networks, and what their labels say. */
const FACTS = "src/container/facts";
/** What all sources of names share. */
const SOURCE = "src/container/names/source";

/** All that a run is composed of. Whatever it uses of these is its own business. */
const BELOW_RUN = [
  ...[
    "api",
    "base",
    "config",
    "container",
    "control",
    "etcd",
    "keeper",
    "kernel",
    "kubernetes",
    "metrics",
    "policy",
    "query",
  ].map((folder) => `src/${folder}/**`),
];
/** Modules without effects outside of what uses them. */
const HARMLESS = new Set([
  "node:assert",
  "node:crypto",
  "node:events",
  "node:path",
  "node:timers/promises",
  "node:url",
  "node:util",
]);

const ROOMS: readonly Room[] = [
  { room: "src/base", mayImport: [], modules: [] },
  { room: "src/base/lib", mayImport: [], modules: [] },
  // Below everything that knows DNS.
  { room: "src/base/dns", mayImport: ["src/base/lib"], modules: [] },
  {
    room: "src/base/model",
    mayImport: ["src/base/dns", "src/base/lib"],
    modules: ["dns-packet", "node:net"],
  },
  // What containers may resolve: as it is declared, and the code that decides.
  { room: "src/policy/model", mayImport: BASE, modules: [] },
  { room: "src/policy/judge", mayImport: ["src/policy/model", ...BASE], modules: [] },
  { room: "src/policy/book", mayImport: ["src/policy/judge", "src/policy/model", ...BASE], modules: [] },
  // What was recorded, as a policy, and as a policy would judge it.
  {
    room: "src/policy/traffic",
    mayImport: ["src/api", "src/policy/enforce", "src/policy/judge", "src/policy/model", ...BASE],
    modules: [],
  },
  { room: "src/config", mayImport: ["src/policy/model", ...BASE], modules: [] },
  {
    room: "src/config/file",
    mayImport: [
      "src/config",
      "src/config/dnsmasq",
      "src/config/kube-dns",
      "src/config/records",
      "src/policy/model",
      ...BASE,
    ],
    modules: ["node:fs", "node:fs/promises", "node:worker_threads", "yaml", "zod"],
  },
  // What files of other programs say, as settings.
  { room: "src/config/dnsmasq", mayImport: ["src/config", "src/config/records", ...BASE], modules: [] },
  { room: "src/config/kube-dns", mayImport: ["src/config", ...BASE], modules: [] },
  { room: "src/config/records", mayImport: ["src/config", ...BASE], modules: [] },
  { room: "src/base/log", mayImport: ["src/base", "src/base/lib", "src/base/model"], modules: ["pino"] },
  {
    room: "src/kernel",
    mayImport: BASE,
    modules: ["koffi", "node-netlink/dist/raw.js", "node:dgram", "node:fs"],
  },
  // What policed containers may reach, in the kernel: it knows no names, and no container but by its id.
  { room: "src/policy/table", mayImport: ["src/policy/model", "src/kernel", ...BASE], modules: [] },
  // What the next boot needs to know.
  {
    room: "src/policy/boot",
    mayImport: ["src/kernel", "src/policy/model", ...BASE],
    modules: ["node:fs", "node:fs/promises"],
  },
  // It has the kernel do what the policies of containers say.
  {
    room: "src/policy/enforce",
    mayImport: ["src/policy/judge", "src/policy/model", "src/policy/table", ...BASE],
    modules: [],
  },
  // What attaches programs waits in a thread of its own.
  {
    room: "src/kernel/answers",
    mayImport: ["src/kernel", ...BASE],
    modules: ["node:fs", "node:worker_threads"],
  },
  // The keeper's process, and the link to it: no names, engine or containers.
  {
    room: "src/keeper",
    mayImport: ["src/kernel", ...BASE],
    modules: ["node:child_process", "node:fs"],
  },
  // The client of etcd: it knows neither names nor containers.
  { room: "src/etcd", mayImport: BASE, modules: ["node:http", "node:https"] },
  // That of the API of a cluster: the same.
  { room: "src/kubernetes", mayImport: BASE, modules: ["node:http", "node:https"] },
  // The query side from the bottom up: messages, records, history, client, upstream servers, cache, policy.
  { room: "src/query/wire", mayImport: BASE, modules: [] },
  { room: "src/query/record", mayImport: ["src/policy/judge", ...BASE], modules: [] },
  { room: "src/query/history", mayImport: ["src/query/record", ...BASE], modules: [] },
  { room: "src/query/failures", mayImport: ["src/query/record", ...BASE], modules: [] },
  // What tests want done with certain queries.
  { room: "src/query/verdict", mayImport: ["src/query/record", "src/query/wire", ...BASE], modules: [] },
  {
    room: "src/query/client",
    mayImport: [
      "src/policy/judge",
      "src/query/verdict",
      "src/query/failures",
      "src/query/history",
      "src/query/record",
      ...BASE,
    ],
    modules: [],
  },
  {
    room: "src/query/upstream",
    mayImport: ["src/kernel", "src/query/client", ...BASE],
    modules: ["node:net"],
  },
  {
    room: "src/query/cache",
    mayImport: ["src/query", "src/query/client", "src/query/record", "src/query/upstream", "src/query/wire", ...BASE],
    modules: [],
  },
  {
    room: "src/query/policy",
    mayImport: [
      "src/query/verdict",
      "src/query",
      "src/query/client",
      "src/query/gate",
      "src/query/record",
      "src/query/wire",
      ...BASE,
    ],
    modules: [],
  },
  // What policies say of the query that is being answered, and of every answer.
  {
    room: "src/query/gate",
    mayImport: ["src/policy/judge", "src/query", "src/query/record", "src/query/wire", ...BASE],
    modules: [],
  },
  // The path of a query, its trace, and the interfaces between listen, answer and forward, which do not import each other.
  {
    room: "src/query",
    mayImport: [
      "src/policy/judge",
      "src/query/gate",
      "src/query/verdict",
      "src/query/cache",
      "src/query/client",
      "src/query/policy",
      "src/query/record",
      "src/query/upstream",
      "src/query/wire",
      ...BASE,
    ],
    modules: [],
  },
  {
    room: "src/query/forward",
    mayImport: [
      "src/kernel",
      "src/query",
      "src/query/gate",
      "src/query/cache",
      "src/query/client",
      "src/query/record",
      "src/query/upstream",
      "src/query/wire",
      ...BASE,
    ],
    modules: ["node:dgram", "node:net"],
  },
  {
    room: "src/query/delay",
    mayImport: ["src/query", "src/query/client", "src/query/forward", "src/query/gate", "src/query/record", ...BASE],
    modules: [],
  },
  {
    room: "src/query/docker",
    mayImport: ["src/query", "src/query/client", "src/query/forward", "src/query/record", "src/query/wire", ...BASE],
    modules: [],
  },
  {
    room: "src/query/listen",
    mayImport: ["src/kernel", "src/query", "src/query/client", ...BASE],
    modules: ["node:net"],
  },
  { room: "src/container/capture", mayImport: [], modules: [] },
  // Facts are below the code that interprets them.
  { room: FACTS, mayImport: BASE, modules: [] },
  { room: SOURCE, mayImport: [FACTS, ...BASE], modules: [] },
  // A source of names knows neither other sources, but for Docker's, nor its readers.
  ...[
    ["declared"],
    ["builds", "docker"],
    ["default-bridge", "docker"],
    ["docker"],
    ["etcd"],
    ["extra"],
    ["extra-hosts", "docker"],
    ["host-domain", "docker"],
    ["host-name"],
    ["kubernetes"],
    ["other-networks", "docker"],
    ["projects"],
    ["stopped", "docker"],
    ["swarm", "docker"],
    ["zone", "docker"],
  ].map(([name, ...others]) => ({
    room: `src/container/names/${name}`,
    mayImport: [SOURCE, FACTS, ...others.map((each) => `src/container/names/${each}`), ...BASE],
    modules: [],
  })),
  {
    room: "src/container/names",
    mayImport: [
      FACTS,
      "src/container/names/declared",
      "src/container/names/builds",
      "src/container/names/default-bridge",
      "src/container/names/docker",
      "src/container/names/extra",
      "src/container/names/extra-hosts",
      "src/container/names/host-domain",
      "src/container/names/host-name",
      "src/container/names/kubernetes",
      "src/container/names/other-networks",
      "src/container/names/projects",
      SOURCE,
      "src/container/names/stopped",
      "src/container/names/swarm",
      "src/container/names/zone",
      ...BASE,
    ],
    modules: [],
  },
  // What other machines learn of containers.
  { room: "src/container/publish", mayImport: [FACTS, "src/container/names/zone", ...BASE], modules: [] },
  {
    room: "src/container/registry",
    mayImport: [
      FACTS,
      "src/container/names",
      "src/container/names/docker",
      "src/container/names/host-name",
      SOURCE,
      "src/container/names/zone",
      ...BASE,
    ],
    modules: [],
  },
  {
    room: "src/container/rules",
    mayImport: ["src/container/capture", "src/kernel", ...BASE],
    modules: ["node:child_process"],
  },
  {
    room: "src/container/namespace",
    mayImport: ["src/container/capture", "src/container/rules", "src/kernel", ...BASE],
    modules: ["node:fs", "node:fs/promises"],
  },
  {
    room: "src/container/watch",
    mayImport: [FACTS, "src/container/namespace", "src/kernel", ...BASE],
    modules: ["dockerode", "node:fs", "node:http", "node:readline", "node:stream"],
  },
  {
    room: "src/container/bridge",
    mayImport: [
      "src/container/attach",
      "src/container/capture",
      FACTS,
      "src/container/namespace",
      "src/container/watch",
      "src/kernel",
      ...BASE,
    ],
    modules: ["node:net"],
  },
  {
    room: "src/container/kind",
    mayImport: [
      "src/container/attach",
      "src/container/capture",
      FACTS,
      "src/container/names/docker",
      "src/container/names/host-name",
      SOURCE,
      "src/container/namespace",
      "src/container/rules",
      "src/container/watch",
      "src/kernel",
      ...BASE,
    ],
    modules: ["node:fs", "node:net", "node:os"],
  },
  // Where containers connect to.
  {
    room: "src/container/egress",
    mayImport: [FACTS, "src/container/links", "src/kernel", ...BASE],
    modules: [],
  },
  // The host's side of containers' networks.
  {
    room: "src/container/links",
    mayImport: [FACTS, "src/container/namespace", "src/kernel", ...BASE],
    modules: [],
  },
  {
    room: "src/container/attach",
    mayImport: [
      "src/container/capture",
      FACTS,
      "src/container/namespace",
      "src/container/registry",
      "src/container/rules",
      "src/kernel",
      "src/kernel/answers",
      ...BASE,
    ],
    modules: [],
  },
  // Containers with a network stack of their own: what KIND mode does to a resolv.conf, for the listener.
  {
    room: "src/container/guest",
    mayImport: ["src/container/capture", FACTS, "src/container/kind", "src/container/namespace", "src/kernel", ...BASE],
    modules: ["node:net"],
  },
  // Containers that ask for the search list of their project: as they are attached otherwise, with what KIND mode does to a resolv.conf.
  {
    room: "src/container/search",
    mayImport: [
      "src/container/attach",
      "src/container/capture",
      FACTS,
      "src/container/kind",
      "src/container/namespace",
      "src/kernel",
      ...BASE,
    ],
    modules: [],
  },
  // Steps of builds, which ask the listener.
  {
    room: "src/container/builds",
    mayImport: [
      "src/container/attach",
      FACTS,
      "src/container/links",
      "src/container/listener",
      "src/container/names/host-name",
      "src/container/namespace",
      "src/container/watch",
      "src/kernel",
      ...BASE,
    ],
    modules: [],
  },
  // An address of the host for containers: links say who asks, rules let nobody else through.
  {
    room: "src/container/listener",
    mayImport: [FACTS, "src/container/namespace", "src/container/rules", "src/kernel", ...BASE],
    modules: [],
  },
  // Addresses of the host for other machines: the names of published containers, and rules that let nobody else ask.
  {
    room: "src/container/lan",
    mayImport: [
      FACTS,
      "src/container/host",
      SOURCE,
      "src/container/names/zone",
      "src/container/namespace",
      "src/container/publish",
      "src/container/rules",
      "src/kernel",
      ...BASE,
    ],
    modules: ["node:fs", "node:net"],
  },
  // Names for the host's own programs: it uses attach to serve one more namespace.
  {
    room: "src/container/host",
    mayImport: [
      "src/container/attach",
      "src/container/capture",
      FACTS,
      "src/container/names/docker",
      "src/container/names/host-domain",
      "src/container/names/zone",
      "src/container/namespace",
      "src/container/rules",
      "src/kernel",
      ...BASE,
    ],
    modules: ["node:fs", "node:net"],
  },
  {
    room: "src/container",
    mayImport: [
      "src/container/attach",
      "src/container/bridge",
      FACTS,
      "src/container/guest",
      "src/container/kind",
      "src/container/registry",
      "src/container/search",
      "src/container/watch",
      "src/kernel",
      ...BASE,
    ],
    modules: [],
  },
  // The control socket's API and its client: independent of both sides and of a run.
  {
    room: "src/api",
    mayImport: ["src/api/lab", ...BASE],
    modules: ["node:fs", "node:http"],
  },
  // The client's part for test suites: tapes are files of theirs.
  { room: "src/api/lab", mayImport: ["src/api", ...BASE], modules: ["node:fs", "yaml"] },
  // Requests to a run, from the bottom up. Causes are pure functions, which send no query and read no file.
  {
    room: "src/control/causes",
    mayImport: ["src/api", FACTS, "src/container/registry", "src/container/watch", ...BASE],
    modules: [],
  },
  { room: "src/control/containers", mayImport: ["src/api", FACTS, ...BASE], modules: [] },
  // Leases: rules of tests for the query side.
  {
    room: "src/control/lease",
    mayImport: ["src/api", "src/config/records", "src/control/containers", FACTS, "src/query/verdict", ...BASE],
    modules: [],
  },
  {
    room: "src/control/server",
    mayImport: ["src/base/log", ...BASE],
    modules: ["node:fs", "node:http", "node:net", "node:stream"],
  },
  {
    room: "src/control/history",
    mayImport: [
      "src/api",
      "src/base/log",
      FACTS,
      "src/control/server",
      "src/query/client",
      "src/query/history",
      "src/query/upstream",
      ...BASE,
    ],
    modules: [],
  },
  // The ports that control needs, which src/run implements, and what is known of a container and a name.
  {
    room: "src/control/situation",
    mayImport: [
      "src/container/egress",
      "src/policy/book",
      "src/policy/judge",
      "src/control/lease",
      "src/control/containers",
      "src/api",
      "src/container/attach",
      FACTS,
      "src/container/registry",
      "src/container/watch",
      "src/control/causes",
      "src/control/history",
      "src/control/server",
      "src/query",
      "src/query/cache",
      "src/query/client",
      "src/query/failures",
      "src/query/forward",
      "src/query/history",
      "src/query/policy",
      "src/query/upstream",
      ...BASE,
    ],
    modules: ["node:net"],
  },
  {
    room: "src/control/explain",
    mayImport: [
      "src/control/containers",
      "src/api",
      "src/container/attach",
      FACTS,
      "src/container/watch",
      "src/control/causes",
      "src/control/failures",
      "src/control/situation",
      "src/query",
      "src/query/client",
      "src/query/forward",
      ...BASE,
    ],
    modules: [],
  },
  {
    room: "src/control/egress",
    mayImport: ["src/api", "src/control/containers", "src/control/situation", FACTS, ...BASE],
    modules: [],
  },
  {
    room: "src/control/failures",
    mayImport: [
      "src/control/containers",
      "src/api",
      "src/container/attach",
      FACTS,
      "src/control/causes",
      "src/control/situation",
      "src/query/failures",
      ...BASE,
    ],
    modules: [],
  },
  {
    room: "src/control/reports",
    mayImport: [
      "src/control/containers",
      "src/api",
      "src/container/attach",
      FACTS,
      "src/control/causes",
      "src/control/server",
      "src/control/situation",
      "src/query/cache",
      "src/query/client",
      "src/query/policy",
      "src/query/upstream",
      ...BASE,
    ],
    modules: [],
  },
  // What policies say, and have done.
  {
    room: "src/control/policy",
    mayImport: [
      "src/api",
      FACTS,
      "src/control/containers",
      "src/control/situation",
      "src/policy/book",
      "src/policy/enforce",
      "src/policy/judge",
      "src/policy/model",
      "src/query/client",
      "src/query/policy",
      ...BASE,
    ],
    modules: [],
  },
  {
    room: "src/control/routes",
    mayImport: [
      "src/control/egress",
      "src/control/policy",
      "src/control/lease",
      "src/control/containers",
      "src/api",
      "src/control/explain",
      "src/control/failures",
      "src/control/history",
      "src/control/reports",
      "src/control/server",
      "src/control/situation",
      "src/query/failures",
      "src/query/history",
      ...BASE,
    ],
    modules: ["node:net"],
  },
  // The page of `dns11 ui`, from the bottom up: it runs in a browser, so it takes types from the API and small tools.
  { room: "src/ui/page/model", mayImport: ["src/api", ...BASE], modules: [] },
  { room: "src/ui/page/data", mayImport: ["src/api", "src/ui/page/model", ...BASE], modules: ["preact/hooks"] },
  {
    room: "src/ui/page",
    mayImport: ["src/api", "src/ui/page/data", "src/ui/page/model"],
    modules: ["preact", "preact/hooks"],
  },
  {
    room: "src/metrics",
    mayImport: ["src/api", "src/query/record", ...BASE],
    modules: ["node:fs", "node:module", "prom-client"],
  },
  // Inspects the system itself, with or without a running dns11; of that one it uses only the public API.
  {
    room: "src/doctor",
    mayImport: [
      "src/api",
      "src/container",
      "src/container/attach",
      "src/container/capture",
      FACTS,
      "src/container/host",
      "src/container/kind",
      "src/container/namespace",
      "src/container/registry",
      "src/container/rules",
      "src/container/watch",
      "src/kernel",
      ...BASE,
    ],
    modules: ["node:fs", "node:net", "node:zlib"],
  },
  // The page in a browser: a client of the control socket like the commands, with a listener of its own.
  {
    room: "src/ui/server",
    mayImport: ["src/api", "src/control/server", ...BASE],
    modules: ["node:child_process", "node:fs", "node:http", "node:net"],
  },
  {
    room: "src/ui/snapshot",
    mayImport: ["src/api", "src/doctor", "src/ui/server", ...BASE],
    modules: ["node:fs"],
  },
  // The composition root: nothing imported here imports it.
  {
    room: "src/run",
    mayImport: [
      ...BELOW_RUN,
      "src/run/etcd",
      "src/run/folders",
      "src/run/kubernetes",
      "src/run/quarantine",
      "src/run/records",
    ],
    modules: ["node:child_process", "node:fs", "node:os", "node:v8"],
  },
  { room: "src/run/engine", mayImport: [...BELOW_RUN, "src/run", "src/run/quarantine"], modules: [] },
  { room: "src/run/node", mayImport: [...BELOW_RUN, "src/run", "src/run/quarantine"], modules: ["node:fs"] },
  { room: "src/run/etcd", mayImport: [...BELOW_RUN], modules: ["node:fs", "node:fs/promises"] },
  { room: "src/run/kubernetes", mayImport: [...BELOW_RUN], modules: [] },
  { room: "src/run/folders", mayImport: [...BELOW_RUN], modules: ["node:fs"] },
  { room: "src/run/records", mayImport: [...BELOW_RUN, "src/run/folders"], modules: [] },
  { room: "src/run/quarantine", mayImport: ["src/base/log", "src/kernel", ...BASE], modules: ["node:fs"] },
  // The GitHub Action: programs of their own, clients of the control socket.
  {
    room: "src/action",
    mayImport: ["src/api", ...BASE],
    modules: ["node:child_process", "node:fs"],
  },
  {
    room: "cmd",
    mayImport: [
      "src/api/**",
      "src/base/log",
      "src/config/**",
      "src/doctor",
      "src/policy/book",
      "src/policy/model",
      "src/policy/traffic",
      "src/run/**",
      "src/ui/server",
      "src/ui/snapshot",
      ...BASE,
    ],
    modules: ["commander", "node:child_process", "node:fs", "node:net", "node:os"],
  },
];

const ROOMS_BY_NAME = new Map(ROOMS.map((row) => [row.room, row]));
const SOURCES = [...sources("src"), ...sources("cmd")];

/** Above this a file has more than one noun. Comments are not shortened for it. */
const LINES_MAX = 450;
/** Folders with a list that is easier to find in one place: every limit has its reason beside it. */
const LONG_LISTS: ReadonlySet<string> = new Set(["src/base"]);

test("every row of the table is a folder", () => {
  const strange = ROOMS.map(({ room }) => room).filter(
    (room) => !statSync(room, { throwIfNoEntry: false })?.isDirectory(),
  );
  assert.deepEqual(strange, []);
});

test("every import is allowed by the table", () => {
  const broken = SOURCES.flatMap(({ path, packages, targets }) => {
    const room = roomOf(path);
    if (room === undefined) return [`${path} is in no room of the table`];
    const { mayImport, modules } = room;
    const strange = packages.filter((name) => !HARMLESS.has(name) && !modules.includes(name));
    const forbidden = targets.filter(
      (target) => roomOf(target) !== room && !mayImport.some((each) => covers(each, target)),
    );
    return [
      ...strange.map((name) => `${path} imports "${name}"; ${room.room} may import ${list(modules)}`),
      ...forbidden.map((target) => `${path} imports ${target}; ${room.room} may import ${list(mayImport)}`),
    ];
  });
  assert.deepEqual(broken, []);
});

test("no row allows imports or modules that are not used", () => {
  const shared = new Set([...BASE, ...BELOW_RUN, FACTS, SOURCE]);
  const unused = ROOMS.flatMap((row) => {
    const files = SOURCES.filter(({ path }) => roomOf(path) === row);
    const targets = files.flatMap((file) => file.targets);
    const packages = new Set(files.flatMap((file) => file.packages));
    return [
      ...row.mayImport.filter((each) => !shared.has(each) && !targets.some((target) => covers(each, target))),
      ...row.modules.filter((name) => !packages.has(name)),
    ].map((each) => `${row.room}: ${each}`);
  });
  assert.deepEqual(unused, []);
});

test("there are no import cycles of files, including types", () => {
  assert.deepEqual(cyclic(new Map(SOURCES.map(({ path, targets }) => [path, new Set(targets)]))), []);
});

test("there are no import cycles of the folders in a folder, at any level", () => {
  const levels = new Map<string, Map<string, Set<string>>>();
  for (const { path, targets } of SOURCES) {
    for (const target of targets) {
      const [from, to] = [path.split("/"), target.split("/")];
      const depth = from.findIndex((part, index) => part !== to[index]);
      // A file beside the folders composes them, or is what they have in common.
      if (depth === from.length - 1 || depth === to.length - 1) continue;
      const level = from.slice(0, depth).join("/");
      const folders = levels.get(level) ?? new Map<string, Set<string>>();
      levels.set(level, folders);
      const [folder, other] = [from[depth] ?? "", to[depth] ?? ""];
      folders.set(folder, (folders.get(folder) ?? new Set()).add(other));
    }
  }
  assert.ok(levels.size > 5);
  const broken = [...levels].flatMap(([level, folders]) => cyclic(folders).map((folder) => `${level}/${folder}`));
  assert.deepEqual(broken, []);
});

/** What imports a cycle, or is part of one: what remains when all that imports nothing, or only what is gone, is gone. */
function cyclic(graph: ReadonlyMap<string, ReadonlySet<string>>): string[] {
  const imports = new Map(graph);
  for (let before = -1; before !== imports.size;) {
    before = imports.size;
    for (const [name, targets] of imports) if (![...targets].some((each) => imports.has(each))) imports.delete(name);
  }
  // What no remaining one imports is not part of a cycle either.
  for (let before = -1; before !== imports.size;) {
    before = imports.size;
    const imported = new Set([...imports.values()].flatMap((targets) => [...targets]));
    for (const name of imports.keys()) if (!imported.has(name)) imports.delete(name);
  }
  return [...imports.keys()];
}

test("the query side and the container side do not import each other", () => {
  const sideOf = (path: string): string | undefined => /^src\/(?:query|container)\b/.exec(path)?.[0];
  const crossing = SOURCES.flatMap(({ path, targets }) =>
    targets
      .filter((target) => sideOf(path) !== undefined && ![undefined, sideOf(path)].includes(sideOf(target)))
      .map((target) => `${path} -> ${target}`),
  );
  assert.deepEqual(crossing, []);
});

/**
 * Folders whose code opens or reads files directly, and why a container never controls the path. All others use
 * kernel/regular-file.ts (checked before, opened without blocking) or kernel/proc-text.ts (bounded reads).
 */
const OPENERS = new Map([
  ["src/kernel", "the common implementation; files under /proc about our own processes; /dev/null"],
  ["src/kernel/answers", "this thread's namespace"],
  ["src/action", "files of the step's own folder, and of its checkout; the state of its processes under /proc"],
  ["src/api", "settings of the user who started dns11"],
  ["src/api/lab", "a file of the test suite that uses the client"],
  ["src/container/bridge", "for a watch, by regular-file.ts"],
  ["src/container/guest", "the resolv.conf of a guest, by regular-file.ts"],
  ["src/container/host/resolved", "the TUN device below the engine's root, which is the host's"],
  [
    "src/container/kind",
    "dns11's own folder; this thread's namespace; with O_PATH; files of a node, by regular-file.ts",
  ],
  [
    "src/container/namespace",
    "namespaces; paths of the engine and of a container's root, by regular-file.ts, or openat2 within it",
  ],
  ["src/container/search", "the resolv.conf that Docker made for a container, by regular-file.ts"],
  ["src/container/watch", "with O_PATH"],
  ["src/control/server", "/etc/group"],
  ["src/doctor", "the engine's socket; dns11's own folder"],
  ["src/doctor/bundle", "a new file at the path that the user gives, with O_EXCL; the kernel's release under /proc"],
  ["src/doctor/kind", "this thread's namespace"],
  ["src/keeper", "/dev/null"],
  ["src/metrics", "files of this process"],
  ["src/policy/boot", "dns11's own folder, by regular-file.ts"],
  ["src/run", "files of the package; dns11's own folder; files under /proc about clients of the control socket"],
  ["src/run/node", "this thread's namespace"],
  ["src/run/quarantine", "dns11's own folder"],
  ["src/ui/server", "files of the package"],
  ["src/ui/snapshot", "the user's own folder, with O_EXCL"],
  ["cmd/process", "files of the package"],
]);
const OPENING = /(?:^|[^.#\w])(?:openSync|readFileSync|readSync|openInRoot|createReadStream|readFile|openAsBlob)\(/m;

test("the list of folders that open files directly is complete and current", () => {
  const opening = new Set(
    SOURCES.filter(({ text }) => OPENING.test(text.replaceAll(/^import .*$/gm, ""))).map(({ path }) => dirname(path)),
  );
  assert.deepEqual([...opening].toSorted(), [...OPENERS.keys()].toSorted());
});

/**
 * What src/base/dns defines: the layout of a DNS message and the meaning of its numbers. Defining one of these
 * elsewhere would duplicate it.
 */
const SECOND_VOCABULARY: readonly RegExp[] = [
  /\b(?:HEADER_BYTES|QUESTION_\w*BYTES|RECORD_\w*BYTES|OPT_BYTES|MESSAGE_BYTES_MAX|NAME_BYTES_MAX|OUR_UDP_BYTES) = /,
  /\b(?:TYPE|CLASS|RCODE|OPCODE|OPTION)_(?!AT\b)[A-Z]+ = (?:0x)?\d/,
  /const (?:TYPES?|RCODES?|CLASS|OPCODE|OPTION) = (?:\{|\[\d|new )/,
  /function (?:read|write|set)?[uU](?:int)?(?:16|32)\(/,
];
/** Where messages are read and written, src/base/dns reads the numbers, and masks have names. */
const RAW_BYTES = /\b(?:read|write)UInt(?:16|32)BE\(|0xc0\b|0x3f\b|& 0x(?:0?f|f0)\b|& 15\b/;
const ON_MESSAGES = /^src\/(?:query\/(?!listen)|base\/model\/(?!address))/;

test("DNS message formats are defined only in src/base/dns", () => {
  const second = SOURCES.filter(
    ({ path }) => !path.startsWith("src/base/dns/") && !path.startsWith("src/kernel/"),
  ).flatMap(({ path, text }) =>
    [...SECOND_VOCABULARY, ...(ON_MESSAGES.test(path) ? [RAW_BYTES] : [])]
      .map((pattern) => pattern.exec(text)?.[0])
      .filter((found) => found !== undefined)
      .map((found) => `${path}: ${found}`),
  );
  assert.deepEqual(second, []);
});

test("commands print JSON with jsonLine, which escapes control characters", () => {
  const own = SOURCES.filter(
    ({ path, text }) => path.startsWith("cmd/") && /JSON\.stringify\([^`]*\)\}\\n`/.test(text),
  ).map(({ path }) => path);
  // What docker asks its plugin about, in which nothing is from outside.
  assert.deepEqual(own, ["cmd/docker-dns.ts"]);
});

/** Settings on the side of dns11, and tapes in the test suites that use its client. */
const YAML = "yaml";

test("every runtime package is imported by one folder only", () => {
  const { dependencies } = JSON.parse(readFileSync("package.json", "utf8")) as { dependencies: Record<string, string> };
  for (const name of Object.keys(dependencies)) {
    const folders = new Set(
      SOURCES.filter(({ packages }) => packages.some((each) => each === name || each.startsWith(`${name}/`))).map(
        ({ path }) => dirname(path),
      ),
    );
    // A subfolder belongs to its folder.
    const outermost = [...folders].filter((folder) => ![...folders].some((other) => folder.startsWith(`${other}/`)));
    assert.ok(outermost.length === 1 || name === YAML, `${name} is imported by ${list([...folders])}`);
  }
});

test("every import names a file that exists", () => {
  const missing = SOURCES.flatMap(({ path, targets }) =>
    targets.filter((target) => !/\.tsx?$/.test(target) || !existsSync(target)).map((target) => `${path}: ${target}`),
  );
  assert.deepEqual(missing, []);
});

test("every file has a header comment and stays small", () => {
  for (const { path, text } of [...SOURCES, ...sources("test/support")]) {
    const body = text.startsWith("#!") ? text.slice(text.indexOf("\n") + 1) : text;
    assert.ok(/^\/\*\*|^\/\/ /.test(body) || /^import[^;]+;\n\n?\/\*\*/.test(body), `${path} has no header comment`);
    if (LONG_LISTS.has(dirname(path))) continue;
    assert.ok(text.split("\n").length <= LINES_MAX, `${path} has over ${LINES_MAX} lines: split it`);
  }
});

test("the top level contains only the expected files", () => {
  const allowed = [
    "cmd",
    "src",
    "test",
    "scripts",
    "docs",
    "package.json",
    "package-lock.json",
    "tsconfig.json",
    "Makefile",
  ];
  const documents = ["README.md", "ARCHITECTURE.md", "CHANGELOG.md", "SECURITY.md", "CONTRIBUTING.md", "LICENSE"];
  const made = ["node_modules", "dist"];
  const others = readdirSync(".").filter(
    (name) => !name.startsWith(".") && ![...allowed, ...documents, ...made].includes(name),
  );
  assert.deepEqual(others, []);
});

interface Source {
  readonly path: string;
  readonly text: string;
  /** The files that it imports, also for their types, and the modules and packages. */
  readonly targets: readonly string[];
  readonly packages: readonly string[];
}

function sources(folder: string): Source[] {
  return readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((file) => /\.tsx?$/.test(file))
    .map((file) => {
      const path = join(folder, file);
      const text = readFileSync(path, "utf8");
      const imports = [...text.matchAll(/(?:^import\s[^"]*?|^} from |^export .* from |import\()"([^"]+)"/gm)].map(
        ([, specifier = ""]) => specifier,
      );
      const isOwn = (specifier: string): boolean => specifier.startsWith(".");
      return {
        path,
        text,
        targets: imports.filter(isOwn).map((specifier) => normalize(join(dirname(path), specifier))),
        packages: imports.filter((specifier) => !isOwn(specifier)),
      };
    });
}

/** The row of the folder, or of the nearest folder above it that has one. */
function roomOf(path: string): Room | undefined {
  const folder = dirname(path);
  return ROOMS_BY_NAME.get(folder) ?? (folder === "." ? undefined : roomOf(folder));
}

function covers(allowed: string, target: string): boolean {
  return allowed.endsWith("/**") ? target.startsWith(allowed.slice(0, -2)) : roomOf(target)?.room === allowed;
}

function list(items: readonly string[]): string {
  return items.length === 0 ? "nothing" : items.join(", ");
}
