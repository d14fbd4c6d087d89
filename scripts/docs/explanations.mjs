// @ts-check
/**
 * Explanations: what the lists of errors and log messages say beside the texts of the source. An error with its own remedy
 * needs none; a log message is found by what it is about, so that better words for it do not lose its explanation.
 */

/** What to do about an error whose text does not say so, by its code. @type {Readonly<Record<string, string>>} */
export const ERROR_REMEDIES = {
  NOT_RUNNING: "Start it: dns11 run, or where the package is installed systemctl start dns11",
  POLICY_NOT_HELD: "Change what the message names; dns11 policy says the same of containers that run.",
  BAD_BODY: "Control socket: correct the request; the API page lists what each route takes.",
  BAD_OPTION: "Client library: correct the option; the types of the package list all.",
  BAD_QUERY: "Control socket: correct the parameters of GET /v1/queries.",
  BAD_QUESTION: "Correct the name or the type; a type is a word such as A or MX, or TYPE and its number.",
  BAD_RCODE: "Use response codes such as NXDOMAIN,SERVFAIL.",
  BAD_SERVER: "Name the server by its IP address.",
  CLOSED: "Client library: connect again; nothing works after close.",
  CONTROL: "Look at the log of dns11. A process of another version may still be running; restart it.",
  EACCES: "Run the command as root.",
  EMFILE: "Raise the limit of open files: LimitNOFILE= under systemd, ulimit -n in a shell.",
  ENDED: "Check `dns11 status` and `docker ps`, start whichever has stopped, then run the command again.",
  ENGINE_ELSEWHERE: "Run dns11 on the machine of the engine.",
  HOST_DOMAIN_TAKEN:
    "Choose another domain with host-domain, or another zone, such as docker or containers.internal, and reload.",
  KERNEL:
    "Load the kernel module nf_tables, or choose another rule-backend. The message names what the kernel refused.",
  LINK_IS_GONE: "Another program removed the interface of a temporary pod. Run the check again.",
  NAME: "Correct the name: labels have at most 63 octets, a name at most 255.",
  NAMESPACE_IS_HOST: "Nothing to fix: query from the host, e.g. `dig NAME`.",
  NO_CONTAINER: "Control socket: name the container in the request.",
  NO_FREE_ADDRESS: "Remove other programs' addresses in that range from the node.",
  NO_NODE: "Control socket: name the node in the request.",
  POLICY_OWNED:
    "Another dns11 has the kernel's tables of policies, which one process at a time can change. End it, or start this one with `--replace`.",
  NO_POLICY: "dns11 policy lists the containers that have one.",
  NOT_JSON: "Control socket: send a JSON object.",
  NOT_RELOADED:
    "Correct the lines that the message lists; dns11 check-config FILE checks them without a running dns11.",
  NOT_RESOLVED: "Client library: run dns11 explain for that name in that container.",
  NOT_SERVED: "dns11 ps prints why the container is not served.",
  NO_SUCH_CONTAINER: "dns11 ps lists the running containers.",
  POD_NOT_READY: "The machine is very busy, or the node is being stopped. Run the check again.",
  TOO_LONG: "The input exceeds a fixed limit, and nothing was read beyond it. Shorten it.",
  TOO_MANY:
    "The namespace has more rules or sockets than dns11 reads. Find and remove the surplus: nsenter -t PID -n nft list ruleset, nsenter -t PID -n ss -s.",
  TOO_MANY_SOCKETS:
    "The container sends too many queries to its own servers at once; further ones fail until some finish. nsenter -t PID -n ss -s counts its sockets; dns11 tail shows its queries.",
  TOO_MANY_STREAMS:
    "Too many replies are truncated, or servers accept only TCP; further queries fail until some finish. ss -s counts the connections; dns11 upstreams shows the servers.",
  USAGE: "Run the command with --help.",
};

