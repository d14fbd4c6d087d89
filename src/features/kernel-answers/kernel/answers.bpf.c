// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
//
// Answers a container's queries where they arrive: at tcx ingress of lo in its network namespace, before any socket and any
// process. It knows no names of its own. The process leaves the answers that it has given in a table; the same question
// from the same namespace gets the same bytes, until the names change. Cached replies, and failures, are in a second table,
// each for some seconds: their TTLs are counted down here, and each entry counts how often it was the answer. Whatever is not plain, or in no table, goes on to the process: its port is
// written into the packet, and 53 into its reply. So no packet of a query needs connection tracking, and the rules of the
// namespace switch it off for them.
//
// Every access that a packet decides has a bound that the verifier proves. Nothing is written before everything about
// the packet is known; a write that fails leaves the packet to the process.
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/udp.h>
#include <stddef.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

// TCX_NEXT: the packet goes its way. TCX_DROP: nobody gets it.
#define GO_ON (-1)
#define DROP 2

// These numbers are in layout.ts, too.
// Letter case is part of a question, so that an answer may repeat its name.
#define LITERAL 1
// OPT is ignored.
#define NO_EDNS 2
// In struct answer and struct brief.
#define AUTHORITATIVE 0x80
#define NAME_BYTES 80
#define BODY_BYTES 112
#define RECORDS 64
#define KINDS 256
// In struct brief. An entry is for a period of 2^33 ns, whose phase is that of the name's first label.
#define LOCAL 0x20
#define AUTHENTIC 0x40
#define BRIEF_BODY_BYTES 232
#define BRIEF_RECORDS 8
#define PERIOD_BITS 33
#define PHASE_FACTOR 0x9e3779b1
// Of the first label, with its length: so much takes part in the phase.
#define PHASE_BYTES 32
#define WITH_DNSSEC 1
#define UNCHECKED 2

#define RESOLVER bpf_htonl(0x7f00000b)
#define DNS_PORT bpf_htons(53)
#define LABEL_BYTES_MAX 63
// A name of ip6.arpa has 34.
#define LABELS_MAX 36
#define FRAGMENT_BITS bpf_htons(0x3fff)

#define TYPE_A 1
#define TYPE_PTR 12
#define TYPE_AAAA 28
#define CLASS_IN 1
#define A_RECORD_BYTES 16
#define AAAA_RECORD_BYTES 28
#define A_BYTES 4
#define AAAA_BYTES 16

#define QR 0x80
#define AA 0x04
#define RD 0x01
#define RA 0x80
#define AD 0x20
#define CD 0x10
#define DO 0x80

#define OPTION_COOKIE bpf_htons(10)
#define OPTION_FIXED_BYTES 4
#define SECOND 1000000000ULL

struct dns_header {
	__u16 id;
	__u8 flags;
	__u8 codes;
	__u16 questions;
	__u16 answers;
	__u16 authorities;
	__u16 additionals;
} __attribute__((packed));

struct headers {
	struct ethhdr eth;
	struct iphdr ip;
	struct udphdr udp;
	struct dns_header dns;
} __attribute__((packed));

#define UDP_AT (sizeof(struct ethhdr) + sizeof(struct iphdr))
#define DNS_AT (UDP_AT + sizeof(struct udphdr))
#define NAME_AT (DNS_AT + sizeof(struct dns_header))

// One network namespace. The process writes it through shared memory.
struct space {
	// Answers of another generation are not valid.
	__u32 generation;
	// Of the process, in network order; 0 where it takes no queries.
	__u16 port;
	// Whether there are records of single queries.
	__u16 is_recording;
	// Queries answered here, and those that went on to the process.
	__u64 answered;
	__u64 passed;
	// How the process answers: LITERAL, NO_EDNS.
	__u32 style;
	__u32 unused;
	// Source ports of dns11's own queries, which the process answers, by their last eight bits.
	__u64 own[4];
	// The last queries answered here, by their number. From the lowest bit on: the entry (16 bits), the generation (8), how
	// often the array has been filled (8), the time in 2^20 ns (32).
	__u64 records[RECORDS];
	// The part of the answered ones whose answers were cached replies.
	__u64 cached;
};

