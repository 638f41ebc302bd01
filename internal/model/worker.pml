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

#include "names.pml"
#include "append.pml"
#include "term.pml"
#include "job.pml"

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
		me.to = cut_after(i, start);
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

inline judge() {
	start = earliest_start(me.from, h);
	fence = release_at(i, h);
#ifdef ONCE
	find_done();
#endif
	if
	:: aged(i) -> todo = VOID
	:: else ->
		if
#ifdef ROGUE
		:: h > 0 && is_poison(h) ->
			/* The time for which it is watched doesn't matter. */
			k = h - 1;
			do
			:: k > 0 && (led[k].kind == 0 || is_strange(led[k].kind)) -> k--
			:: else -> break
			od;
			start = reset_at(i, k);
			fence = reset_token(start, k);
			record(RESET, h + 1, start, start, fence, 0, k);
			todo = APPEND
		:: h > 0 && is_poison(h) -> todo = DROP
#endif
		:: !is_poison(h) && led[h].kind == GRANT && led[h].claim == me.claim ->
			own(me.claim)
#ifdef EXTENDS
		:: extends(i, h) -> extend()
#endif
#ifdef GROUP
		:: led[h].kind == GRANT && led[h].group && group(i) && !over(i, led[h].end) ->
			reached("joined");
			own(0)
#endif
#ifdef RELEASES
		:: led[h].kind == GRANT && led[h].claim != 0 && led[h].claim == me.given_up &&
		   releases(i) && fence < led[h].end ->
			reached("void claim released");
			record(RELEASE, h + 1, fence, fence, led[h].token, 0, h);
			todo = APPEND
#endif
		:: !is_poison(h) && !(led[h].kind == GRANT && led[h].claim == me.claim) ->
			if
			:: start < me.to && gap_allowed(i, start, h) && may_claim(i, h) ->
				if :: start > me.from -> reached("start raised") :: else fi;
				if :: h > 0 && T >= led[h].end && in_one_slot(i, led[h].end, start) -> reached("take-over") :: else fi;
				fence = next_token(start, h);
				record(GRANT, h + 1, start, me.to, fence, me.claim, h);
#ifdef ONCE
				begin_attempt(h);
#endif
				todo = APPEND
			:: else ->
#ifdef ONCE
				if :: slot_of(me.to) <= done_by -> reached("kept off by done") :: else fi;
				if :: next_attempt(i, h) > ATTEMPTS -> reached("no attempt left") :: else fi;
#endif
				todo = DROP
			fi
		fi
	fi
}

/* Learn what became of the append, by its reply or by reading its key back. */
inline look() {
	if
#ifdef BREAK_FIXED
	:: me.sent.out = 1; me.fixed = T
#endif
	:: led[h].kind != 0 && mine(i, h) ->
		if
		:: me.sent.kind == GRANT ->
			reached("own append confirmed");
			own(me.sent.claim)
		:: else -> me.stage = FIXED
		fi
	:: led[h].kind != 0 && !mine(i, h) ->
		reached("conflict");
		if :: EXTENSIONS && me.sent.kind == GRANT && me.sent.claim != me.claim -> reached("extension refused") :: else fi;
		if
		:: me.sent.kind == GRANT -> todo = JUDGE
		:: else -> me.stage = FIXED
		fi
	:: led[h].kind == 0 && UNKNOWN_WON && me.sent.kind == GRANT -> copy(r, me.sent); todo = CONFIRM
	:: led[h].kind == 0 && !UNKNOWN_WON ->
		/* Send it again; or, it having been refused, read the head again. */
		if
		:: aged(i) -> todo = VOID
		:: !aged(i) && me.sent.kind == GRANT && of_use(i) -> me.sent.out = 1
		:: !aged(i) && me.sent.kind == GRANT && !of_use(i) -> todo = DROP
		:: !aged(i) && !me.sent.out -> me.stage = FIXED
		fi
	fi
}

inline begin() {
	me.held.end = me.next.end;
	me.held.claim = me.next.claim;
#ifdef EXTENDS
	me.held.token = me.next.token;
	me.held.key = me.next.key;
#ifdef AGE
	me.held.known = me.next.known;
#endif
#endif
#ifdef ONCE
	me.held.slot = me.next.slot;
	check_attempts();
#endif
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
		record(RELEASE, h + 1, fence, fence, led[h].token, 0, h);
#ifdef ONCE
		if
		:: c == me.next.claim && r.attempt > 0 -> r.attempt--
		:: else
		fi;
#endif
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
#ifdef EXTENDS
		:: !aged(i) && r.claim != me.claim -> extended()
#endif
		:: !aged(i) && !(EXTENSIONS && r.claim != me.claim) ->
			printf("T=%d: worker %d knows that key %d is its own, or its group's\n", T, i, r.key);
			me.next.start = r.start;
			me.next.end = r.end;
			me.next.token = r.token;
			me.next.claim = r.claim;
#ifdef EXTENDS
			me.next.key = r.key;
#ifdef AGE
			me.next.known = T;
#endif
#endif
#ifdef ONCE
			me.next.slot = r.slot;
#endif
			me.stage = IDLE
		fi
	:: else
	fi;
	if
	:: todo == VOID ->
		if
		:: me.stage == SENT && me.sent.kind == GRANT -> give_up(me.sent.claim)
		:: else -> give_up(me.claim)
		fi;
		me.stage = IDLE
	:: todo == DROP ->
		if
		:: me.stage == SENT && me.sent.kind == GRANT -> give_up(me.sent.claim)
		:: else
		fi;
		me.stage = IDLE
	:: todo == RENEW ->
		me.stage = IDLE;
		me.given_up = 0;
		me.works = 0;
		me.next.end = 0;
#ifdef ONCE
		me.job = 0;
#endif
		me.held.end = 0;
		me.held.claim = 0
	:: else
	fi
}

