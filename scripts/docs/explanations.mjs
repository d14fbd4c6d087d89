// @ts-check
/**
 * Explanations: what the lists of errors and log messages say beside the texts of the source. An error with a remedy of its own
 * needs none; a log message is found by what it is about, so that better words for it do not lose its explanation.
 */

/** What to do about an error whose text does not say so, by its code. @type {Readonly<Record<string, string>>} */
export const ERROR_REMEDIES = {
  BAD_BODY: "Control socket: correct the request; the API page lists what each route takes.",
  BAD_QUERY: "Control socket: correct the parameters of GET /v1/queries.",
  BAD_QUESTION: "Correct the name or the type; a type is a word such as A or MX, or TYPE and its number.",
  BAD_RCODE: "Use response codes such as NXDOMAIN,SERVFAIL.",
  BAD_SERVER: "Name the server by its IP address.",
  CONTROL: "Look at the log of dns11. A process of another version may still be running; restart it.",
  EACCES: "Run the command as root.",
  EMFILE: "Raise the limit of open files: LimitNOFILE= under systemd, ulimit -n in a shell.",
  ENDED: "dns11 stopped, or the container did. Start it and run the command again.",
  ENGINE_AWAY: "Check that dockerd is running: systemctl status docker.",
  ENGINE_ELSEWHERE: "Run dns11 on the machine of the engine.",
  ENGINE_NOT_FOUND: "The container, image or network was removed in the meantime. Run the command again.",
  IPTABLES: "Run the same iptables command in the namespace to see what it rejects.",
  KERNEL:
    "Load the kernel module nf_tables, or choose another --rule-backend. The message names what the kernel refused.",
  LINK_IS_GONE: "Another program removed the interface of a temporary pod. Run the check again.",
  NAME: "Correct the name: labels have at most 63 octets, a name at most 255.",
  NAMESPACE_IS_HOST: "Containers on the host's network use the host's resolver.",
  NO_CONTAINER: "Control socket: name the container in the request.",
  NO_FREE_ADDRESS: "Remove other programs' addresses in that range from the node.",
  NO_NODE: "Control socket: name the node in the request.",
  NOT_JSON: "Control socket: send a JSON object.",
  NOT_RELOADED:
    "Correct the lines that the message lists; dns11 check-config FILE checks them without a running dns11.",
  NOT_RESOLVED: "Client library: run dns11 explain for that name in that container.",
  NOT_SERVED: "dns11 status prints why the container is not served.",
  NO_SUCH_CONTAINER: "dns11 ps lists the running containers. Use a longer part of the id where several match.",
  NO_SUCH_NODE: "dns11 kind status lists the nodes.",
  POD_NOT_READY: "The machine is very busy, or the node is being stopped. Run the check again.",
  QUERIES_OFF: "Set queries.names to full or hidden.",
  TOO_LONG: "The input exceeds a fixed limit; nothing was read beyond it.",
  TOO_MANY: "A container has very many rules or sockets; dns11 stops reading at a limit.",
  TOO_MANY_SOCKETS:
    "The container sends very many queries to its own servers at once; queries are refused until some finish.",
  TOO_MANY_STREAMS:
    "Very many replies are truncated or servers accept only TCP; queries are refused until some finish.",
  USAGE: "Run the command with --help.",
};

/** What a log message means, by what it is about; the first that fits. @type {readonly (readonly [RegExp, string])[]} */
const LOG_MEANINGS = [
  [
    /same defect|internal error (?:repeated|again)/,
    "The error logged before occurred again; its stack is in the earlier line.",
  ],
  [
    /defect|internal error/,
    "A bug in dns11. It cost one query, reply, container or request. Please report it with its stack.",
  ],
  [/no settings file/, "SIGHUP or reload without a settings file has no effect. Start dns11 with --config."],
  [
    /reload failed|settings not/,
    "The settings file is invalid; the old settings stay in effect. The reason lists the lines.",
  ],
  [/inspect/, "The engine did not return a container's details. dns11 retries; the container is served when it does."],
  [
    /crash history|record crashes|written down|whose work/,
    "Crashes cannot be attributed to a container, because the state folder cannot be written. Check its permissions and free space.",
  ],
  [
    /crashed|died/,
    "The previous dns11 process ended without shutting down. If it happens repeatedly for one container, that container is quarantined.",
  ],
  [/could not be started|cannot start/, "The replacement process did not start; the running one keeps serving."],
  [
    /restore the previous metrics|metrics .*were/,
    "After a failed reload, the previous metrics address cannot be used any more. Choose another one and reload.",
  ],
  [
    /metrics/,
    "The default metrics address is in use, by another dns11 or program. Choose one with --metrics-addr, or off.",
  ],
  [
    /held back|suppressed/,
    "The log takes a limited number of lines of one kind per minute; this is the number of the others.",
  ],
  [
    /loop|leads back/,
    "That nameserver sends the container's queries back to dns11. It is not used for that container for a minute. Correct the nameserver's upstream.",
  ],
  [
    /is down/,
    "The nameserver does not reply, or only with errors; the reason says which. Others are queried first until it answers again.",
  ],
  [
    /lookup failed|no nameserver/,
    "No upstream server gave a usable reply to a query. The reason lists what each one did; dns11 upstreams shows since when.",
  ],
  [
    /upstream failed|nameserver failed/,
    "In mode strict: a nameserver did not answer a query. heldBack counts the lines suppressed since the last one.",
  ],
  [
    /flushed/,
    "The rule backend gets no notice of changes by other programs, so dns11 checks its rules at this interval.",
  ],
  [
    /another version/,
    "The running process is of an incompatible version, so the new one starts after it has stopped; Docker's resolver answers in between.",
  ],
  [
    /another process serves|somebody else/,
    "Another instance holds the lock after a hand-over failed; this process ends.",
  ],
  [/t(?:ake|ook) ?over/, "A hand-over to a new process was started and did not complete; this process keeps serving."],
  [/not attached/, "The container is served by Docker's resolver. code and reason say why; dns11 retries by itself."],
  [/not serving/, "dns11 inside a KIND node cannot serve it yet; the reason says why. It retries by itself."],
  [
    /odd container|configuration problem/,
    "Something about the container's settings was ignored; the warning says what, and what to do.",
  ],
  [
    /process 1/,
    "SIGUSR2 was sent to the first process of a container, which cannot be replaced. Restart the container instead.",
  ],
  [/rule-backend|until dns11 is started/, "A changed rule-backend takes effect at the next start."],
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
  [
    /zones/,
    "The kernel lacks the CT target of iptables, so clients that keep their source port may wait when dns11 starts or stops.",
  ],
];

/** @param {string} text */
export function logMeaning(text) {
  return LOG_MEANINGS.find(([pattern]) => pattern.test(text))?.[1] ?? "";
}