// A question, as one namespace asks it at one state of the names.
struct question {
	__u32 space;
	__u32 generation;
	// In lower case unless LITERAL; zero from its root label on. The last two bytes are the type.
	__u8 name[NAME_BYTES];
} __attribute__((aligned(8)));

// The same in one period, with what else decides on a cached reply: WITH_DNSSEC, UNCHECKED.
struct brief_question {
	struct question question;
	__u32 period;
	__u32 bits;
};

// What the process answered: all that follows the question, without OPT.
struct answer {
	__u8 answers;
	__u8 authorities;
	__u8 bytes;
	// Of each record, if their order is random; else 0.
	__u8 record_bytes;
	// The response code, and AUTHORITATIVE.
	__u8 codes;
	// Where it is counted, and which entry of its namespace it is.
	__u8 kind;
	__u16 entry;
	__u8 body[BODY_BYTES];
} __attribute__((aligned(8)));

// A reply of the cache, or a failure: all that follows the question, without OPT.
struct brief {
	// The TTLs are those of this time, in ns of CLOCK_MONOTONIC; those of a local answer stay.
	__u64 since;
	// From then on the process answers.
	__u64 until;
	// Queries that this has answered.
	__u64 answered;
	__u8 answers;
	__u8 authorities;
	__u8 additionals;
	__u8 bytes;
	// The response code, AUTHORITATIVE, AUTHENTIC, and LOCAL.
	__u8 codes;
	__u8 kind;
	__u16 entry;
	__u32 ttls[BRIEF_RECORDS];
	// Where in the body they are.
	__u8 ttls_at[BRIEF_RECORDS];
	__u8 body[BRIEF_BODY_BYTES];
	// So many of the records are addresses, of which another one is the first each time; else 0.
	__u8 rotated;
	// Where in the body they are, twice one after the other.
	__u8 addresses_at[2 * BRIEF_RECORDS];
	__u8 unused[7];
} __attribute__((aligned(8)));

// Queries answered in all namespaces, by the kind of their answer; each in a cache line of its own.
struct count {
	__u64 answered;
	__u64 unused[7];
};

struct opt {
	__u8 owner;
	__u16 type;
	__u16 size;
	__u8 rcode;
	__u8 version;
	__u8 flags;
	__u8 more_flags;
	__u16 option_bytes;
} __attribute__((packed));

// The loader creates the maps and sets their sizes.
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__type(key, __u32);
	__type(value, struct space);
} spaces SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__type(key, struct question);
	__type(value, struct answer);
} answers SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__type(key, struct brief_question);
	__type(value, struct brief);
} brief SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__type(key, __u32);
	__type(value, struct count);
} counts SEC(".maps");

// Hides a number from the compiler, which otherwise drops a bound that the verifier needs.
#define OPAQUE(number) asm volatile("" : "+r"(number))

// Bytes in lower case, eight at once: the lengths of labels are below 'A', so a whole name can be folded blindly.
static __always_inline __u64 folded(__u64 bytes)
{
	const __u64 ones = 0x0101010101010101ULL;
	__u64 heptets = bytes & (0x7f * ones);
	__u64 above_z = heptets + (0x7f - 'Z') * ones;
	__u64 from_a = heptets + (0x80 - 'A') * ones;
	__u64 is_ascii = ~bytes & (0x80 * ones);
	return bytes | ((is_ascii & (from_a ^ above_z)) >> 2);
}

// The length of the name with its root label; 0 if it is not plain.
static __always_inline __u32 length_of(const __u8 *name)
{
	__u32 at = 0;

	for (int label = 0; label < LABELS_MAX; label++) {
		OPAQUE(at);
		if (at > NAME_BYTES - 3)
			return 0;
		__u8 size = name[at];
		if (size == 0)
			return at + 1;
		if (size > LABEL_BYTES_MAX)
			return 0;
		at += size + 1;
		// The verifier forgets how many labels there were; otherwise it would follow the rest of the program for each number.
		OPAQUE(at);
		at &= 0xff;
	}
	return 0;
}

// Writes a port of the packet; the checksum, if there is one, follows.
static __always_inline void set_port(struct __sk_buff *skb, __u32 udp_at, __u32 field, __u16 from, __u16 to)
{
	if (bpf_l4_csum_replace(skb, udp_at + offsetof(struct udphdr, check), from, to, 2 | BPF_F_MARK_MANGLED_0))
		return;
	bpf_skb_store_bytes(skb, udp_at + field, &to, sizeof(to), 0);
}