/* A claim was abandoned, but may have landed or may yet land. */
inline give_up(which) {
	if
	:: which != me.held.claim -> me.given_up = which
	:: else		/* it is the term's, and that is held yet */
	fi
}

#ifdef WRONG
#define knows(i)	(!in_question(i))
/* A stamp comes: a wrong one, or one that confirms what the worker knows. Fewer wrong ones come
   in a row than decide. Nothing else goes on before that. */
inline sample() {
	if
	:: lies < WRONG && lie[i] == 0 ->
		lies++;
		if
		:: lie[i] = WRONG_BY
		:: lie[i] = -WRONG_BY
		fi;
		votes[i] = VOTES;
		printf("T=%d: worker %d gets a stamp that is wrong by %d\n", T, i, lie[i]);
		reached("wrong stamp");
		if :: in_question(i) -> me.works = 0 :: else fi
	:: lies < WRONG && lie[i] != 0 -> lies++; votes[i] = VOTES
	:: lie[i] != 0 ->
		votes[i]--;
		if
		:: votes[i] == 0 -> lie[i] = 0; reached("dropped")
		:: else
		fi
	fi
}
#elif defined(JUMP)
/* A worker that doesn't know of a jump goes on with what it has won, and with nothing else. */
#define knows(i)	(by == 0 || told[i])
/* It learns of the jump: nothing that was won or claimed by the clock before is of use. */
inline learn() {
	reached("jump");
	printf("T=%d: worker %d learns that the clock has jumped by %d\n", T, i, by);
	if
	:: me.works -> reached("jump ends work")
	:: else
	fi;
	told[i] = 1;
	me.works = 0;
	if
	:: me.next.end > 0 -> me.given_up = me.next.claim; me.next.end = 0
	:: else
	fi;
	if
	:: me.stage != IDLE -> todo = VOID
	:: else
	fi
}
/* It reads the head, to learn what others may hold. */
inline look_around() {
	read_head();
	settle_at[i] = max(led[h].end, 1);
	settle_key[i] = h
}
inline settle() {
	read_head();
	if
	:: outlasted || unchanged(i, h) ->
		if
		:: !outlasted -> reached("settled by the head")
		:: else -> reached("settled by patience")
		fi;
		settled[i] = 1;
		settle_at[i] = 0;
		settle_key[i] = 0
	:: else ->
		reached("another head");
		look_around()
	fi
}
#else
#define knows(i)	true
#endif
#ifdef LATE_NEWS
#define may_look(i)	true
#else
#define may_look(i)	knows(i)
#endif

proctype Worker(byte i) {
	do
	:: atomic {
		if
#ifdef WRONG
		:: (lie[i] != 0 || lies < WRONG) -> todo = NOTHING; sample()
#endif
#ifdef JUMP
		:: by != 0 && !told[i] -> todo = NOTHING; learn()
		:: told[i] && !settled[i] && settle_at[i] == 0 && me.stage == IDLE ->
			todo = NOTHING; look_around()
		:: told[i] && !settled[i] && settles(i) -> todo = NOTHING; settle()
#endif
		:: knows(i) && me.stage == IDLE && me.next.end == 0 -> todo = NOTHING; fix()
		:: knows(i) && me.stage == FIXED -> todo = READ
		:: may_look(i) && me.stage == SENT && (led[me.sent.key].kind != 0 || !me.sent.out || ANY_TIME) ->
			todo = NOTHING;
			h = me.sent.key;
#ifdef ONCE
			if
			:: me.sent.kind == DONE -> look_done()
			:: else -> look()
			fi
#else
			look()
#endif
		:: knows(i) && me.stage != IDLE -> todo = DROP
		:: !in_question(i) && !me.works && me.next.end > 0 && begun(i, me.next.start) && !over(i, me.next.end) ->
			todo = NOTHING; begin()
		:: me.works && over_in(i, 1, me.held.end) ->
			/* The last safe moment: till then, the user's code may be at work. */
			printf("T=%d: worker %d's window is over\n", T, i);
			me.works = 0
#ifdef EXTENDS
		:: knows(i) && me.stage == IDLE && may_extend(i) -> todo = NOTHING; prolong()
#endif
#ifdef ONCE
		:: me.works -> todo = NOTHING; finish()
		:: knows(i) && me.stage == IDLE && me.job > 0 -> todo = NOTHING; note_done()
#endif
#ifdef RELEASES
		:: knows(i) && me.stage == IDLE && (me.next.claim > 0 || me.held.claim > 0) ->
			todo = NOTHING; stop()
#endif
#ifdef CRASHES
		:: (me.stage != IDLE || me.next.end > 0 || me.held.end > 0) ->
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
