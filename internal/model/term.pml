/* Terms of several windows: the holder of one appends its next window while it
   works, and works on in that if it is confirmed by then. */

#ifdef EXTENDS
#ifdef GROUP
#error "a group's lease is not extended here"
#endif
#define EXTENSIONS	true
/* What was sent may be sent again: a claim, or an extension of what is held yet. */
#define of_use(i)	(me.sent.claim == me.claim || (may_extend(i) && me.sent.claim == me.held.claim))

/* Where slots have work of their own, an extension keeps to its slot. */
#ifdef ONCE
#define may_go_on(since)	((since) % LEN != 0)
#else
#define may_go_on(since)	true
#endif

/* Fix the next window. It is appended after the newest record of the term, which
   was the head when it was confirmed; or the head is read again. What can't be had
   by extending is claimed like any window. */
inline prolong() {
	me.claim = id(NEW);
	me.from = me.held.end;
	me.to = cut_after(i, me.held.end);
	me.stage = FIXED;
	printf("T=%d: worker %d fixes a claim to [%d, %d), to go on\n", T, i, me.from, me.to);
	if
	:: may_go_on(me.held.end) && knows_head(i) && me.held.key < KEYS && led[me.held.key + 1].kind == 0 ->
#ifdef AGE
		me.fixed = known_since(i);
#endif
		reached("extension without a read");
		lengthen(me.held.key, me.held.end)
	:: may_go_on(me.held.end) ->
		/* Also what comes of a key that is taken. */
#ifdef AGE
		me.fixed = T;
#endif
		todo = READ
	:: else -> me.stage = IDLE
	fi
}

/* The head is of the term that is held, and may be its own next window, whose
   outcome was unknown until now. */
inline extend() {
	if
	:: led[h].kind == GRANT && same_term(i, h) && led[h].end > me.held.end -> own(me.held.claim)
	:: else ->
		start = goes_on_at(i, h);
		if
		:: may_go_on(start) -> reached("extension with the head read"); lengthen(h, start)
		:: else -> todo = DROP
		fi
	fi
}

inline lengthen(n, since) {
	record(GRANT, n + 1, since, cut_after(i, since), me.held.token, me.held.claim, n);
#ifdef BREAK_LEFT
	me.revives = !me.works;
#endif
	todo = APPEND
}

/* A next window is known to be in the ledger. */
inline extended() {
	me.stage = IDLE;
	if
	:: me.works && r.claim == me.held.claim ->
		reached("extended");
		printf("T=%d: worker %d's term goes on to %d\n", T, i, r.end);
		me.held.end = r.end;
		me.held.key = r.key;
#ifdef AGE
		me.held.known = T
#endif
	:: else ->
		reached("confirmed too late");
		if
		:: resumes(i) && me.next.end == 0 ->
			me.next.start = r.start;
			me.next.end = r.end;
			me.next.token = r.token;
			me.next.claim = r.claim;
			me.next.key = r.key;
			me.held.end = 0;
			me.held.claim = 0
		:: else -> give_up(r.claim)
		fi
	fi
}
#else
#define EXTENSIONS	false
#define of_use(i)	true
#endif