// Writes the records of an answer in random order.
#define STORE_SHUFFLED(skb, at, answer, record, count_max)                                                      \
	do {                                                                                                    \
		__u32 order = 0x76543210;                                                                       \
		__u32 count = (answer)->answers;                                                                \
		_Pragma("nounroll") for (int i = (count_max)-1; i > 0; i--) {                                                       \
			if (i >= count)                                                                         \
				continue;                                                                       \
			__u32 a = 4 * i;                                                                        \
			__u32 b = 4 * (((__u64)bpf_get_prandom_u32() * (i + 1)) >> 32);                         \
			__u32 differ = ((order >> a) ^ (order >> b)) & 15;                                      \
			order ^= (differ << a) | (differ << b);                                                 \
		}                                                                                               \
		_Pragma("nounroll") for (int i = 0; i < (count_max); i++) {                                                         \
			if (i >= count)                                                                         \
				break;                                                                          \
			__u32 from = (order >> (4 * i)) & 15;                                                   \
			OPAQUE(from);                                                                           \
			if (from >= (count_max))                                                                \
				break;                                                                          \
			bpf_skb_store_bytes(skb, (at) + i * (record), (answer)->body + from * (record), record, 0); \
		}                                                                                               \
	} while (0)

struct counts_of {
	__u8 answers;
	__u8 authorities;
	__u8 additionals;
};

// Writes what is beside the records: the OPT, and the headers. The packet has its length.
static __always_inline void finish(struct __sk_buff *skb, struct headers *h, __u32 end, struct opt *opt, __u32 opt_bytes,
				   const struct counts_of *counts_of, __u8 flags, __u8 codes)
{
	__u32 length = end + opt_bytes;
	__u16 ip_bytes = bpf_htons(length - sizeof(struct ethhdr));

	if (opt_bytes > 0) {
		opt->size = bpf_htons(1232);
		opt->option_bytes = 0;
		bpf_skb_store_bytes(skb, end, opt, sizeof(*opt), 0);
	}

	bpf_l3_csum_replace(skb, sizeof(struct ethhdr) + offsetof(struct iphdr, check), h->ip.tot_len, ip_bytes, 2);
	h->ip.tot_len = ip_bytes;
	bpf_skb_store_bytes(skb, sizeof(struct ethhdr) + offsetof(struct iphdr, tot_len), &ip_bytes, 2, 0);
	__u32 addresses[2] = {h->ip.daddr, h->ip.saddr};
	bpf_skb_store_bytes(skb, sizeof(struct ethhdr) + offsetof(struct iphdr, saddr), addresses, sizeof(addresses), 0);

	__u16 port = h->udp.source;
	h->udp.source = h->udp.dest;
	h->udp.dest = port;
	h->udp.len = bpf_htons(length - UDP_AT);
	// A checksum is optional, and nothing on lo damages a packet.
	h->udp.check = 0;
	h->dns.flags = QR | (h->dns.flags & RD) | flags;
	h->dns.codes = RA | (h->dns.codes & CD) | codes;
	h->dns.answers = bpf_htons(counts_of->answers);
	h->dns.authorities = bpf_htons(counts_of->authorities);
	h->dns.additionals = bpf_htons(counts_of->additionals + (opt_bytes > 0));
	bpf_skb_store_bytes(skb, UDP_AT, &h->udp, sizeof(h->udp) + sizeof(h->dns), 0);
}

// Turns a query into its answer, in place. Returns 0 if it could not.
static __always_inline int reply(struct __sk_buff *skb, struct headers *h, __u32 question_end, const struct answer *answer,
				 struct opt *opt, __u32 opt_bytes)
{
	__u32 bytes = answer->bytes;

