/* Work that is done once in each slot: done records, and attempts. */

#ifdef ONCE
#if defined(MIXED) || defined(GROUP)
#error "slots are known by their numbers"
#endif
#ifndef ATTEMPTS
#define ATTEMPTS 2	/* terms that may begin in a slot */
#endif
#define slot_of(to)	(((to) - 1) / LEN)

/* What record r says about slots, if record b precedes it. */
inline inherit(b) {
	r.slot = led[b].slot;
	r.attempt = led[b].attempt;
	r.done = done_to_copy(b);
	r.begins = 0
}

/* Record r begins a term after record b. */
inline begin_attempt(b) {
	r.attempt = next_attempt(i, b);
	r.slot = slot_of(me.to);
	r.begins = 1;
#ifdef BREAK_ATTEMPTS
	me.tried = r.slot;
	me.tries = r.attempt;
#endif
	skip
}

/* The newest slot whose work is done, according to record h. */
inline find_done() {
	done_by = led[h].done;
	k = 1;
	do
	:: LOOKS_BELOW && k < h ->
		if
		:: led[k].kind != 0 && led[k].done > done_by -> done_by = led[k].done
		:: else
		fi;
		k++
	:: else -> break
	od
}

/* The work is done before its window is over. */
inline finish() {
	printf("T=%d: worker %d has done the work of slot %d\n", T, i, me.held.slot);
	me.works = 0;
	me.job = me.held.slot
}

/* Append the done record after the head, whichever worker holds it. */
inline note_done() {
	read_head();
	find_done();
	if
	:: done_by >= me.job -> me.job = 0
	:: done_by < me.job && h < KEYS && !is_poison(h) ->
		if
		:: led[h].slot > me.job && led[h].end > T -> reached("done after the next slot's term")
		:: else
		fi;
		c = done_claim(i, h);
		record(DONE, h + 1, led[h].end, led[h].end, led[h].token, c, h);
		r.done = me.job;
#ifdef AGE
		me.fixed = T;
#endif
		todo = APPEND
	:: else
	fi
}

/* Learn its outcome. Unless it is stored, another is appended. */
inline look_done() {
	me.stage = IDLE;
	if
	:: led[h].kind != 0 && recorded(i, h) && !done_aged(i) ->
		reached("done confirmed");
		printf("T=%d: worker %d knows that slot %d is recorded as done\n", T, i, me.job);
		is_recorded = done_slot >= me.job;
		assert(is_recorded || !checks(RECORDED));
#ifdef EXTENDS
		if
		:: me.works && same_term(i, h) && led[h].end == me.held.end -> me.held.key = h
		:: else
		fi;
#endif
		me.job = 0
	:: else
	fi
}

/* Message m lands. Only the order of the records counts. */
inline check_again(m) {
	if
	:: m.key > h && m.kind == DONE ->
		reached("done landed");
		done_slot = max(done_slot, m.done)
	:: m.key > h && m.begins ->
		not_again = m.slot > done_slot;
		assert(not_again || !checks(AGAIN))
	:: else
	fi
}

/* Work begins. */
inline check_attempts() {
	if
	:: me.held.slot > begun_slot -> begun_slot = me.held.slot; begun_times = 1
	:: else -> reached("another attempt"); begun_times++
	fi;
	few_enough = begun_times <= ATTEMPTS;
	assert(few_enough || !checks(TRIES))
}
#endif
