/**
 * ServicePort: a port of a container with a name, so that it has SRV records.
 */
const PORT_PROTOCOLS = ["tcp", "udp", "sctp"] as const;
type PortProtocol = (typeof PORT_PROTOCOLS)[number];

export interface ServicePort {
  readonly name: string;
  readonly protocol: PortProtocol;
  readonly number: number;
}

/** The engine and labels write a port as `80/tcp`, or `80` for TCP. */
const PORT = /^(\d{1,5})(?:\/(tcp|udp|sctp))?$/;
const PORT_MAX = 65_535;
/** A service name (RFC 6335). */
const NAME = /^(?=.*[a-z])(?!.*--)[a-z0-9]([a-z0-9-]{0,13}[a-z0-9])?$/;

/** Names that the IANA registry has for ports that containers often use. */
const IANA = new Map(
  Object.entries({
    "21/tcp": "ftp",
    "22/tcp": "ssh",
    "25/tcp": "smtp",
    "53/tcp": "domain",
    "53/udp": "domain",
    "80/tcp": "http",
    "110/tcp": "pop3",
    "123/udp": "ntp",
    "143/tcp": "imap",
    "161/udp": "snmp",
    "389/tcp": "ldap",
    "443/tcp": "https",
    "443/udp": "https",
    "514/udp": "syslog",
    "587/tcp": "submission",
    "636/tcp": "ldaps",
    "993/tcp": "imaps",
    "1433/tcp": "ms-sql-s",
    "1883/tcp": "mqtt",
    "2049/tcp": "nfs",
    "2379/tcp": "etcd-client",
    "2380/tcp": "etcd-server",
    "3306/tcp": "mysql",
    "5060/udp": "sip",
    "5432/tcp": "postgresql",
    "5671/tcp": "amqps",
    "5672/tcp": "amqp",
    "6379/tcp": "redis",
    "8080/tcp": "http-alt",
    "8883/tcp": "secure-mqtt",
    "9418/tcp": "git",
    "11211/tcp": "memcache",
    "27017/tcp": "mongodb",
  }),
);

/** A port of the engine, by the name that IANA gives it; undefined for a port without one. */
export function wellKnownPort(text: string): ServicePort | undefined {
  const port = numberedPort(text);
  const name = port && IANA.get(`${port.number}/${port.protocol}`);
  return port && name ? { name, ...port } : undefined;
}

/** `NAME=PORT` or `NAME=PORT/PROTOCOL`; undefined for another text. */
export function namedPort(text: string): ServicePort | undefined {
  const [name = "", rest = ""] = text.toLowerCase().split("=", 2);
  const port = numberedPort(rest);
  return port && NAME.test(name) ? { name, ...port } : undefined;
}

function numberedPort(text: string): Omit<ServicePort, "name"> | undefined {
  const [, digits = "", word] = PORT.exec(text) ?? [];
  const number = Number(digits);
  const protocol = PORT_PROTOCOLS.find((each) => each === (word ?? "tcp"));
  return number > 0 && number <= PORT_MAX && protocol !== undefined ? { protocol, number } : undefined;
}
