/* The rules of the protocol, each as it is built. -DBREAK_... breaks exactly
   one of them; what is not broken stays. A worker i knows store time T only as
   estimate(i), which is at most E away from it. */

#define estimate(i)	(T + off[i] + moved(i))

/* Samples may contradict one another: a stamp was wrong, or the store's clock has jumped. Until
   that is decided, the interval contains both times: it reaches further down, or up. */
#if defined(WRONG)
#define moved(i)	believed(i)
#define down(i)		doubted(i, <)
#define up(i)		doubted(i, >)
#elif defined(JUMP)
#define moved(i)	(settled[i] -> by : 0)
#define down(i)		(told[i] && !settled[i] && by < 0 -> by : 0)
#define up(i)		(told[i] && !settled[i] && by > 0 -> by : 0)
#else
#define moved(i)	0
#define down(i)		0
#define up(i)		0
#endif
/* A stamp that contradicts others counts once it is confirmed; one that is wrong never is. */
#ifdef BREAK_CONFIRM
#define believed(i)	lie[i]
#define doubted(i, side)	0
#define in_question(i)	false
#else
#define believed(i)	0
#define doubted(i, side)	(lie[i] side 0 -> lie[i] : 0)
#ifdef WRONG
#define in_question(i)	(lie[i] != 0)
#else
#define in_question(i)	false
#endif
#endif
/* A jump is settled when all that others may hold by the clock before is over by both: when the
   head has ended that was read since, and is still the head. Or when so much time has
   passed as the longest of it takes. */
#ifdef BREAK_SETTLED
#define settles(i)	true
#else
#define settles(i)	((settle_at[i] > 0 && earliest(i) >= settle_at[i]) || outlasted)
#endif
#define outlasted	(T >= jumped_at + PATIENCE)
#ifdef BREAK_UNCHANGED
#define unchanged(i, n)	true
#else
#define unchanged(i, n)	((n) == settle_key[i])
#endif
#ifndef PATIENCE
#define PATIENCE	(2 * LEN)
#endif

/* What is checked: all of it, or ONLY one. */
#define OVERLAP	1	/* two that don't share a group are at work */
#define TOKENS	2	/* work begins under a token that is not above the last */
#define STAYS	3	/* a record is deleted without a justification */
#define GAP	4	/* a grant leaves a gap after a head that has not ended */
#define FREES	5	/* a release frees a window that a worker works under */
#define AGAIN	6	/* a term is granted in a slot whose work is done */
#define TRIES	7	/* work begins in a slot more often than there may be attempts */
#define RECORDED 8	/* a worker takes work for recorded as done that isn't */
#ifdef ONLY
#define checks(what)	(ONLY == (what))
#else
#define checks(what)	true
#endif

/* Time is an interval that contains store time. */
#ifdef BREAK_UNCERTAINTY
#define latest(i)	estimate(i)
#define earliest(i)	estimate(i)
#else
#define latest(i)	(estimate(i) + up(i) + E)
#define earliest(i)	(estimate(i) + down(i) - E)
#endif

/* Work begins only when its window has surely begun ... */
#ifdef BREAK_BEGIN
#define begun(i, from)	(estimate(i) >= (from))
#else
#define begun(i, from)	(earliest(i) >= (from))
#endif

/* ... and ends before its window may have ended: by what is known then, it is over
   some ticks from now. */
#ifdef BREAK_END
#define over_in(i, ticks, to)	(estimate(i) + (ticks) >= (to))
#else
#define over_in(i, ticks, to)	(latest(i) + (ticks) >= (to))
#endif
#define over(i, to)	over_in(i, 0, to)

/* A window starts at the end of the head, or later. */
#ifdef BREAK_DISJOINT
#define earliest_start(from, n)	(from)
#else
#define earliest_start(from, n)	max(from, led[n].end)
#endif

/* A token is above that of the head. */
#ifdef BREAK_TOKEN
#define next_token(start, n)	(start)
#else
#define next_token(start, n)	max(start, led[n].token + 1)
#endif

/* A claim that leaves a gap after the head waits until the head has ended. */
#ifdef BREAK_GAP
#define gap_allowed(i, start, n)	true
#else
#define gap_allowed(i, start, n)	((start) <= led[n].end || earliest(i) >= led[n].end)
#endif

