/* The data: records, messages, workers; and how the ledger takes a record. */

#ifndef N
#define N 2	/* workers */
#endif
#ifndef E
#define E 1	/* how far a worker's estimate of store time may be off, in ticks */
#endif
#ifndef LEN
#define LEN 4	/* ticks in a slot */
#endif
#ifndef LAST
#define LAST 11	/* the tick before which a run ends */
#endif
#ifndef KEYS
#define KEYS 5	/* keys 1..KEYS of the ledger */
#endif

#define max(a, b)	((a) > (b) -> (a) : (b))

/* Kinds of records; 0 is none. */
#define GRANT	1
#define RELEASE	2
#define RESET	3
#define POISON	4
#define OLD	5	/* of any kind: never read again */
#define DONE	6	/* bookkeeping: the work of a slot is done */
#define FOREIGN	7	/* a grant that no worker has written */
#define REPLAY	8	/* a reset that no worker has written */
/* No worker has written these. */
#define is_strange(k)	((k) == POISON || (k) == FOREIGN || (k) == REPLAY)

#ifdef ONCE
/* The knowledge about slots, in records, messages and windows. A slot is identified by
   its number, from 1 on. */
#define MARKS	\
	byte slot;	/* the newest that was claimed */ \
	byte attempt;	/* by how many terms */ \
	byte done;	/* the newest whose work is done */
#define pass_on(to_, from_)	to_.slot = from_.slot; to_.attempt = from_.attempt; to_.done = from_.done
#define no_marks(m)	m.slot = 0; m.attempt = 0; m.done = 0
#else
#define MARKS
#define pass_on(to_, from_)
#define no_marks(m)
#endif

typedef Record {
	byte kind;
	byte start, end;	/* the window */
	byte token;
	byte claim;		/* 0: of no interest to any worker any more */
#ifdef TRIM
	byte readat;
#endif
#ifdef GROUP
	bit group;
#endif
	MARKS
}

/* An append on its way. */
typedef Message {
	bit out;		/* may land, now or ever */
	byte key;
	byte kind, start, end, token, claim;
#ifdef TRIM
	byte readat;
#endif
#ifdef ONCE
	bit begins;		/* a term */
#endif
	MARKS
}

typedef Window {
	byte start, end, token, claim;	/* claim: 0 if it is the group's */
#ifdef EXTENDS
	byte key;		/* of its newest record */
#ifdef AGE
	byte known;		/* when that was known to be the head */
#endif
#endif
#ifdef ONCE
	byte slot;
#endif
}

/* Stages of a worker. */
#define IDLE	0	/* no claim */
#define FIXED	1	/* claim fixed, head to be read */
#define SENT	2	/* append sent; its key shows the outcome */

typedef Candidate {
	byte stage;
	byte claim, from, to;	/* the claim: id, earliest start, end */
#ifdef AGE
	byte fixed;		/* when it was fixed */
#endif
	byte given_up;		/* an earlier claim that may have landed, or may yet land */
#ifdef ONCE
	byte job;		/* the slot whose work is done, while that is to be recorded */
#endif
#ifdef BREAK_LEFT
	bit revives;		/* the append extends a term that was left before */
#endif
#ifdef BREAK_ATTEMPTS
	byte tried, tries;	/* a slot, and the worker's own attempts at it */
#endif
	bit works;		/* the user's code runs */
	Window next, held;	/* won, not begun; begun, while it works */
	Message sent;		/* the newest append */
#ifdef ZOMBIE
	Message zombie		/* an earlier append that no worker waits for any more */
#endif
}

byte T = LEN;			/* store time */
short off[N];			/* estimate minus store time, of each worker */
#ifdef WRONG
#ifndef VOTES
#define VOTES	2	/* samples in a row that decide */
#endif
short lie[N];			/* a clock in question, as it differs from that of each worker; 0: none */
byte votes[N];			/* how many samples in a row have yet to confirm the worker's own */
byte lies;			/* stamps that were wrong */
#endif
#ifdef JUMP
#define HAS_JUMP	(by != 0)
short by;			/* the jump of the store's clock; 0: it has not jumped */
byte jumped_at;			/* by the clock that was in force before, T */
bit told[N], settled[N];	/* whether each worker knows of it; and acts by the new clock alone */
byte settle_at[N];		/* the end of the head that was read since, by both clocks; 0: none was */
byte settle_key[N];		/* and its key */
#else
#define HAS_JUMP	false
#endif
Record led[KEYS + 1];		/* led[0] stands for the empty ledger's head */
Candidate w[N];
byte last_token;
#ifdef ONCE
byte begun_slot, begun_times;	/* the newest slot in which work has begun; how often */
byte done_slot;			/* the newest slot whose work was recorded as done */
#endif
#ifdef GROUP
bit last_group;
#define group(i)	((i) < 2)	/* 0: none */
#else
#define group(i)	0
#endif
#ifdef MIXED
#define length(i)	((i) == 1 -> 2 * LEN : LEN)
#else
#define length(i)	LEN
#endif
/* Windows are cut where slots are or, with WINDOW, between, too. */
#ifndef WINDOW
#define WINDOW	length(i)
#endif
#define in_one_slot(i, past, at)	((past) % length(i) != 0 && (past) / length(i) == (at) / length(i))
#define cut_after(i, from)	(((from) / WINDOW + 1) * WINDOW)

/* Scratch: dead between steps. The search doesn't undo what a d_step does to it, so
   the second kind is for d_steps, and for nothing else. */
