/* The worker, as workerlease/internal/machine builds it. It may be paused between
   any two steps, for any time. */

#define me	w[i]

/* What a step goes on with. */
#define NOTHING	0
#define READ	1	/* read the head */
#define JUDGE	2	/* decide what record h means for the claim */
#define APPEND	3	/* send r */
#define CONFIRM	4	/* r is known to be one's own, or one's group's */
#define VOID	5	/* the claim is too old */
#define DROP	6	/* give the claim up: the next slot's turn, or the slot is lost */
#define RENEW	7	/* stopped or crashed: what goes on is a new worker */

/* Two claims never have the same id. A worker remembers at most four of its claims,
   so between steps their ids tell which they are, and those of all others are 0. */
#define IDS	5
#define id(which)	(i * IDS + (which))
#define NEW	1
#define CLAIM	2
#define NEXT	3
#define HELD	4
#define GIVEN_UP 5

/* Fix a claim to the rest of this slot, or to the next one. */
inline fix() {
	j = estimate(i) / length(i);
	if
	:: j++
	:: true
	fi;
	start = max(j * length(i), latest(i));
	if
	:: start < (j + 1) * length(i) ->
		me.claim = id(NEW);
		me.from = start;
		me.to = (j + 1) * length(i);
		me.stage = FIXED;
		printf("T=%d: worker %d fixes a claim to [%d, %d)\n", T, i, me.from, me.to);
#ifdef AGE
		me.fixed = T;
#endif
#ifdef SPLIT
		skip
#else
		todo = READ
#endif
	:: else
	fi
}

inline record(what, number, since, upto, value, owner) {
	r.key = number;
	r.kind = what;
	r.start = since;
	r.end = upto;
	r.token = value;
	r.claim = owner
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
	to_.claim = from_.claim
}

inline judge() {
	start = earliest_start(me.from, h);
	fence = release_at(i, h);
	if
	:: aged(i) -> todo = VOID
	:: else ->
		if
#ifdef ROGUE
		:: h > 0 && is_poison(h) ->
			/* How long it is watched is of no account: any time will do. */
			k = h - 1;
			do
			:: k > 0 && (led[k].kind == 0 || led[k].kind == POISON) -> k--
			:: else -> break
			od;
			start = reset_at(i, k);
			fence = reset_token(start, k);
			record(RESET, h + 1, start, start, fence, 0);
			todo = APPEND
		:: h > 0 && is_poison(h) -> todo = DROP
#endif
		:: !is_poison(h) && led[h].kind == GRANT && led[h].claim == me.claim ->
			record(GRANT, h, led[h].start, led[h].end, led[h].token, me.claim);
			todo = CONFIRM
#ifdef GROUP
		:: led[h].kind == GRANT && led[h].group && group(i) && !over(i, led[h].end) ->
			reached("joined");
			record(GRANT, h, led[h].start, led[h].end, led[h].token, 0);
			todo = CONFIRM
#endif
#ifdef RELEASES
		:: led[h].kind == GRANT && led[h].claim != 0 && led[h].claim == me.given_up &&
		   releases(i) && fence < led[h].end ->
			reached("void claim released");
			record(RELEASE, h + 1, fence, fence, led[h].token, 0);
			todo = APPEND
#endif
		:: !is_poison(h) && !(led[h].kind == GRANT && led[h].claim == me.claim) ->
			if
			:: start < me.to && gap_allowed(i, start, h) ->
				if :: start > me.from -> reached("start raised") :: else fi;
				fence = next_token(start, h);
				record(GRANT, h + 1, start, me.to, fence, me.claim);
				todo = APPEND
			:: else -> todo = DROP
			fi
		fi
	fi
}

/* Send r. Of the append before nobody waits any more, but it may still land. */
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