/* A time-out says nothing: the key is read back. */
#ifdef BREAK_READ_BACK
#define UNKNOWN_WON	true
#else
#define UNKNOWN_WON	false
#endif
/* Nothing else comes of a look at a key while the append is on its way. */
#if defined(BREAK_READ_BACK) || defined(BREAK_FIXED)
#define ANY_TIME	true
#else
#define ANY_TIME	false
#endif

/* What stands at the key is one's own if it has one's claim id. (Broken: if it
   has one's instance id, which is the same for all workers here.) */
#ifdef BREAK_CLAIM_ID
#define mine(i, n)	(led[n].kind == me.sent.kind)
#else
#define mine(i, n)	(led[n].kind == me.sent.kind && led[n].claim == me.sent.claim)
#endif

/* A claim is worked under only if it is known to be one's own within AGE of its
   fixing. It is fixed before the head is read, and not again on a retry.
   (BREAK_FIXED, in worker.pml: on a retry.) */
#if defined(AGE) && !defined(BREAK_AGE)
#define aged(i)	(me.stage != IDLE && T > me.fixed + AGE)
#else
#define aged(i)	false
#endif

/* A release comes from the holder of the head's term ... */
#ifdef BREAK_RELEASE_OWN
#define releasable(n, c)	(led[n].kind == GRANT)
#else
#define releasable(n, c)	(led[n].kind != POISON && led[n].kind != RELEASE && led[n].claim == (c) && (c) != 0)
#endif
/* ... frees the rest of that term and nothing before it ... */
#ifdef BREAK_RELEASE_REST
#define release_at(i, n)	latest(i)
#else
#define release_at(i, n)	max(latest(i), led[n].token + 1)
#endif
/* ... after the user's code has returned ... */
#ifdef BREAK_STOP_FIRST
#define STOPS_FIRST	false
#else
#define STOPS_FIRST	true
#endif
/* ... and its term is never worked under again; nor does a member of a group
   release what others may be working under. */
#ifdef BREAK_NEVER_AGAIN
#define KEEPS_RELEASED	true
#else
#define KEEPS_RELEASED	false
#endif
#ifdef BREAK_GROUP_RELEASE
#define releases(i)	true
#else
#define releases(i)	(group(i) == 0)
#endif

/* Poison is not free: it is superseded by a reset, which stands at the end of the
   term below the poison and has a token above it. */
#ifdef BREAK_POISON
#define is_poison(n)	false
#else
#define is_poison(n)	(led[n].kind == POISON || contradicts(n))
#endif
/* A grant or a reset that is valid alone is poison, too, if it begins before the end of the
   record below it and is not of its claim. (Broken: a grant alone is.) */
#ifdef BREAK_REPLAY
#define may_contradict(k)	((k) == GRANT || (k) == FOREIGN)
#else
#define may_contradict(k)	((k) == GRANT || (k) == FOREIGN || (k) == REPLAY)
#endif
#if defined(ROGUE) && !defined(BREAK_CONTRADICTS)
#define contradicts(n)	((n) > 0 && may_contradict(led[n].kind) && \
			 led[(n) - 1].kind != 0 && led[(n) - 1].kind != OLD && led[n].start < led[(n) - 1].end)
#else
#define contradicts(n)	false
#endif
#ifdef BREAK_RESET_END
#define reset_at(i, b)	latest(i)
#else
#define reset_at(i, b)	max(latest(i), led[b].end)
#endif
#ifdef BREAK_RESET_TOKEN
#define reset_token(at, b)	(at)
#else
#define reset_token(at, b)	max(at, led[b].token + 1)
#endif

/* ReadAt is the latest that it may have been when the head was read. */
#ifdef BREAK_READ_AT
#define read_at(i)	earliest(i)
#else
#define read_at(i)	latest(i)
#endif
/* Records below j may go when everything below j has surely been in the ledger
   for RETENTION. The worker whose clock is as far ahead as can be trims first:
   its earliest is T. A record without ReadAt justifies nothing. */
#ifdef BREAK_READ_AT_MISSING
#define justifies(j)	(led[j].kind != 0 && led[j].readat + RETENTION <= T)
#else
#define justifies(j)	(led[j].kind != 0 && led[j].readat != 0 && led[j].readat + RETENTION <= T)
#endif