/** What each check of the doctor examines, by its code. @type {Readonly<Record<string, string>>} */
export const CHECK_MEANINGS = {
  capabilities: "the capabilities that dns11 needs to look into containers and to serve them",
  rootless: "whether the user's [rootless engine](rootless.md) can be entered; root and other users are refused",
  kernel: "whether the kernel accepts dns11's rules",
  engine: "whether the engine answers, and can be served",
  dns11: "whether dns11 is running, ready, or hung",
  leftovers: "what a killed dns11 left in the state directory",
  "host-resolv-conf": "which servers the engine's host uses",
  "host-names": "whether container names resolve on the machine itself, and which of its programs do not see them",
  "host-listener":
    "whether the [listener on the host](listener.md) answers, and whether Docker sends it what its own resolver does not know",
  "listener-query": "whether the container's queries reach the listener on the host: a firewall may drop them",
  mdns: "whether [names of the local network](lan-names.md) resolve, and if not, what to install or set",
  listen:
    "whether dns11 answers [other machines](other-machines.md) at the addresses of the setting `listen`, and if not, why",
  etcd: "whether [etcd](etcd.md) can be reached, how old its names are if not, and what it warns of",
  "etcd-records": "records of etcd that are left out: those that cannot be read, and those beyond the limit",
  "etcd-publishing":
    "whether the containers of this machine are [published](etcd.md#publishing) in etcd, and which of them other machines cannot reach",
  "kind-services":
    "whether the machine has a route to the Services of the node's cluster, which names from [its DNS](kubernetes.md#names-of-a-cluster-from-its-own-dns) lead to",
  kubernetes:
    "whether the API of the [cluster](kubernetes.md) can be reached, how old its names are if not, and what is left out",
  forwarding:
    "where Docker uses nftables on the host: whether a chain of another program drops what its containers send, such as the policy that a dockerd with iptables has left",
  namespace: "whether the container's namespace can be entered",
  "container-state":
    "a container that ends and is started again, over and over, and one that uses the network of a container that has been made or started again; its log, or the command, comes with it",
  attachment:
    "whether dns11 serves the container, since when, and if not, why; a warning for a Compose service on the default bridge, where Docker has no DNS for container names",
  "resolv-conf": "whether the container's file names 127.0.0.11, and who wrote it",
  "resolv-options": "options that the C library ignores silently",
  search:
    "how many queries a name costs with this search list and ndots; a domain that returns an address for every name",
  loopback: "whether lo is up and has its address",
  rules: "whether dns11's table is installed, and which process owns it",
  "docker-rules": "Docker's own rules (iptables, iptables-legacy or nftables), and its resolver, the fallback of dns11",
  "foreign-rules":
    "rules of other programs (nftables and iptables-legacy) that redirect or drop queries to port 53; a problem only if queries do not get through",
  listener: "whether dns11's sockets are open",
  "port-53": "a DNS server of the container's own on port 53",
  answers: "queries for the container's own name, through the redirect rules, by UDP and TCP",
  conntrack: "whether the connection tracking table has space",
  "conntrack-stale": "conntrack entries that translate queries to ports on which nothing listens any more",
  upstream:
    "each server, queried from where it is used for that container, by UDP and TCP, with time and response code",
  loop: "forwarding loops: a server that sends queries back",
  "failing-names":
    "names that fail, from a running dns11; a problem only if the cause is known and a container's name failed for it within five minutes and has not resolved since. Two services behind one name on one network are a warning",
  swarm: "whether gossip knows this machine's containers on swarm networks and, on a manager, all running tasks",
  networks:
    "networks that keep their containers apart (`enable_icc=false`): names there lead to addresses that nobody can connect to",
  "project-names":
    "whether a Compose project has the name of a network or of a public domain, which makes SERVICE.PROJECT mean something else",
  records:
    "names that you declare: whether a file of the records folder has turned bad, so that a change of it has no effect",
  policy:
    "whether the [policy](policy.md) of a container holds: it is not served, has several, or chooses one that nobody has defined",
  libc: "musl or glibc, and the limitations of that version",
  "kind-resolv-conf": "in a KIND node: whether pods can reach the servers its file names",
  "kind-rules": "which process owns dns11's rules in a node",
  "kind-port-53": "other programs that listen where pods send queries",
  "kind-docker": "whether and where Docker's resolver answers in the node when dns11 does not",
  "kind-answers": "the node's name, queried by the node and by a temporary pod",
  "kind-pod": "whether such a pod can be created",
  "route-localnet": "the kernel setting without which pods cannot reach 127.0.0.11",
};

