# How another parser reads packets: a packet in hexadecimal a line, what dnspython makes of it as JSON a line.

import json
import sys

import dns.message
import dns.tsig

# Signatures are read, and nobody has a key.
dns.tsig.validate = lambda *_: None

for line in sys.stdin:
    try:
        message = dns.message.from_wire(bytes.fromhex(line), ignore_trailing=True, keyring=True, one_rr_per_rrset=True)
        question = message.question[0] if message.question else None
        extra = (message.opt is not None) + (message.tsig is not None)
        print(json.dumps({
            "question": None if question is None else [question.name.to_digestable().hex(), int(question.rdtype)],
            "counts": [len(message.answer), len(message.authority), len(message.additional) + extra],
        }))
    except Exception as error:
        print(json.dumps({"error": type(error).__name__}))