/* The head stays, and a record is not trimmed by its own age. */
#if defined(BREAK_TRIM_HEAD)
#define trims(k, j)	(led[k].kind != 0 && led[k].readat + RETENTION <= T && led[k].end <= T)
#elif defined(BREAK_TRIM_OWN_AGE)
#define trims(k, j)	(led[k].kind != 0 && k < h && led[k].readat + RETENTION <= T && led[k].end <= T)
#else
#define trims(k, j)	(led[k].kind != 0 && k < j)
#endif

/* A term is extended by its holder while it works under it. A term that was
   left is never extended ... */
#ifdef BREAK_LEFT
#define may_extend(i)	(me.held.claim > 0)
#define keeps_left(i)	true
#define resumes(i)	me.revives
#else
#define may_extend(i)	me.works
#define keeps_left(i)	false
/* ... nor worked under again, whatever is confirmed then. */
#ifdef BREAK_LATE
#define resumes(i)	true
#else
#define resumes(i)	false
#endif
#endif
/* It is the term in the head: its claim shows it. A release has none here, because
   the worker that sent it has forgotten the claim. (Broken: its instance id, which is the same for
   all workers here.) */
#define same_term(i, n)	(led[n].claim != 0 && led[n].claim == me.held.claim)
#if defined(BREAK_EXTEND_CLAIM) || defined(BREAK_EXTEND_START)
#define extends(i, n)	(may_extend(i) && led[n].kind == GRANT)
#else
#define extends(i, n)	(may_extend(i) && same_term(i, n))
#endif
/* It goes on where the head ends. (Broken: where the worker's own window does,
   even if another has taken over since.) */
#ifdef BREAK_EXTEND_START
#define goes_on_at(i, n)	me.held.end
#else
#define goes_on_at(i, n)	led[n].end
#endif
/* One that is made without reading the head again is as old as what the worker
   knew of the head. */
#ifdef BREAK_KNOWN
#define known_since(i)	T
#else
#define known_since(i)	me.held.known
#endif
#ifdef AGE
#define knows_head(i)	(known_since(i) > 0)
#else
#define knows_head(i)	true
#endif

#ifdef ONCE
/* A slot is done when its work is: a done record changes no term ... */
#ifdef BREAK_DONE_TERM
#define done_claim(i, n)	(me.held.claim > 0 -> me.held.claim : led[n].claim)
#else
#define done_claim(i, n)	led[n].claim
#endif
/* ... and all later records say which slots are done, so that the head does.
   (Broken: only done records do; a reader of the head looks below it for them, or
   doesn't.) */
#if defined(BREAK_DONE_COPIED) || defined(BREAK_DONE_BELOW)
#define done_to_copy(n)	0
#else
#define done_to_copy(n)	led[n].done
#endif
#ifdef BREAK_DONE_BELOW
#define LOOKS_BELOW	true
#else
#define LOOKS_BELOW	false
#endif
/* A done record has the head's claim id, and so may have that of another worker who
   is done with another slot. The record at its key decides ... */
#ifdef BREAK_DONE_MINE
#define recorded(i, n)	mine(i, n)
#else
#define recorded(i, n)	(led[n].done >= me.job)
#endif
/* ... within AGE of reading the head: trimming may have opened the key again, and
   no worker will read a record that lands there then. */
#if defined(AGE) && !defined(BREAK_DONE_AGE)
#define done_aged(i)	(T > me.fixed + AGE)
#else
#define done_aged(i)	false
#endif
/* No worker claims a slot that is done. */
#ifdef BREAK_DONE_OBEYED
#define undone(i)	true
#else
#define undone(i)	(slot_of(me.to) > done_by)
#endif
/* Attempts are counted in the ledger, except those in which no work will begin: they
   are released. (Broken: each worker counts its own.) */
#ifdef BREAK_ATTEMPTS
#define next_attempt(i, n)	(me.tried == slot_of(me.to) -> me.tries + 1 : 1)
#else
#define next_attempt(i, n)	(led[n].slot == slot_of(me.to) -> led[n].attempt + 1 : 1)
#endif
#define may_claim(i, n)	(undone(i) && next_attempt(i, n) <= ATTEMPTS)
#else
#define may_claim(i, n)	true
#endif
