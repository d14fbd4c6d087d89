/**
 * Rules of the source tree as tests: which folder may import which, which package belongs to which folder, and what
 * every file looks like. ARCHITECTURE.md explains the table.
 */
import assert from "node:assert/strict";
import { existsSync, readFileSync, readdirSync } from "node:fs";
import { dirname, join, normalize } from "node:path";
import { test } from "node:test";

interface Room {
  /** Path prefix; the longest match applies. */
  readonly room: string;
  /** Prefixes of files that it may import besides its own. */
  readonly mayImport: readonly string[];
  /** Node modules and packages it may import. */
  readonly modules: readonly string[];
}

const BASE = ["src/base/lib", "src/base/dns", "src/base/model", "src/base/limits.ts"];
/** What the engine reports of containers and networks, and what their labels say. */
const FACTS = "src/container/facts";
/** What all sources of names share. */
const SOURCE = "src/container/names/source";
/** Modules without side effects. */
const PURE = ["node:crypto", "node:util"];

const ROOMS: readonly Room[] = [
  { room: "src/base/declared-limits.ts", mayImport: [], modules: [] },
  { room: "src/base/swarm-limits.ts", mayImport: [], modules: [] },
  {
    room: "src/base/limits.ts",
    mayImport: [
      "src/base/declared-limits.ts",
      "src/base/etcd-limits.ts",
      "src/base/swarm-limits.ts",
      "src/base/log/log-limits.ts",
    ],
    modules: [],
  },
  { room: "src/base/etcd-limits.ts", mayImport: [], modules: [] },
  { room: "src/base/lib", mayImport: [], modules: PURE },
  // Below everything that knows DNS.
  { room: "src/base/dns", mayImport: ["src/base/lib"], modules: [] },
  { room: "src/base/model", mayImport: ["src/base/lib", "src/base/dns"], modules: ["node:net", "dns-packet", ...PURE] },
  {
    room: "src/config",
    mayImport: BASE,
    modules: [],
  },
  {
    room: "src/config/file",
    mayImport: ["src/config", ...BASE],
    modules: ["yaml", "zod", "node:fs", "node:fs/promises", "node:path", "node:worker_threads"],
  },
  { room: "src/config/records", mayImport: ["src/config/kinds.ts", ...BASE], modules: [] },
  {
    room: "src/base/log",
    mayImport: [
      "src/base/limits.ts",
      "src/base/lib/printable.ts",
      "src/base/model/event.ts",
      "src/base/model/log-choices.ts",
    ],
    modules: ["pino"],
  },
  {
    room: "src/kernel",
    mayImport: BASE,
    modules: ["koffi", "node-netlink/dist/raw.js", "node:crypto", "node:dgram", "node:fs", "node:util"],
  },
  // What attaches programs waits in a thread of its own.
  {
    room: "src/kernel/answers/link-thread.ts",
    mayImport: ["src/kernel", ...BASE],
    modules: ["node:events", "node:worker_threads"],
  },
  {
    room: "src/kernel/answers/link-thread-main.ts",
    mayImport: ["src/kernel", ...BASE],
    modules: ["node:fs", "node:worker_threads"],
  },
  // The keeper's process, and the link to it: no names, engine or containers.
  {
    room: "src/keeper",
    mayImport: ["src/kernel", ...BASE],
    modules: ["node:child_process", "node:fs", "node:path", "node:timers/promises", "node:url"],
  },
  // The client of etcd: it knows neither names nor containers.
  { room: "src/etcd", mayImport: BASE, modules: ["node:http", "node:https"] },
  // The query side from the bottom up: messages, trace, records, history, client, upstream servers, cache, policy.
  { room: "src/query/wire", mayImport: BASE, modules: [] },
  { room: "src/query/trace.ts", mayImport: ["src/base/dns", "src/base/model"], modules: [] },
  { room: "src/query/record", mayImport: BASE, modules: [] },
  { room: "src/query/history", mayImport: ["src/query/record", ...BASE], modules: [] },
  { room: "src/query/failures", mayImport: ["src/query/record", ...BASE], modules: [] },
  // What tests want done with certain queries.
  {
    room: "src/query/verdict",
    mayImport: ["src/query/record/outcome.ts", "src/query/wire/alias.ts", ...BASE],
    modules: [],
  },
  {
    room: "src/query/client",
    mayImport: [
      "src/query/failures",
      "src/query/history",
      "src/query/record",
      "src/query/verdict/verdicts.ts",
      ...BASE,
    ],
    modules: [],
  },
  {
    room: "src/query/upstream",
    mayImport: ["src/query/client", "src/kernel", ...BASE],
    modules: ["node:crypto", "node:net"],
  },
  {
    room: "src/query/cache",
    mayImport: [
      "src/query/wire",
      "src/query/trace.ts",
      "src/query/record",
      "src/query/client/client.ts",
      "src/query/upstream/nameserver-pool.ts",
      ...BASE,
    ],
    modules: [],
  },
  {
    room: "src/query/policy",
    mayImport: [
      "src/query/wire",
      "src/query/ports.ts",
      "src/query/record/outcome.ts",
      "src/query/trace.ts",
      "src/query/verdict",
      ...BASE,
    ],
    modules: [],
  },
  // The interfaces between listen, answer and forward, so that they do not import each other.
  {
    room: "src/query/ports.ts",
    mayImport: [
      "src/query/client/client.ts",
      "src/query/record/outcome.ts",
      "src/query/wire/alias.ts",
      "src/query/trace.ts",
      "src/base/dns",
      "src/base/model",
    ],
    modules: [],
  },
  {
    room: "src/query/answer.ts",
    mayImport: [
      "src/query/wire",
      "src/query/policy",
      "src/query/cache",
      "src/query/upstream/loop-guard.ts",
      "src/query/client/client.ts",
      "src/query/record/outcome.ts",
      "src/query/ports.ts",
      "src/query/trace.ts",
      "src/query/verdict/verdicts.ts",
      ...BASE,
    ],
    modules: ["node:crypto"],
  },
  {
    room: "src/query/forward",
    mayImport: [
      "src/query/wire",
      "src/query/cache",
      "src/query/upstream",
      "src/query/client/client.ts",
      "src/query/record",
      "src/query/ports.ts",
      "src/query/trace.ts",
      "src/kernel",
      ...BASE,
    ],
    modules: ["node:dgram", "node:net"],
  },
  {
    room: "src/query/docker",
    mayImport: [
      "src/query/wire",
      "src/query/forward",
      "src/query/client/client.ts",
      "src/query/record/outcome.ts",
      "src/query/ports.ts",
      ...BASE,
    ],
    modules: [],
  },
  {
    room: "src/query/delay",
    mayImport: [
      "src/query/wire",
      "src/query/forward/admission.ts",
      "src/query/client/client.ts",
      "src/query/record/outcome.ts",
      "src/query/ports.ts",
      ...BASE,
    ],
    modules: [],
  },
  {
    room: "src/query/listen",
    mayImport: [
      "src/query/client",
      "src/query/failures/failure-tables.ts",
      "src/query/history/query-histories.ts",
      "src/query/ports.ts",
      "src/kernel",
      ...BASE,
    ],
    modules: ["node:net"],
  },
  { room: "src/container/capture", mayImport: BASE, modules: [] },
  // Facts are below the code that interprets them.
  { room: FACTS, mayImport: BASE, modules: [] },
  { room: SOURCE, mayImport: [FACTS, ...BASE], modules: [] },
  // A source of names knows neither other sources, but for Docker's, nor its readers.
  ...[
    ["declared"],
    ["default-bridge", "docker"],
    ["docker"],
    ["etcd"],
    ["extra"],
    ["extra-hosts", "docker"],
    ["host-domain", "docker"],
    ["host-name"],
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
  { room: "src/container/names", mayImport: [FACTS, ...BASE], modules: [] },
  // What other machines are told of containers.
  {
    room: "src/container/publish",
    mayImport: ["src/container/names/zone/published-member.ts", FACTS, ...BASE],
    modules: [],
  },
  { room: "src/container/registry", mayImport: ["src/container/names", FACTS, ...BASE], modules: [] },
  {
    room: "src/container/rules",
    mayImport: ["src/kernel", ...BASE],
    modules: ["node:crypto", "node:child_process", "node:timers/promises"],
  },
  { room: "src/container/rules/plan.ts", mayImport: ["src/container/capture"], modules: [] },
  {
    room: "src/container/namespace",
    mayImport: ["src/container/capture", "src/container/rules/plan.ts", "src/kernel", ...BASE],
    modules: ["node:fs", "node:fs/promises", "node:timers/promises"],
  },
  {
    room: "src/container/watch",
    mayImport: [
      FACTS,
      "src/container/namespace/engine-host.ts",
      "src/kernel/libc.ts",
      "src/kernel/proc-text.ts",
      ...BASE,
    ],
    modules: [
      "dockerode",
      "node:http",
      "node:module",
      "node:readline",
      "node:stream",
      "node:timers/promises",
      "node:fs",
      "node:path",
    ],
  },
  {
    room: "src/container/bridge",
    mayImport: [
      "src/container/attach/attach-mode.ts",
      "src/container/capture",
      "src/container/namespace",
      FACTS,
      "src/container/watch/debounce-timer.ts",
      "src/kernel/libc.ts",
      "src/kernel/regular-file.ts",
      ...BASE,
    ],
    modules: ["node:net"],
  },
  {
    room: "src/container/kind",
    mayImport: [
      "src/container/attach/attach-mode.ts",
      "src/container/capture",
      "src/container/names/docker/search-order.ts",
      "src/container/names/host-name/host-name.ts",
      "src/container/names/source/name-source.ts",
      "src/container/namespace",
      FACTS,
      "src/container/rules",
      "src/container/watch/debounce-timer.ts",
      "src/kernel",
      ...BASE,
    ],
    modules: ["node:crypto", "node:fs", "node:net", "node:os", "node:path", "node:timers/promises", "node:util"],
  },
  {
    room: "src/container/attach",
    mayImport: [
      "src/container/capture",
      "src/container/namespace",
      FACTS,
      "src/container/registry",
      "src/container/rules",
      "src/kernel",
      ...BASE,
    ],
    modules: ["node:timers/promises"],
  },
  // Names for the host's own programs: it uses attach to serve one more namespace.
  {
    room: "src/container/host",
    mayImport: [
      "src/container/attach",
      "src/container/capture",
      "src/container/names/docker/network-names.ts",
      "src/container/names/host-domain/host-domain.ts",
      "src/container/names/zone/member.ts",
      "src/container/names/zone/reach.ts",
      "src/container/namespace",
      FACTS,
      "src/container/rules/exchange.ts",
      "src/kernel",
      ...BASE,
    ],
    modules: ["node:fs", "node:net", "node:util"],
  },
  {
    room: "src/container/roster.ts",
    mayImport: [
      "src/container/bridge/bridges.ts",
      "src/container/attach",
      "src/container/kind/node-warnings.ts",
      "src/container/kind/nodes.ts",
      FACTS,
      "src/container/registry",
      "src/base/lib",
      "src/base/model",
    ],
    modules: [],
  },
  {
    room: "src/container/preflight.ts",
    mayImport: ["src/container/watch/engine.ts", "src/kernel/capabilities.ts", "src/base/lib"],
    modules: [],
  },
  // The client's part for test suites: tapes are files of theirs.
  { room: "src/api/lab", mayImport: ["src/api", ...BASE], modules: ["node:fs", "node:timers/promises", "yaml"] },
  // The control socket's API and its client: independent of both sides and of a run.
  {
    room: "src/api",
    mayImport: BASE,
    modules: ["node:crypto", "node:events", "node:fs", "node:http", "node:path", "node:timers/promises"],
  },
  // Requests to a run: it declares the ports that it needs, and src/run implements them.
  {
    room: "src/control",
    mayImport: [
      "src/api",
      "src/container/attach",
      FACTS,
      "src/container/registry/former-addresses.ts",
      "src/container/watch/resolv-conf.ts",
      "src/base/log/log.ts",
      "src/query",
      ...BASE,
    ],
    modules: ["node:crypto", "node:events", "node:fs", "node:http", "node:net", "node:timers/promises"],
  },
  // Leases: rules of tests for the query side.
  {
    room: "src/control/lease",
    mayImport: [
      "src/api/failures.ts",
      "src/api/lease.ts",
      "src/config/records/name-value.ts",
      "src/control/find-container.ts",
      "src/control/http.ts",
      FACTS,
      "src/query/verdict",
      ...BASE,
    ],
    modules: ["node:net", "node:timers/promises"],
  },
  // Why a name fails, from what is known: pure functions, which send no query and read no file.
  {
    room: "src/control/causes",
    mayImport: [
      "src/api/causes.ts",
      FACTS,
      "src/container/registry/former-addresses.ts",
      "src/container/watch/resolv-conf.ts",
      ...BASE,
    ],
    modules: [],
  },
  // The page of `dns11 ui`, from the bottom up: it runs in a browser, so it takes types from the API and one small tool.
  {
    room: "src/ui/page/model",
    mayImport: ["src/api", "src/base/lib/cut-middle.ts"],
    modules: [],
  },
  {
    room: "src/ui/page/data",
    mayImport: ["src/api", "src/base/lib/printable.ts", "src/ui/page/model"],
    modules: ["preact/hooks"],
  },
  {
    room: "src/ui/page",
    mayImport: ["src/api"],
    modules: ["preact", "preact/hooks"],
  },
  {
    room: "src/metrics",
    mayImport: ["src/api/etcd.ts", "src/api/status.ts", "src/query/record/meter.ts", ...BASE],
    modules: ["node:crypto", "node:fs", "node:module", "prom-client"],
  },
  // Inspects the system itself, with or without a running dns11; of that one it uses only the public API.
  {
    room: "src/doctor",
    mayImport: [
      "src/api",
      "src/api/engine-address.ts",
      "src/container/attach",
      "src/container/capture",
      "src/container/host/resolved/resolved-use.ts",
      "src/container/kind",
      "src/container/namespace",
      "src/container/preflight.ts",
      FACTS,
      "src/container/registry/label-routes.ts",
      "src/container/rules",
      "src/container/watch",
      "src/kernel",
      ...BASE,
    ],
    modules: ["node:crypto", "node:fs", "node:net", "node:path", "node:zlib"],
  },
  // The page in a browser: a client of the control socket like the commands, with a listener of its own.
  {
    room: "src/ui/server",
    mayImport: ["src/api/doctor-lines.ts", "src/control/connection-limit.ts", ...BASE],
    modules: [
      "node:child_process",
      "node:crypto",
      "node:events",
      "node:fs",
      "node:http",
      "node:net",
      "node:path",
      "node:url",
    ],
  },
  {
    room: "src/ui/snapshot",
    mayImport: [
      "src/api",
      "src/doctor/bundle/redactor.ts",
      "src/ui/server/headers.ts",
      "src/ui/server/page-files.ts",
      ...BASE,
    ],
    modules: ["node:fs", "node:path"],
  },
  // The composition root: nothing imported here imports it.
  {
    room: "src/run",
    mayImport: [
      "src/api",
      "src/config",
      "src/container/attach",
      "src/container/kind",
      "src/container/namespace",
      "src/container/preflight.ts",
      "src/container/rules/orphaned-rules.ts",
      "src/container/watch",
      "src/container/names/etcd/stored-names.ts",
      "src/container/names/shared-names.ts",
      "src/container/names/zone/remote-members.ts",
      "src/container/publish",
      "src/control",
      "src/etcd",
      "src/keeper",
      "src/kernel",
      "src/metrics",
      "src/base/log",
      "src/query",
      ...BASE,
    ],
    modules: [
      "node:child_process",
      "node:crypto",
      "node:fs",
      "node:fs/promises",
      "node:os",
      "node:path",
      "node:timers/promises",
      "node:util",
      "node:v8",
    ],
  },
  {
    room: "src/run/engine",
    mayImport: [
      "src/api",
      "src/config",
      "src/container/attach",
      "src/container/bridge/bridges.ts",
      "src/container/capture",
      "src/container/host",
      "src/container/kind",
      "src/container/names",
      "src/container/namespace",
      "src/container/preflight.ts",
      "src/container/publish",
      FACTS,
      "src/container/registry",
      "src/container/roster.ts",
      "src/container/rules/zones.ts",
      "src/container/watch",
      "src/control",
      "src/kernel/descriptors.ts",
      "src/metrics/container-metrics.ts",
      "src/base/log",
      "src/run/container-side.ts",
      "src/run/platform.ts",
      "src/run/open-namespace.ts",
      "src/run/quarantine/quarantines.ts",
      "src/run/query-side.ts",
      ...BASE,
    ],
    modules: ["node:timers/promises"],
  },
  {
    room: "src/run/node",
    mayImport: [
      "src/api/state-paths.ts",
      "src/config/settings.ts",
      FACTS,
      "src/container/attach",
      "src/container/capture",
      "src/container/kind",
      "src/container/namespace",
      "src/container/preflight.ts",
      "src/container/registry",
      "src/container/rules",
      "src/container/watch/resolv-conf.ts",
      "src/control/ports.ts",
      "src/kernel",
      "src/base/log",
      "src/run/container-side.ts",
      "src/run/instance.ts",
      "src/run/open-namespace.ts",
      "src/run/quarantine/quarantines.ts",
      ...BASE,
    ],
    modules: ["node:crypto", "node:fs", "node:timers/promises"],
  },
  {
    room: "src/run/quarantine",
    mayImport: ["src/kernel/libc.ts", "src/base/log/log.ts", ...BASE],
    modules: ["node:fs", "node:path"],
  },
  // The GitHub Action: programs of their own, clients of the control socket.
  {
    room: "src/action",
    mayImport: ["src/api", "src/base/lib/fault.ts", "src/base/lib/printable.ts"],
    modules: ["node:child_process", "node:crypto", "node:fs", "node:path", "node:timers/promises", "node:url"],
  },
  {
    room: "cmd",
    mayImport: [
      "src/api",
      "src/config",
      "src/doctor",
      "src/base/log/log.ts",
      "src/run",
      "src/ui/server",
      "src/ui/snapshot",
      ...BASE,
    ],
    modules: [
      "commander",
      "node:child_process",
      "node:fs",
      "node:net",
      "node:os",
      "node:path",
      "node:timers/promises",
      "node:url",
    ],
  },
];

/** Above this a file has more than one noun. Comments are not shortened for it. */
const LINES_MAX = 450;
/** One list that is easier to find in one place: every number has its reason beside it. */
const LONG_LISTS: ReadonlySet<string> = new Set(["src/base/limits.ts"]);

test("every import is allowed by the table", () => {
  const broken = sources().flatMap(({ path, text }) => {
    const room = roomOf(path);
    if (room === undefined) return [`${path} matches no row of the table`];
    return importsOf(text).flatMap((specifier) => {
      if (!specifier.startsWith(".")) {
        return room.modules.includes(specifier) || specifier === "node:assert"
          ? []
          : [`${path} imports "${specifier}"; ${room.room} may import ${list(room.modules)}`];
      }
      const target = normalize(join(dirname(path), specifier));
      const allowed = [room.room, ...room.mayImport];
      return allowed.some((prefix) => target === prefix || target.startsWith(`${prefix}/`))
        ? []
        : [`${path} imports ${target}; ${room.room} may import ${list(room.mayImport)}`];
    });
  });
  assert.deepEqual(broken, []);
});

test("no row allows imports that are not used", () => {
  const shared = new Set([...BASE, FACTS, SOURCE]);
  const unused = ROOMS.flatMap(({ room, mayImport }) => {
    const files = sources().filter(({ path }) => roomOf(path)?.room === room);
    const targets = files.flatMap(({ path, text }) =>
      importsOf(text)
        .filter((specifier) => specifier.startsWith("."))
        .map((specifier) => normalize(join(dirname(path), specifier))),
    );
    const isUsed = (prefix: string): boolean =>
      targets.some((target) => target === prefix || target.startsWith(`${prefix}/`));
    return mayImport.filter((prefix) => !shared.has(prefix) && !isUsed(prefix)).map((prefix) => `${room}: ${prefix}`);
  });
  assert.deepEqual(unused, []);
  assert.deepEqual(
    ROOMS.filter(({ mayImport }) => mayImport.includes("src")).map(({ room }) => room),
    [],
  );
});

test("no row allows modules that are not used", () => {
  const unused = ROOMS.flatMap(({ room, modules }) => {
    const imported = sources()
      .filter(({ path }) => roomOf(path)?.room === room)
      .flatMap(({ text }) => importsOf(text));
    return modules.filter((name) => ![...PURE, ...imported].includes(name)).map((name) => `${room}: ${name}`);
  });
  assert.deepEqual(unused, []);
});

test("there are no import cycles, including types", () => {
  const imports = new Map(
    sources().map(({ path, text }) => [
      path,
      importsOf(text)
        .filter((specifier) => specifier.startsWith("."))
        .map((specifier) => normalize(join(dirname(path), specifier))),
    ]),
  );
  // A file that imports nothing, or only removed files, is not part of a cycle.
  for (let before = -1; before !== imports.size;) {
    before = imports.size;
    for (const [path, targets] of imports) if (!targets.some((target) => imports.has(target))) imports.delete(path);
  }
  // The remaining files import a cycle or are part of one. Removing files that no remaining file imports leaves the
  // cycles.
  for (let before = -1; before !== imports.size;) {
    before = imports.size;
    const imported = new Set([...imports.values()].flat());
    for (const path of imports.keys()) if (!imported.has(path)) imports.delete(path);
  }
  assert.deepEqual([...imports.keys()], []);
});

test("the query side and the container side do not import each other", () => {
  const crossing = sources().flatMap(({ path, text }) =>
    importsOf(text)
      .filter((specifier) => specifier.startsWith("."))
      .map((specifier) => normalize(join(dirname(path), specifier)))
      .filter(
        (target) =>
          [path, target].some((p) => p.startsWith("src/query")) &&
          [path, target].some((p) => p.startsWith("src/container")),
      )
      .map((target) => `${path} -> ${target}`),
  );
  assert.deepEqual(crossing, []);
});

/**
 * Files that open or read files directly, and why a container never controls the path. All others use
 * kernel/regular-file.ts (checked before, opened without blocking) or kernel/proc-text.ts (bounded reads).
 */
const OPENERS = new Map([
  ["src/kernel/regular-file.ts", "the common implementation"],
  ["src/action/place.ts", "files of the step's own folder; the state of its processes under /proc"],
  ["src/action/report.ts", "files of the step's own folder"],
  ["src/action/start.ts", "files of the step's own folder, and of its checkout"],
  ["src/kernel/process.ts", "files under /proc about our own processes"],
  ["src/kernel/proc-text.ts", "files under /proc"],
  ["src/kernel/xtables.ts", "lists of tables under /proc, which take a lock to read"],
  ["src/kernel/libc.ts", "the openat2 call; /dev/null"],
  ["src/kernel/nft-watch.ts", "/dev/null"],
  ["src/kernel/answers/link-thread-main.ts", "this thread's namespace"],
  ["src/kernel/capabilities.ts", "files of this process"],
  ["src/container/namespace/namespace-runner.ts", "this thread's namespace"],
  ["src/container/host/resolved/tun-link.ts", "the TUN device below the engine's root, which is the host's"],
  ["src/container/namespace/engine-host.ts", "paths of the engine's process under /proc; regular-file.ts"],
  ["src/container/namespace/container-root.ts", "a container's root under /proc; regular-file.ts"],
  ["src/container/namespace/proof.ts", "namespaces that the engine names"],
  ["src/run/lease-holder.ts", "files under /proc about clients of the control socket"],
  ["src/api/lab/tape-file.ts", "a file of the test suite that uses the client"],
  ["src/api/engine-address.ts", "settings of the user who started dns11"],
  ["src/container/watch/path-watch.ts", "with O_PATH"],
  ["src/container/bridge/bridges.ts", "for a watch, by regular-file.ts"],
  ["src/container/kind/in-node.ts", "files of the node; ResolverFile uses regular-file.ts"],
  ["src/container/kind/journal.ts", "dns11's own folder"],
  ["src/container/kind/nodes.ts", "with O_PATH; ResolverFile uses regular-file.ts"],
  ["src/container/kind/pod-namespace.ts", "this thread's namespace"],
  ["src/container/kind/resolv-conf-file.ts", "files opened by regular-file.ts"],
  ["src/container/kind/node-restore.ts", "restoreRecord uses regular-file.ts"],
  ["src/control/socket.ts", "/etc/group"],
  ["src/run/version.ts", "files of the package"],
  ["src/keeper/keeper-main.ts", "/dev/null"],
  ["src/kernel/descriptors.ts", "files of this process"],
  ["src/run/node/node-side.ts", "this thread's namespace"],
  ["src/doctor/kind/in-node.ts", "this thread's namespace"],
  ["src/doctor/bundle/bundle.ts", "a new file at the path that the user gives, with O_EXCL"],
  ["src/doctor/bundle/contents.ts", "the kernel's release under /proc"],
  ["src/run/instance.ts", "dns11's own folder"],
  ["src/run/quarantine/crash-recorder.ts", "dns11's own folder"],
  ["src/run/quarantine/crash-history.ts", "dns11's own folder"],
  ["src/doctor/machine-check.ts", "the engine's socket; dns11's own folder"],
  ["src/metrics/process-metrics.ts", "files of this process"],
  ["cmd/process/build.ts", "files of the package"],
  ["src/ui/server/page-files.ts", "files of the package"],
  ["src/ui/snapshot/snapshot-folder.ts", "the user's own folder, with O_EXCL"],
]);
const OPENING = /(?:^|[^.#\w])(?:openSync|readFileSync|readSync|openInRoot|createReadStream|readFile|openAsBlob)\(/m;

test("the list of files that open files directly is complete and current", () => {
  const opening = sources()
    .filter(({ text }) => OPENING.test(text.replaceAll(/^import .*$/gm, "")))
    .map(({ path }) => path);
  assert.deepEqual(opening.toSorted(), [...OPENERS.keys()].toSorted());
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
  const second = sources()
    .filter(({ path }) => !path.startsWith("src/base/dns/") && !path.startsWith("src/kernel/"))
    .flatMap(({ path, text }) =>
      [...SECOND_VOCABULARY, ...(ON_MESSAGES.test(path) ? [RAW_BYTES] : [])]
        .map((pattern) => pattern.exec(text)?.[0])
        .filter((found) => found !== undefined)
        .map((found) => `${path}: ${found}`),
    );
  assert.deepEqual(second, []);
});

test("commands print JSON with jsonLine, which escapes control characters", () => {
  const own = sources()
    .filter(({ path, text }) => path.startsWith("cmd/") && /JSON\.stringify\([^`]*\)\}\\n`/.test(text))
    .map(({ path }) => path);
  // What docker asks its plugin about, in which nothing is from outside.
  assert.deepEqual(own, ["cmd/docker-dns.ts"]);
});

/** Settings on the side of dns11, and tapes in the test suites that use its client. */
const YAML = "yaml";

test("every runtime package is imported by one folder only", () => {
  const { dependencies } = JSON.parse(readFileSync("package.json", "utf8")) as { dependencies: Record<string, string> };
  for (const name of Object.keys(dependencies)) {
    const folders = new Set(
      sources()
        .filter(({ text }) => importsOf(text).some((each) => each === name || each.startsWith(`${name}/`)))
        .map(({ path }) => dirname(path)),
    );
    // A subfolder belongs to its folder.
    const outermost = [...folders].filter((folder) => ![...folders].some((other) => folder.startsWith(`${other}/`)));
    assert.ok(outermost.length === 1 || name === YAML, `${name} is imported by ${list([...folders])}`);
  }
});

test("every import names a file that exists", () => {
  const missing = sources().flatMap(({ path, text }) =>
    importsOf(text)
      .filter((specifier) => specifier.startsWith("."))
      .filter((specifier) => !/\.tsx?$/.test(specifier) || !existsSync(join(dirname(path), specifier)))
      .map((specifier) => `${path}: ${specifier}`),
  );
  assert.deepEqual(missing, []);
});

test("every file has a header comment and stays small", () => {
  for (const { path, text } of [...sources(), ...sources(["test/support"])]) {
    const body = text.startsWith("#!") ? text.slice(text.indexOf("\n") + 1) : text;
    assert.ok(/^\/\*\*|^\/\/ /.test(body) || /^import[^;]+;\n\n?\/\*\*/.test(body), `${path} has no header comment`);
    if (LONG_LISTS.has(path)) continue;
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

function sources(folders: readonly string[] = ["src", "cmd"]): { path: string; text: string }[] {
  return folders.flatMap((folder) =>
    readdirSync(folder, { recursive: true, encoding: "utf8" })
      .filter((file) => /\.tsx?$/.test(file))
      .map((file) => join(folder, file))
      .map((path) => ({ path, text: readFileSync(path, "utf8") })),
  );
}

/** Static and dynamic imports, including types. */
function importsOf(text: string): string[] {
  return [...text.matchAll(/(?:^import\s[^"]*?|^} from |^export .* from |import\()"([^"]+)"/gm)].map(
    ([, specifier]) => specifier ?? "",
  );
}

function roomOf(path: string): Room | undefined {
  return ROOMS.filter(({ room }) => path === room || path.startsWith(`${room}/`)).toSorted(
    (a, b) => b.room.length - a.room.length,
  )[0];
}

function list(items: readonly string[]): string {
  return items.length === 0 ? "nothing" : items.join(", ");
}