	if (bpf_skb_change_tail(skb, question_end + bytes + opt_bytes, 0))
		return 0;
	if (answer->record_bytes == A_RECORD_BYTES) {
		STORE_SHUFFLED(skb, question_end, answer, A_RECORD_BYTES, BODY_BYTES / A_RECORD_BYTES);
	} else if (answer->record_bytes == AAAA_RECORD_BYTES) {
		STORE_SHUFFLED(skb, question_end, answer, AAAA_RECORD_BYTES, BODY_BYTES / AAAA_RECORD_BYTES);
	} else {
		// Of two comparisons the compiler makes one, with a copy, and verifiers up to Linux 6.12 know no bound of the
		// original then. So the copy is what is used.
		__u32 more = bytes - 1;
		OPAQUE(more);
		if (more < BODY_BYTES)
			bpf_skb_store_bytes(skb, question_end, answer->body, more + 1, 0);
	}
	finish(skb, h, question_end + bytes, opt, opt_bytes, &(struct counts_of){answer->answers, answer->authorities, 0},
	       (answer->codes & AUTHORITATIVE) ? AA : 0, answer->codes & 15);
	return 1;
}

// Counts an answer, and leaves a record of it in place of the oldest. The process reads them when it is asked to.
static __always_inline void record(struct space *space, __u32 kind, __u16 entry, __u32 generation)
{
	__u64 number = __sync_fetch_and_add(&space->answered, 1);
	struct count *count = bpf_map_lookup_elem(&counts, &kind);

	if (count)
		__sync_fetch_and_add(&count->answered, 1);
	if (!*(volatile __u16 *)&space->is_recording)
		return;
	// The clock of the last tick: a query has the time of its arrival to a few milliseconds.
	__u64 time = bpf_ktime_get_coarse_ns() >> 20 << 32;
	__u64 lap = (number / RECORDS + 1) & 0xff;
	*(volatile __u64 *)&space->records[number % RECORDS] = time | lap << 24 | (generation & 0xff) << 16 | entry;
}

// Answers from the second table. Returns 0 if it has nothing, and -1 if the packet must not go on.
static __always_inline int answered_briefly(struct __sk_buff *skb, struct headers *h, struct space *space,
					       struct brief_question *key, __u32 question_end, struct opt *opt,
					       __u32 opt_bytes)
{
	__u64 now = bpf_ktime_get_coarse_ns();
	__u32 is_dnssec_ok = opt_bytes > 0 && (opt->flags & DO);
	__u32 sum = 0;

	if (!(h->dns.flags & RD))
		return 0;
	// Names end at different times, so that the process is not asked for all of them at once; but those that begin alike end
	// together, so that it sees all steps of a lookup through a search list.
	__u32 first_bytes = key->question.name[0] + 1;
#pragma nounroll
	for (int word = 0; word < PHASE_BYTES / 8; word++) {
		if (first_bytes <= word * 8)
			break;
		__u64 part = ((__u64 *)key->question.name)[word];
		__u32 bits = (first_bytes - word * 8) * 8;
		if (bits < 64)
			part &= (1ULL << bits) - 1;
		sum += (__u32)part + (__u32)(part >> 32);
	}
	key->period = (now + ((__u64)(sum * PHASE_FACTOR) << 1)) >> PERIOD_BITS;
	key->bits = (is_dnssec_ok ? WITH_DNSSEC : 0) | ((h->dns.codes & CD) ? UNCHECKED : 0);
	struct brief *known = bpf_map_lookup_elem(&brief, key);
	if (!known || now >= known->until)
		return 0;

	__u32 bytes = known->bytes;
	if (bpf_skb_change_tail(skb, question_end + bytes + opt_bytes, 0))
		return 0;
	__u32 more = bytes - 1;
	OPAQUE(more);
	if (more < BRIEF_BODY_BYTES)
		bpf_skb_store_bytes(skb, question_end, known->body, more + 1, 0);
	__u8 codes = known->codes;
	__u64 age = now > known->since ? (now - known->since) / SECOND : 0;
	__u32 records = (codes & LOCAL) ? 0 : known->answers + known->authorities + known->additionals;
#pragma nounroll
	for (int i = 0; i < BRIEF_RECORDS; i++) {
		if (i >= records)
			break;
		__u32 ttl = known->ttls[i];
		ttl = bpf_htonl(ttl > age ? ttl - age : 0);
		bpf_skb_store_bytes(skb, question_end + known->ttls_at[i], &ttl, sizeof(ttl), 0);
	}
	__u32 rotated = known->rotated;
	if (rotated > 1) {
		__u32 turn = ((__u64)bpf_get_prandom_u32() * rotated) >> 32;
		__u32 size = *(__u16 *)&key->question.name[NAME_BYTES - 2] == bpf_htons(TYPE_A) ? A_BYTES : AAAA_BYTES;
		// Each step goes on in one way only, or the verifier would follow all combinations.
#pragma nounroll
		for (int i = 0; i < BRIEF_RECORDS; i++) {
			if (i >= rotated)
				break;
			__u32 from = known->addresses_at[(i + turn) % (2 * BRIEF_RECORDS)];
			OPAQUE(from);
			// What follows the body is longer than an address, so that the end is checked for both sizes.
			if (from >= BRIEF_BODY_BYTES)
				break;
			bpf_skb_store_bytes(skb, question_end + known->addresses_at[i], known->body + from, size, 0);
		}
	}
	__u8 authentic = ((codes & AUTHENTIC) && (is_dnssec_ok || (h->dns.codes & AD))) ? AD : 0;
	struct counts_of counts_of = {known->answers, known->authorities, known->additionals};
	finish(skb, h, question_end + bytes, opt, opt_bytes, &counts_of,
	       (codes & AUTHORITATIVE) ? AA : 0, authentic | (codes & 15));
	// An entry is deleted a second after its end, at the earliest. A processor that was stopped for as long may have read another.
	if (bpf_ktime_get_coarse_ns() - now >= SECOND / 2)
		return -1;
	__sync_fetch_and_add(&known->answered, 1);
	record(space, known->kind, known->entry, key->question.generation);
	if (!(codes & LOCAL))
		__sync_fetch_and_add(&space->cached, 1);
	return 1;
}