/* Learn what became of the append, by its reply or by reading its key back. */
inline look() {
	h = me.sent.key;
	if
#ifdef BREAK_FIXED
	:: me.sent.out = 1; me.fixed = T
#endif
	:: led[h].kind != 0 && mine(i, h) ->
		if
		:: me.sent.kind == GRANT ->
			reached("own append confirmed");
			record(GRANT, h, led[h].start, led[h].end, led[h].token, me.claim);
			todo = CONFIRM
		:: else -> me.stage = FIXED
		fi
	:: led[h].kind != 0 && !mine(i, h) ->
		reached("conflict");
		if
		:: me.sent.kind == GRANT -> todo = JUDGE
		:: else -> me.stage = FIXED
		fi
	:: led[h].kind == 0 && UNKNOWN_WON && me.sent.kind == GRANT -> copy(r, me.sent); todo = CONFIRM
	:: led[h].kind == 0 && !UNKNOWN_WON ->
		/* Send it again; or, it having been refused, read the head again. */
		if
		:: aged(i) -> todo = VOID
		:: !aged(i) && me.sent.kind == GRANT -> me.sent.out = 1
		:: !aged(i) && !me.sent.out -> me.stage = FIXED
		fi
	fi
}

inline begin() {
	me.held.end = me.next.end;
	me.held.claim = me.next.claim;
	if
	:: T % length(i) != 0 -> reached("work begins in mid-slot")
	:: else -> reached("work begins on the boundary")
	fi;
	printf("T=%d: worker %d begins to work in [%d, %d) with token %d\n", T, i, me.next.start, me.next.end, me.next.token);
	me.works = 1;
	k = 0;
	overlap = 0;
	do
	:: k < N ->
		if
		:: k != i && w[k].works ->
			if
			:: group(k) && group(i) -> reached("a group at work")
			:: else -> overlap = 1
			fi
		:: else
		fi;
		k++
	:: else -> break
	od;
	assert(!overlap || !checks(OVERLAP));
#ifdef GROUP
	token_grows = me.next.token > last_token ||
		(me.next.token == last_token && group(i) && last_group);
	last_group = group(i);
#else
	token_grows = me.next.token > last_token;
#endif
	assert(token_grows || !checks(TOKENS));
	if :: last_token > 0 -> reached("work after work") :: else fi;
	last_token = me.next.token;
	me.next.end = 0
}

/* Stop: the user's code has returned, so read the head, and if it is one's own,
   release it. What goes on is a new worker. */
inline stop() {
	read_head();
	c = (me.next.end > 0 && me.next.claim > 0 -> me.next.claim : me.held.claim);
	fence = release_at(i, h);
	if
	:: c > 0 && releasable(h, c) && releases(i) && fence < led[h].end && h < KEYS ->
		if
		:: c == me.next.claim -> reached("release of a slot to come")
		:: else -> reached("release of this slot")
		fi;
		leave_sent();
		record(RELEASE, h + 1, fence, fence, led[h].token, 0);
		printf("T=%d: worker %d stops and sends a release to key %d: [%d, %d)\n", T, i, r.key, r.start, r.end);
		copy(me.sent, r);
		me.sent.out = 1;
#ifdef TRIM
		me.sent.readat = read_at(i);
#endif
		if
		:: STOPS_FIRST -> me.works = 0
		:: else
		fi;
		if
		:: KEEPS_RELEASED || me.works
		:: else -> todo = RENEW
		fi
	:: else
	fi
}

/* Go on with what is to be done. */
inline go_on() {
	if
	:: todo == READ -> read_head(); todo = JUDGE
	:: else
	fi;
	if
	:: todo == JUDGE -> todo = NOTHING; judge()
	:: else
	fi;
	if
	:: todo == APPEND -> append()
	:: todo == CONFIRM ->
		if
		:: aged(i) -> reached("own claim was too old"); todo = VOID
		:: else ->
			printf("T=%d: worker %d knows that key %d is its own, or its group's\n", T, i, r.key);
			me.next.start = r.start;
			me.next.end = r.end;
			me.next.token = r.token;
			me.next.claim = r.claim;
			me.stage = IDLE
		fi
	:: else
	fi;
	if
	:: todo == VOID -> me.given_up = me.claim; me.stage = IDLE
	:: todo == DROP ->
		if
		:: me.stage == SENT && me.sent.kind == GRANT -> me.given_up = me.claim
		:: else
		fi;
		me.stage = IDLE
	:: todo == RENEW ->
		me.stage = IDLE;
		me.given_up = 0;
		me.works = 0;
		me.next.end = 0;
		me.held.end = 0
	:: else
	fi
}