hidden byte h, j, k, n, c, start, fence, todo, done_by;
hidden Message r;
hidden byte overlap, token_grows, may_go, no_gap, frees_nobody, not_again, few_enough, is_recorded;
hidden byte x, y;

/* Points that a search must come to. Each is printed once; that changes nothing. */
#define reached(what)	c_code { static int seen; if (!seen) { seen = 1; printf("reached: %s\n", what); } }

#include "rules.pml"

/* The newest record. */
inline find_head() {
	h = KEYS;
	do
	:: h > 0 && led[h].kind == 0 -> h--
	:: else -> break
	od
}

/* A read of the head. It may be stale: what was the head once. */
inline read_head() {
	find_head();
#ifdef STALE
	do
	:: h > 0 ->
		h--;
		do
		:: h > 0 && led[h].kind == 0 -> h--
		:: else -> break
		od;
		reached("stale read")
	:: break
	od
#endif
}

/* No worker works under a window that reaches beyond an end. */
#define out_of(i, to)	(!w[i].works || w[i].held.end <= (to))
#if N == 1
#define all_out_of(to)	out_of(0, to)
#elif N == 2
#define all_out_of(to)	(out_of(0, to) && out_of(1, to))
#elif N == 3
#define all_out_of(to)	(out_of(0, to) && out_of(1, to) && out_of(2, to))
#endif

/* A message reaches the ledger: it is inserted unless its key is taken. */
inline land(m) {
	if
	:: led[m.key].kind == 0 ->
		find_head();
#ifdef TRIM
		if
		:: m.key < h -> reached("landed on a trimmed key")
		:: else
		fi;
#endif
		/* (By which clock, if that has jumped?) */
		no_gap = HAS_JUMP || m.kind != GRANT || led[m.key - 1].kind == 0 || is_strange(led[m.key - 1].kind) ||
			m.start <= led[m.key - 1].end || T >= led[m.key - 1].end;
		frees_nobody = m.kind != RELEASE || m.key < h || all_out_of(m.start);
		printf("T=%d: kind %d of worker %d lands at key %d: [%d, %d), token %d\n", T, m.kind, i, m.key, m.start, m.end, m.token);
		led[m.key].kind = m.kind;
		led[m.key].start = m.start;
		led[m.key].end = m.end;
		led[m.key].token = m.token;
		led[m.key].claim = m.claim;
		pass_on(led[m.key], m);
#ifdef TRIM
		led[m.key].readat = m.readat;
#endif
#ifdef GROUP
		led[m.key].group = group(i);
#endif
		if
		:: m.kind == RELEASE -> reached("release landed")
		:: m.kind == RESET -> reached("reset landed")
		:: else
		fi;
		assert(no_gap || !checks(GAP));
		assert(frees_nobody || !checks(FREES));
#ifdef ONCE
		check_again(m)
#endif
	:: else
	fi;
#ifdef TRIM
	if
	:: m.out = 0
#ifdef COPIES
	:: true		/* another is still on its way: workers and drivers retry */
#endif
	fi
#else
	/* The key is taken forever: no other append to it can land. */
	j = m.key;
	i = 0;
	do
	:: i < N ->
		if :: w[i].sent.key == j -> w[i].sent.out = 0 :: else fi;
		if :: w[i].sent.key == j && w[i].stage != SENT -> clear(w[i].sent) :: else fi;
#ifdef ZOMBIE
		if :: w[i].zombie.key == j -> clear(w[i].zombie) :: else fi;
#endif
		i++
	:: else -> break
	od
#endif
}

/* A record is trimmed. */
inline forget_record(n) {
	led[n].kind = 0;
	led[n].start = 0;
	led[n].end = 0;
	led[n].token = 0;
	led[n].claim = 0;
	led[n].readat = 0;
	no_marks(led[n]);
#ifdef GROUP
	led[n].group = 0;
#endif
	skip
}

/* A message that has no effect any more. Dead data is zero, so that equal states look
   the same. */
inline clear(m) {
	m.out = 0;
	m.key = 0;
	m.kind = 0;
	m.start = 0;
	m.end = 0;
	m.token = 0;
#ifdef TRIM
	m.readat = 0;
#endif
#ifdef ONCE
	m.begins = 0;
#endif
	no_marks(m);
	m.claim = 0
}

/* A record below the head is dead, but for its key and ReadAt, when no append to its
   key or below waits to be looked at (and no read is stale). */
inline bury() {
#ifndef STALE
	y = KEYS;
	do
	:: y > 0 && (led[y].kind == 0 || is_strange(led[y].kind)) -> y--
	:: else -> break
	od;
	x = 0;
	do
	:: x < N ->
		if :: w[x].stage == SENT && w[x].sent.key < y -> y = w[x].sent.key :: else fi;
		x++
	:: else -> break
	od;
	x = 1;
	do
	:: x < y ->
		if
		:: led[x].kind != 0 ->
			led[x].kind = OLD;
			led[x].start = 0;
			led[x].end = 0;
			led[x].token = 0;
			led[x].claim = 0;
#ifndef BREAK_DONE_BELOW
			no_marks(led[x]);
#endif
#ifdef GROUP
			led[x].group = 0;
#endif
			skip
		:: else
		fi;
		x++
	:: else -> break
	od;
#endif
#ifdef TRIM
	/* So is a ReadAt that justifies no more than another; and it is all the same how
	   old one is that justifies trimming. */
	y = 0;
	x = KEYS;
	do
	:: x > 0 ->
		if
		:: y -> led[x].readat = 0
		:: !y && justifies(x) -> led[x].readat = 1; y = 1
		:: else
		fi;
		x--
	:: else -> break
	od;
#endif
	x = 0
}