// Whether the options are one, a cookie: a client sends it to learn whether the server knows it, and dns11 returns none.
static __always_inline int is_cookie(struct __sk_buff *skb, __u32 at, __u32 bytes)
{
	__u16 option[2];

	return bytes >= OPTION_FIXED_BYTES && bpf_skb_load_bytes(skb, at, option, sizeof(option)) == 0 &&
	       option[0] == OPTION_COOKIE && bpf_ntohs(option[1]) == bytes - OPTION_FIXED_BYTES;
}

// Answers the query if it is plain and its answer is known. Returns 0 if it is the process's, and -1 if it is lost.
static __always_inline int answered(struct __sk_buff *skb, struct headers *h, struct space *space, __u32 index)
{
	struct brief_question key;
	struct opt opt;
	struct answer answer;

	// IPv4 without options; a packet from port 0 cannot be answered.
	if (*(__u8 *)&h->ip != 0x45 || h->udp.source == 0 || skb->gso_size != 0)
		return 0;
	__u32 port = bpf_ntohs(h->udp.source);
	if ((*(volatile const __u64 *)&space->own[(port >> 6) & 3] >> (port & 63)) & 1)
		return 0;
	if (skb->len != sizeof(struct ethhdr) + bpf_ntohs(h->ip.tot_len) || skb->len != UDP_AT + bpf_ntohs(h->udp.len))
		return 0;
	if ((h->dns.flags & ~RD) != 0 || (h->dns.codes & ~(AD | CD)) != 0 || h->dns.questions != bpf_htons(1) ||
	    h->dns.answers != 0 || h->dns.authorities != 0)
		return 0;

	__u32 opt_bytes = h->dns.additionals == 0 ? 0 : sizeof(struct opt);
	if (opt_bytes > 0 && h->dns.additionals != bpf_htons(1))
		return 0;

	// The name, its type and its class, with what follows if the name is shorter than the longest.
	__u8 *name = key.question.name;
	__u32 available = skb->len - NAME_AT;
	if (available > NAME_BYTES)
		available = NAME_BYTES;
	OPAQUE(available);
	if (available < 6 || available > NAME_BYTES)
		return 0;
	__builtin_memset(name, 0, NAME_BYTES);
	if (bpf_skb_load_bytes(skb, NAME_AT, name, available))
		return 0;
	__u32 name_bytes = length_of(name);
	if (name_bytes < 2)
		return 0;
	__u32 question_end = NAME_AT + name_bytes + 4;

	__u16 fixed[2];
	if (bpf_skb_load_bytes(skb, NAME_AT + name_bytes, fixed, sizeof(fixed)) || fixed[1] != bpf_htons(CLASS_IN))
		return 0;
	__u32 option_bytes = 0;
	if (opt_bytes > 0) {
		if (bpf_skb_load_bytes(skb, question_end, &opt, sizeof(opt)))
			return 0;
		if (opt.owner != 0 || opt.type != bpf_htons(41) || opt.rcode != 0 || opt.version != 0 ||
		    (opt.flags & ~DO) != 0 || opt.more_flags != 0)
			return 0;
		option_bytes = bpf_ntohs(opt.option_bytes);
		if (option_bytes != 0 && !is_cookie(skb, question_end + sizeof(opt), option_bytes))
			return 0;
	}
	if (skb->len != question_end + opt_bytes + option_bytes)
		return 0;

	__u32 style = *(volatile const __u32 *)&space->style;
	key.question.space = index;
	key.question.generation = *(volatile const __u32 *)&space->generation;
	// What follows the name is not part of the key.
	__builtin_memset(name, 0, NAME_BYTES);
	OPAQUE(name_bytes);
	if (name_bytes == 0 || name_bytes > NAME_BYTES - 2 || bpf_skb_load_bytes(skb, NAME_AT, name, name_bytes))
		return 0;
	if (!(style & LITERAL)) {
#pragma nounroll
		for (int word = 0; word < NAME_BYTES / 8; word++)
			((__u64 *)name)[word] = folded(((__u64 *)name)[word]);
	}
	*(__u16 *)&name[NAME_BYTES - 2] = fixed[0];

	const struct answer *known = bpf_map_lookup_elem(&answers, &key.question);
	if (!known)
		return style == 0 ? answered_briefly(skb, h, space, &key, question_end, &opt, opt_bytes) : 0;
	answer = *known;
	// An entry is reused for another question only after its generation has ended: these are the bytes of one answer if
	// the generation is still the same. The addition of nothing is a barrier.
	if (__sync_fetch_and_add((__u32 *)&space->generation, 0) != key.question.generation)
		return 0;
	if (!reply(skb, h, question_end, &answer, &opt, (style & NO_EDNS) ? 0 : opt_bytes))
		return 0;
	record(space, answer.kind, answer.entry, key.question.generation);
	return 1;
}

