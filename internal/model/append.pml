/* How a worker makes records, and sends them. */

/* Make record r; what is copied from record to record comes from record b. */
inline record(what, number, since, upto, value, owner, b) {
	r.key = number;
	r.kind = what;
	r.start = since;
	r.end = upto;
	r.token = value;
	r.claim = owner;
#ifdef ONCE
	inherit(b);
#endif
	skip
}

/* Record h is one's own, or one's group's. */
inline own(owner) {
	record(GRANT, h, led[h].start, led[h].end, led[h].token, owner, h);
	todo = CONFIRM
}

inline copy(to_, from_) {
	to_.key = from_.key;
	to_.kind = from_.kind;
	to_.start = from_.start;
	to_.end = from_.end;
	to_.token = from_.token;
#ifdef TRIM
	to_.readat = from_.readat;
#endif
#ifdef ONCE
	to_.begins = from_.begins;
#endif
	pass_on(to_, from_);
	to_.claim = from_.claim
}

/* Send r. No worker waits for the previous append any more, but it may still land. */
inline append() {
	if
	:: r.key <= KEYS ->
		leave_sent();
		copy(me.sent, r);
		me.sent.out = 1;
#ifdef TRIM
		me.sent.readat = read_at(i);
#endif
		me.stage = SENT;
		printf("T=%d: worker %d sends kind %d to key %d: [%d, %d), token %d\n", T, i, r.kind, r.key, r.start, r.end, r.token)
	:: else -> todo = DROP
	fi
}

inline leave_sent() {
#ifdef ZOMBIE
	if
	:: me.sent.out && !me.zombie.out -> copy(me.zombie, me.sent); me.zombie.out = 1
	:: true		/* it never lands, or the zombie before it never does */
	:: me.sent.out && me.zombie.out -> copy(me.zombie, me.sent)
	fi
#else
	skip
#endif
}