/** What a log message means, by what it is about; the first that fits. @type {readonly (readonly [RegExp, string])[]} */
const LOG_MEANINGS = [
  [
    /another dns11 serves the containers/,
    "All containers are attached by another process, which has another state directory (`--state-dir`): the lock that keeps a second one from starting is there. `dns11 status` shows which one runs.",
  ],
  [
    /a policy is not enforceable/,
    "The kernel cannot hold the container to its [policy](policy.md#hold-connections-too) with `addresses: enforce`; `reason` says why. Start it without that, or give it a policy with `addresses: names`.",
  ],
  [
    /cannot (?:read|write) for whom policies ha(?:d|ve) ended/,
    "Containers whose [lease](policy.md#for-as-long-as-a-program-runs) had ended closed are held by the settings alone. See `reason`.",
  ],
  [
    /cannot close the networks of policies/,
    "Networks of a policy with `addresses: enforce` are not closed before their containers are known; tried again at the next change. See `reason`.",
  ],
  [
    /^holding a container that Docker does not describe/,
    "It might have a policy with `addresses: enforce`, so what it sends is dropped until dns11 knows it. Docker takes over 250 ms to describe it, as it does with an image of many megabytes of labels, or cannot.",
  ],
  [
    /^cannot hold a container that is not known/,
    "What it sends passes until it is known; tried again with the next change. See `reason`.",
  ],
  [/cannot enforce a policy/, "The kernel refused the rules of the container; tried again every second. See `reason`."],
  [
    /^cannot remove the rules for containers that are gone/,
    "Rules that an earlier process left for containers that are gone stay for now; tried again every five seconds. See `reason`.",
  ],
  [
    /^cannot list the services of a swarm network/,
    "Names of services resolve as before. Lists, and names of slots such as web.1, are as old as the last list that was read.",
  ],
  [
    /names of the local network do not resolve/,
    "`mdns` is set, and no program of this machine can be asked: the reason says why, `dns11 doctor` what to [install or set](lan-names.md).",
  ],
  [
    /container names do not resolve on the host/,
    "Names on the host (--host-names) are off for now: `reason` says why and what to change. Containers are served as usual.",
  ],
  [
    /the listener on the host does not answer/,
    "The [listener](listener.md) is off for now, and tried again every 10 seconds: `reason` says why and what to change. Containers are served as usual.",
  ],
  [
    /the reader of dnstap is away/,
    "The program that reads [dnstap](dnstap.md) at `path` is not there, or has left: `reason` says which. dns11 connects again, and answers meanwhile.",
  ],
  [
    /does not answer at an address of this host/,
    "An address of the setting [`listen`](other-machines.md#when-an-address-does-not-answer) is not answered for now, and tried again every 10 seconds: `reason` says why. Containers are served as usual.",
  ],
  [
    /cannot restore the resolv\.conf of a guest/,
    "Its programs go on asking the [listener](listener.md#gvisor-and-kata-containers): `reason` says why. `dns11 cleanup` tries again; a restart of the container makes a new file.",
  ],
  [
    /several containers have an address, the listener answers none/,
    "Networks with overlapping subnets. The [listener](listener.md) cannot tell these containers apart; in their namespaces they are served as usual.",
  ],
  [
    /some names do not resolve on the host/,
    "Names on the host (--host-names) work, except for what `warning` says: a zone that exists elsewhere, or programs that do not ask.",
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
  [
    /records have mistakes/,
    "Files in the folder of `records-dir` have mistakes, each with file and line. A bad file keeps the names that it had; the others take effect. Correct it; it is read again at once.",
  ],
  [
    /etcd is away/,
    "No member of etcd can be used; `reason` says why, and `remedy` what to do. The last known names are answered for `etcd.max-stale`, then queries below the zones fail.",
  ],
  [
    /Kubernetes is away/,
    "The API of the cluster cannot be used; `reason` says why, and `remedy` what to do. The last known names are answered for `kubernetes.max-stale`, then queries below its zone fail.",
  ],
  [
    /skipped objects of Kubernetes/,
    "Services or EndpointSlices that are not valid are left out; `first` names some of them, `dns11 status` more.",
  ],
  [
    /cannot publish to etcd/,
    "What has changed is not written yet; `reason` says why, and `remedy` what to do. What is written stays for as long as the lease can be renewed.",
  ],
  [
    /cannot withdraw the containers/,
    "etcd could not be reached when dns11 stopped. Other machines see the containers of this one until its lease (`etcd.lease`) ends.",
  ],
  [
    /skipped records of etcd/,
    "Records that cannot be read are left out; `first` names some of them, `dns11 status` more. Correct or delete these keys.",
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
    /a policy (?:refused|would have refused) a name/,
    "A query of the container is not what its [policy](policy.md) allows; `rule` names the rule and its line. The same query is logged again after a minute; `dns11 policy log` has more. The name is left out unless `queries.names` is full.",
  ],
  [
    /an operator allows a name/,
    "Somebody who may use the control socket has allowed a container a name for a while: `dns11 policy allow`. `grant` names the process.",
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
    /cannot read the node's addresses/,
    "With `run --in-node`: what was read last is served. dns11 tries again every two seconds.",
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
    /^the kernel cannot answer queries/,
    "`reason` says what is missing: Linux 6.6, the call bpf(2), or the rule backend nft-owner. The process answers everything, as with `answers: process`. Information by default, as nothing is lost but speed; a warning with `answers: kernel`.",
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
    /^cannot keep which networks are to be closed/,
    "After the next boot, the networks of enforced policies are not closed before Docker starts, or as they were earlier. `reason` says why, as `dns11 policy` does.",
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

/** @param {string} text */
export function logMeaning(text) {
  return LOG_MEANINGS.find(([pattern]) => pattern.test(text))?.[1] ?? "";
}
