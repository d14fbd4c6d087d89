/** How long a DNS message may be. */

/** By TCP, which writes its length in two octets. */
export const MESSAGE_BYTES_MAX = 65_535;
/** By UDP, for whoever announces nothing else (RFC 1035, 4.2.1). */
export const UDP_BYTES_MIN = 512;
/** The largest payload of a UDP packet over IPv4. */
export const UDP_BYTES_MAX = 65_507;
