// @ts-check
/**
 * Explanations: what the lists of errors and log messages say beside the texts of the source. An error with its own remedy
 * needs none; a log message is found by what it is about, so that better words for it do not lose its explanation.
 * Features have theirs beside their code.
 */
import { existsSync, readdirSync } from "node:fs";
import { join, resolve } from "node:path";

const FEATURES = "dist/src/features";

/** What to do about an error whose text does not say so, by its code. @type {Readonly<Record<string, string>>} */
const ERROR_REMEDIES = {
  NOT_RUNNING: "Start it: dns11 run, or where the package is installed systemctl start dns11",
  POLICY_NOT_HELD: "Change what the message names; dns11 policy says the same of containers that run.",
  BAD_BODY: "Control socket: correct the request; the API page lists what each route takes.",
  BAD_OPTION: "Client library: correct the option; the types of the package list all.",
  BAD_QUERY: "Control socket: correct the parameters of GET /v1/queries.",
  BAD_RCODE: "Use response codes such as NXDOMAIN,SERVFAIL.",
  BAD_SERVER: "Name the server by its IP address.",
  CLOSED: "Client library: connect again; nothing works after close.",
  CONTROL: "Look at the log of dns11. A process of another version may still be running; restart it.",
  EMFILE: "Raise the limit of open files: LimitNOFILE= under systemd, ulimit -n in a shell.",
  ENDED: "Check `dns11 status` and `docker ps`, start whichever has stopped, then run the command again.",
  ENGINE_ELSEWHERE: "Run dns11 on the machine of the engine.",
  KERNEL:
    "Load the kernel module nf_tables, or choose another rule-backend. The message names what the kernel refused.",
  NAMESPACE_IS_HOST: "Nothing to fix: query from the host, e.g. `dig NAME`.",
  NO_CONTAINER: "Control socket: name the container in the request.",
  NOT_JSON: "Control socket: send a JSON object.",
  NOT_RELOADED:
    "Correct the lines that the message lists; dns11 check-config FILE checks them without a running dns11.",
  NOT_RESOLVED: "Client library: run dns11 explain for that name in that container.",
  NOT_SERVED: "dns11 ps prints why the container is not served.",
  NO_SUCH_CONTAINER: "dns11 ps lists the running containers.",
  TOO_LONG: "The input exceeds a fixed limit, and nothing was read beyond it. Shorten it.",
  TOO_MANY:
    "The namespace has more rules or sockets than dns11 reads. Find and remove the surplus: nsenter -t PID -n nft list ruleset, nsenter -t PID -n ss -s.",
  TOO_MANY_SOCKETS:
    "The container sends too many queries to its own servers at once; further ones fail until some finish. nsenter -t PID -n ss -s counts its sockets; dns11 tail shows its queries.",
  TOO_MANY_STREAMS:
    "Too many replies are truncated, or servers accept only TCP; further queries fail until some finish. ss -s counts the connections; dns11 upstreams shows the servers.",
  USAGE: "Run the command with --help.",
};