SEC("tc")
int answer_queries(struct __sk_buff *skb)
{
	struct headers h;
	// Set by the program of the link that calls this one; nothing in a packet reaches it.
	__u32 index = skb->cb[0];

	if (skb->protocol != bpf_htons(ETH_P_IP))
		return GO_ON;
	__builtin_memset(&h, 0, sizeof(h));
	if (bpf_skb_load_bytes(skb, 0, &h, offsetof(struct headers, udp)))
		return GO_ON;
	// Fragments are put together before the rules; what arrives in fragments was sent past them.
	if (h.ip.protocol != IPPROTO_UDP || h.ip.ihl < 5 || (h.ip.frag_off & FRAGMENT_BITS) != 0)
		return GO_ON;
	__u32 udp_at = sizeof(struct ethhdr) + h.ip.ihl * 4;
	if (bpf_skb_load_bytes(skb, udp_at, &h.udp, sizeof(h.udp)))
		return GO_ON;

	struct space *space = bpf_map_lookup_elem(&spaces, &index);
	if (!space)
		return GO_ON;
	__u16 port = *(volatile __u16 *)&space->port;
	if (port == 0)
		return GO_ON;
	if (h.ip.saddr == RESOLVER && h.udp.source == port) {
		set_port(skb, udp_at, offsetof(struct udphdr, source), port, DNS_PORT);
		return GO_ON;
	}
	if (h.ip.daddr != RESOLVER || h.udp.dest != DNS_PORT)
		return GO_ON;

	if (bpf_skb_load_bytes(skb, udp_at + sizeof(struct udphdr), &h.dns, sizeof(h.dns)) == 0) {
		int result = answered(skb, &h, space, index);
		if (result != 0)
			return result > 0 ? GO_ON : DROP;
	}
	__sync_fetch_and_add(&space->passed, 1);
	set_port(skb, udp_at, offsetof(struct udphdr, dest), DNS_PORT, port);
	return GO_ON;
}

const char _license[] SEC("license") = "Dual BSD/GPL";
