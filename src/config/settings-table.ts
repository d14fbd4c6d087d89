/**
 * SettingsTable: every setting that no feature has, declared once: its key in the settings file, the kind of its value, its default, its
 * flag if people type it by hand, and what it does. Types, variables, flags, the manual and the documents follow from it. What the values
 * mean to a run is in `merge-settings.ts`.
 */
import { LIMITS } from "../base/limits.ts";
import {
  HOST_NAME_SETTINGS,
  ADDRESS_ORDERS,
  NAME_CHOICES_DEFAULTS,
  PTR_FORMS,
  VISIBLE_SETTINGS,
  HEALTH_POLICIES,
  LABEL_DEFAULTS,
  LABEL_SERVERS,
} from "../base/model/name-choices.ts";
import { LOG_FORMATS, LOG_LEVELS } from "../base/log/choices.ts";
import { QUERY_NAMES } from "../base/model/query-record.ts";
import { RULE_BACKEND_SETTINGS } from "../base/model/rule-backend.ts";
import {
  CACHE_DEFAULTS,
  FORWARD_DEFAULTS,
  LOCAL_ONLY_DEFAULTS,
  MISSING_CONTAINER_SETTINGS,
} from "../base/model/upstream-policy.ts";
import {
  BOOLEAN,
  HEALTH_PROBE,
  HOST_DOMAIN,
  LISTEN_ADDRESS,
  ONLY,
  ROUTE,
  TTL,
  count,
  duration,
  oneOf,
  path,
  size,
  zeroOr,
} from "./kinds.ts";
import { type ValuesOf, list, one } from "./setting.ts";

const SECOND_MS = 1_000;
const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;
const DAY_MS = 86_400_000;
const KIB = 1024;
const GIB = 1024 ** 3;

const METRICS_ADDRESS = "127.0.0.1:9511";
export const HOST_DOMAIN_DEFAULT = "docker";

/**
 * How upstream servers are queried. `rotate` is `adaptive` from another server each time; `docker` is what strict mode does: as
 * Docker's resolver, without a cache and everything else that is said of the others.
 */
const FORWARD_ORDERS = ["adaptive", "rotate", "sequential", "parallel", "docker"] as const;

/** Whether a second process removes our rules if this one ends without doing so. */
const KEEPER_SETTINGS = ["on", "off"] as const;

const atStart = { isForStart: true };