/** What a log message means, by what it is about; the first that fits. @type {readonly (readonly [RegExp, string])[]} */
const LOG_MEANINGS = [
  [
    /another dns11 serves the containers/,
    "All containers are attached by another process, which has another state directory (`--state-dir`): the lock that keeps a second one from starting is there. `dns11 status` shows which one runs.",
  ],
  [
    /same defect|internal error (?:repeated|again)/,
    "The error logged before occurred again; its stack is in the earlier line.",
  ],
  [
    /defect|internal error/,
    "A bug in dns11. Only the task in progress (one query, reply, container or request) was aborted. Please report it with its stack.",
  ],
  [/no settings file/, "SIGHUP or reload without a settings file has no effect. Start dns11 with --config."],
  [
    /reload failed|settings not/,
    "The settings file, or a folder that it names (`dnsmasq-dir`, `kube-dns-dir`), has mistakes; the old settings stay in effect. The reason lists the lines.",
  ],
  [/inspect/, "The engine did not return a container's details. dns11 retries; the container is served when it does."],
  [
    /crash history|record crashes|written down|whose work/,
    "Crashes cannot be attributed to a container, because the state directory cannot be written. Check its permissions and free space.",
  ],
  [
    /crashed|died/,
    "The previous dns11 process ended without shutting down. If it happens repeatedly for one container, that container is quarantined.",
  ],
  [/could not be started|cannot start/, "The new process did not start; the running one keeps serving."],
  [
    /restore the previous metrics|metrics .*were/,
    "After a failed reload, the previous metrics address cannot be used any more. Choose another one and reload.",
  ],
  [
    /cannot reopen the control socket/,
    "A takeover failed, and another process may have taken the metrics address meanwhile. Containers are served. End that process: dns11 tries again, in the end once a minute. Or choose another address and reload.",
  ],
  [
    /metrics/,
    "The default metrics address is in use, by another dns11 or program. Choose one with --metrics-addr, or off.",
  ],
  [/suppressed/, "The log takes a limited number of lines of one kind per minute; this is the number of the others."],
  [
    /loop/,
    "That nameserver sends the container's queries back to dns11. It is not used for that container for a minute. Correct the nameserver's upstream.",
  ],
  [
    /is down/,
    "The nameserver does not reply, or fails for names of different zones; the reason says which. Others are queried first until it answers again.",
  ],
  [
    /lookup failed/,
    "No upstream server gave a usable reply to a query; `result` lists what each one did. A name is logged once in ten minutes for each container, with `repeated`; a container has 16 names in that time, `othersSuppressed` counts the failures of others. The name is left out unless `queries.names` is full.",
  ],
  [
    /upstream failed|nameserver failed/,
    "Strict mode only: a nameserver did not answer a query. Logged once a minute for each nameserver, with `repeated`.",
  ],
  [
    /^keeper that refuses queries has another version/,
    "A keeper of an incompatible version refused the queries of containers with an enforced policy. Docker's resolver answers these until dns11 has attached to them.",
  ],
  [
    /another version/,
    "The running process is of an incompatible version, so the new one starts after it has stopped; Docker's resolver answers in between.",
  ],
  [
    /cannot pause/,
    "This process goes on serving, and the new one gives up after ten seconds. Out of file descriptors, for example.",
  ],
  [
    /another process serves|somebody else/,
    "Another instance holds the lock after a takeover failed; this process exits.",
  ],
  [/^new process took over/, "From the keeper: the new process serves all namespaces. The old one exits."],
  [
    /exited before it took over/,
    "The new process could not start; its own log lines say why. The old one still serves.",
  ],
  [/^takeover failed, resuming/, "The new process did not take over in time or exited; this process serves again."],
  [
    /^takeover failed/,
    "From the keeper: the new process did not take over; `reason` says why. The old process resumes, or Docker's resolver answers.",
  ],
  [
    /^a changed setting/,
    "What `setting` decides happens once, at the start. Restart dns11 to apply it; `--replace` loses no query.",
  ],
  [
    /^keeper is gone/,
    "dns11 still serves. Until the keeper runs again, rules of a killed dns11 are removed more slowly, or not at all with the backend nft.",
  ],
  [
    /^policies are enforced, refusing all queries/,
    "From the keeper: dns11 has ended, for this `reason`. So many namespaces with an enforced [policy](policy.md#when-dns11-ends) get SERVFAIL for all queries until dns11 runs again.",
  ],
  [
    /^a policy is enforced, but Docker's resolver answers/,
    "dns11 stops, or does not serve the container any more, and has no keeper that could [refuse its queries](policy.md#when-dns11-ends): Docker's resolver forwards every name for it.",
  ],
  [
    /^keeper has another protocol/,
    "dns11 was replaced on disk while it runs, so it continues without a keeper. Restart dns11 to have a keeper again.",
  ],
  [
    /^keeper failed, going on/,
    "An internal error, or too few descriptors. The keeper drops a takeover under way, and goes on. `reason` names what failed.",
  ],
  [
    /^keeper cannot drop/,
    "The keeper works, with more privileges than it needs. `reason` names what the kernel or the sandbox refused.",
  ],
  [
    /^removed the main process's rules/,
    "dns11 exited or hung without removing its rules, so the keeper removed them. Find the cause in the log before this line, and restart dns11.",
  ],
  [/system call filter/, "Everything works, but fewer system calls are denied to dns11 than usual. Nothing to do."],
  [
    /a variable of the environment has no meaning/,
    "Its name is nearly that of a variable that dns11 reads, which is `meant`. Correct it, or remove it.",
  ],
  [
    /cannot drop these capabilities/,
    "dns11 works, with more privileges than it needs, because CAP_SETPCAP is missing or a kernel policy forbids it. Remove those in `excess` from the unit or the container.",
  ],
  [
    /a process of the container locks its rules/,
    "nftables rules of the container cannot be changed until that process has finished. Nobody else waits; after three times in ten minutes the container is quarantined.",
  ],
  [
    /changes of rules wait for another container/,
    "No program on the machine can change nftables rules while two processes of one container compete for its lock. `a process of the container locks its rules` names that container.",
  ],
  [
    /takeover refused/,
    "A process asked the keeper for the sockets of all containers, and is not where dns11 runs: find out what it is.",
  ],
  [
    /not attached/,
    "The message says who answers the container: Docker's resolver, or nobody where a policy is enforced. code and reason say why; dns11 retries by itself.",
  ],
  [/not serving/, "dns11 inside a KIND node cannot serve it yet; the reason says why. It retries by itself."],
  [
    /configuration problem/,
    "Something about the container's settings was ignored; the warning says what, and what to do.",
  ],
  [
    /process 1/,
    "SIGUSR2 was sent to the first process of a container, which cannot be replaced. Restart the container instead.",
  ],
  [
    /rules of this|rules .*stay/,
    "With this rule backend, containers have no DNS after dns11 was killed, until dns11 cleanup or the next start.",
  ],
  [/waiting for the engine/, "There is no engine yet. dns11 starts serving when dockerd answers."],
  [/engine/, "dockerd does not answer. The last-known names keep being answered; dns11 reconnects by itself."],
  [/invalid nameservers|no addresses/, "Correct the nameserver lines of the host's resolv.conf."],
  [
    /NOTIFY_SOCKET|supervisor/,
    "The service manager cannot be notified. Check NotifyAccess= and the sandbox of the unit.",
  ],
  [/descriptor/, "The limit of open files is too low for many containers. Raise LimitNOFILE=."],
];

/** @typedef {{ errors?: Readonly<Record<string, string>>, log?: readonly (readonly [RegExp, string])[] }} Explanations */

/** @type {Explanations[]} */
const ofFeatures = await Promise.all(
  readdirSync(FEATURES)
    .map((name) => join(FEATURES, name, "explanations.js"))
    .filter((path) => existsSync(path))
    .map(async (path) => (await import(resolve(path))).EXPLANATIONS),
);

/** @type {Readonly<Record<string, string>>} */
const errors = Object.assign({}, ERROR_REMEDIES, ...ofFeatures.map((feature) => feature.errors));
const log = [...ofFeatures.flatMap((feature) => feature.log ?? []), ...LOG_MEANINGS];

/** @param {string} code */
export function remedyOf(code) {
  return errors[code];
}

/** @param {string} text */
export function logMeaning(text) {
  return log.find(([pattern]) => pattern.test(text))?.[1] ?? "";
}