/* What is dead is zero, so that states that don't differ look the same. */
inline tidy() {
	if
	:: me.stage == IDLE ->
		me.claim = 0;
		me.from = 0;
		me.to = 0;
#ifdef AGE
		me.fixed = 0
#endif
	:: else
	fi;
	if
	:: me.next.end == 0 || (over(i, me.next.end) && latest(i) >= me.next.end) ->
		me.next.start = 0;
		me.next.end = 0;
		me.next.token = 0;
		me.next.claim = 0
	:: else
	fi;
	if
	:: !me.works ->
		me.held.end = 0;
		me.held.claim = 0
	:: else
	fi;
#ifndef RELEASES
	/* Nobody asks whose it was. */
	me.given_up = 0;
	me.next.claim = 0;
	me.held.claim = 0;
#endif
	x = 1;
	do
	:: x <= KEYS -> rename(led[x]); x++
	:: else -> break
	od;
	rename(me.sent);
	if
	:: !me.sent.out && me.stage != SENT -> clear(me.sent)
	:: else
	fi;
#ifdef ZOMBIE
	rename(me.zombie);
	if
	:: !me.zombie.out -> clear(me.zombie)
	:: else
	fi;
#endif
	me.claim = (me.claim > 0 -> id(CLAIM) : 0);
	me.next.claim = (me.next.claim > 0 -> id(NEXT) : 0);
	me.held.claim = (me.held.claim > 0 -> id(HELD) : 0);
	me.given_up = (me.given_up > 0 -> id(GIVEN_UP) : 0)
}

inline rename(m) {
	if
	:: m.claim > i * IDS && m.claim <= (i + 1) * IDS ->
		if
		:: m.claim == me.claim -> m.claim = id(CLAIM)
		:: m.claim != me.claim && m.claim == me.next.claim -> m.claim = id(NEXT)
		:: m.claim != me.claim && m.claim != me.next.claim && m.claim == me.held.claim -> m.claim = id(HELD)
		:: m.claim != me.claim && m.claim != me.next.claim && m.claim != me.held.claim && m.claim == me.given_up ->
			m.claim = id(GIVEN_UP)
		:: else -> m.claim = 0
		fi
	:: else
	fi
}

proctype Worker(byte i) {
	do
	:: T >= LAST -> break
	:: atomic {
		if
		:: T < LAST && me.stage == IDLE && me.next.end == 0 -> todo = NOTHING; fix()
		:: T < LAST && me.stage == FIXED -> todo = READ
		:: T < LAST && me.stage == SENT && (led[me.sent.key].kind != 0 || !me.sent.out || ANY_TIME) ->
			todo = NOTHING; look()
		:: T < LAST && me.stage != IDLE -> todo = DROP
		:: T < LAST && !me.works && me.next.end > 0 && begun(i, me.next.start) && !over(i, me.next.end) ->
			todo = NOTHING; begin()
		:: me.works && over_in(i, 1, me.held.end) ->
			/* The last safe moment: till then, the user's code may be at work. */
			printf("T=%d: worker %d's window is over\n", T, i);
			me.works = 0
#ifdef RELEASES
		:: T < LAST && me.stage == IDLE && (me.next.claim > 0 || me.held.claim > 0) ->
			todo = NOTHING; stop()
#endif
#ifdef CRASHES
		:: T < LAST && (me.stage != IDLE || me.next.end > 0 || me.held.end > 0) ->
			reached("crash");
			printf("T=%d: worker %d crashes, and another begins\n", T, i);
			todo = RENEW
#endif
		fi;
		go_on();
		todo = NOTHING;
		d_step { tidy(); bury() }
	}
	od
}