export const CORE_SETTINGS = {
  strict: one(BOOLEAN, false, "answer exactly as current Docker does", { flag: "strict" }),
  only: list(
    ONLY,
    "serve only containers with label=KEY[=VALUE] or network=NAME; if repeated: every label and at least one network must match",
    // Values of labels have commas.
    { flag: "only <filter>", separator: /\s+/ },
  ),
  "trust-image-labels": one(
    BOOLEAN,
    LABEL_DEFAULTS.trustsImages,
    "honour io.dns11 labels of images, not only of containers",
  ),
  "label-servers": one(
    oneOf(LABEL_SERVERS),
    LABEL_DEFAULTS.servers,
    `where servers from labels are queried from: ${LABEL_SERVERS.join(", ")}`,
  ),
  visible: one(
    oneOf(VISIBLE_SETTINGS),
    "network",
    `whose names a container resolves: ${VISIBLE_SETTINGS.join(", ")}; beyond its own networks, as NAME.NETWORK`,
    { flag: "visible <names>" },
  ),
  "host-docker-internal": one(
    oneOf(HOST_NAME_SETTINGS),
    "off",
    "let containers without such an entry resolve host.docker.internal to the host's address on the default bridge",
  ),
  dns: list(ROUTE, "upstream server, or /DOMAIN/SERVER for the names of a domain", { flag: "dns <server>" }),
  "resolv-conf": one(
    path("/etc/resolv.conf"),
    undefined,
    "the host's resolv.conf, as seen by dockerd; without it, the one that dockerd uses",
  ),
  "host-domain": one(HOST_DOMAIN, HOST_DOMAIN_DEFAULT, "domain of container names on the host"),
  health: one(
    oneOf(HEALTH_POLICIES),
    "ignore",
    `whether unhealthy containers share names with others: ${HEALTH_POLICIES.join(", ")}`,
  ),
  ptr: one(
    oneOf(PTR_FORMS),
    NAME_CHOICES_DEFAULTS.ptr,
    `what addresses of containers point to: ${PTR_FORMS.join(", ")}`,
  ),
  "address-order": one(
    oneOf(ADDRESS_ORDERS),
    NAME_CHOICES_DEFAULTS.order,
    `the order of several addresses of a name: ${ADDRESS_ORDERS.join(", ")}`,
  ),
  "own-project": one(
    BOOLEAN,
    true,
    "if services of several Compose projects have a name on one network, answer with the client's own project",
    { strict: false },
  ),
  ttl: one(TTL, undefined, "TTL of container names, such as 5s or 1m", {
    flag: "ttl <time>",
  }),
  "rule-backend": one(
    oneOf(RULE_BACKEND_SETTINGS),
    "auto",
    `how redirect rules are installed: ${RULE_BACKEND_SETTINGS.join(", ")}`,
    atStart,
  ),
  "queries.names": one(
    oneOf(QUERY_NAMES),
    "full",
    `names in the query history: ${QUERY_NAMES.join(", ")}; off: no history`,
  ),
  "log-level": one(oneOf(LOG_LEVELS), "info", `log level: ${LOG_LEVELS.join(", ")}`, { flag: "log-level <level>" }),
  "log-format": one(oneOf(LOG_FORMATS), "auto", `log format: ${LOG_FORMATS.join(", ")}`, atStart),
  "metrics.addr": one(LISTEN_ADDRESS, METRICS_ADDRESS, "address of the metrics endpoint (IP:PORT), or off", {
    flag: "metrics-addr <address>",
  }),
  "metrics.containers": one(count(0, LIMITS.meteredContainersMax), 0, "how many containers have metrics of their own"),
  "health-probes": list(
    HEALTH_PROBE,
    "pages /healthz-PAGE that say whether a container resolves a name: PAGE=NAME@CONTAINER",
  ),
  "lame-duck": one(duration(0, MINUTE_MS, 1), 0, "how long to answer after SIGTERM while /ready already fails"),
  keeper: one(
    oneOf(KEEPER_SETTINGS),
    "on",
    "run a second process that hands containers back if this one dies or hangs, or refuses where a policy is enforced",
    atStart,
  ),
  "forward.order": one(
    oneOf(FORWARD_ORDERS),
    "adaptive",
    "how upstream servers are queried: adaptive (by health), rotate (by health, another one first each time), sequential (as listed), parallel (all at once), docker (as Docker does, without a cache)",
    { strict: "docker" },
  ),
  "forward.budget": one(
    duration(100, MINUTE_MS, 1),
    FORWARD_DEFAULTS.budgetMs,
    "time limit for a query, including all retries",
  ),
  "forward.tcp": one(BOOLEAN, FORWARD_DEFAULTS.usesTcp, "query upstream servers by TCP"),
  "forward.max-concurrent": one(
    count(1, LIMITS.forwardQueriesShared),
    FORWARD_DEFAULTS.queriesMax,
    "concurrent forwarded queries per container",
  ),
  "forward.domain-needed": one(
    BOOLEAN,
    LOCAL_ONLY_DEFAULTS.keepsDotless,
    "do not forward address queries for names without a dot, unless a route names them",
  ),
  "forward.bogus-priv": one(
    BOOLEAN,
    LOCAL_ONLY_DEFAULTS.keepsPrivateReverse,
    "do not forward reverse queries for private addresses, unless a route names them",
  ),
  "forward.missing-container": one(
    oneOf(MISSING_CONTAINER_SETTINGS),
    FORWARD_DEFAULTS.missingContainer,
    "names whose only upstream servers are containers that do not run: they fail, or the next route applies",
  ),
  "forward.tls-ca": one(
    path("/etc/dns11/ca.pem"),
    undefined,
    "file of the authorities that certificates of tls:// servers are to be of; without it, those of the machine",
  ),
  "cache.size": one(
    zeroOr(size(64 * KIB, 4 * GIB)),
    CACHE_DEFAULTS.bytesMax,
    "memory for cached replies of all containers; 0: no cache",
  ),
  "cache.min-ttl": one(
    duration(0, DAY_MS, SECOND_MS),
    CACHE_DEFAULTS.ttlSecondsMin * SECOND_MS,
    "lower limit for the TTL of cached replies",
  ),
  "cache.max-ttl": one(
    duration(SECOND_MS, 7 * DAY_MS, SECOND_MS),
    CACHE_DEFAULTS.ttlSecondsMax * SECOND_MS,
    "upper limit for the TTL of cached replies",
  ),
  "cache.max-negative-ttl": one(
    duration(0, DAY_MS, SECOND_MS),
    CACHE_DEFAULTS.negativeSecondsMax * SECOND_MS,
    "upper limit for the TTL of negative replies (NXDOMAIN, NODATA); 0 does not cache them",
  ),
  "cache.negative-ttl-without-soa": one(
    duration(0, HOUR_MS, SECOND_MS),
    CACHE_DEFAULTS.negativeSecondsWithoutSoa * SECOND_MS,
    "TTL of negative replies without an SOA record",
  ),
  "cache.max-stale": one(
    duration(0, 7 * DAY_MS, SECOND_MS),
    CACHE_DEFAULTS.staleSecondsMax * SECOND_MS,
    "how long an expired reply may be served when upstream servers fail; 0 disables it",
  ),
};

/** Durations are in milliseconds, sizes in bytes. */
export type CoreValues = ValuesOf<typeof CORE_SETTINGS>;
