/* The whole model: this file holds the processes besides the workers, and how a run
   begins. doc.go explains it. */

#include "ledger.pml"
#include "worker.pml"

/* Store time goes on until the run ends, but not past the last safe moment of user code at
   work: its context ends there. */
#define may_tick(i)	(!w[i].works || !over_in(i, 1, w[i].held.end))
#if N == 1
#define all_may_tick	may_tick(0)
#elif N == 2
#define all_may_tick	(may_tick(0) && may_tick(1))
#elif N == 3
#define all_may_tick	(may_tick(0) && may_tick(1) && may_tick(2))
#endif
proctype Clock() {
	byte i;
	do
	:: d_step {
		T + 1 < LAST && all_may_tick ->
		T++;
		i = 0;
		do
		:: i < N -> tidy(); i++
		:: else -> break
		od;
		i = 0;
		bury()
	}
	od
}

/* Messages arrive in any order, at any time, or never: but not when a jump is settled that their
   sender doesn't know of, if it is to learn their outcome. */
#if defined(LATE_NEWS) && !defined(ANY_NEWS)
#if N != 2
#error "who has settled?"
#endif
#define in_time(i)	(told[i] || !(settled[0] || settled[1]))
#else
#define in_time(i)	true
#endif
proctype Network() {
	byte i;
	do
	:: atomic {
		i = 0;
		do
		:: i < N - 1 -> i++
		:: break
		od;
		if
		:: w[i].sent.out && in_time(i) ->
			land(w[i].sent)
#ifdef TRIM
			;
			if
			:: !w[i].sent.out && w[i].stage != SENT -> clear(w[i].sent)
			:: else
			fi
#endif
#ifdef ZOMBIE
		:: w[i].zombie.out ->
			if :: led[w[i].zombie.key].kind == 0 -> reached("zombie landed") :: else fi;
			land(w[i].zombie)
#ifdef TRIM
			;
			if
			:: !w[i].zombie.out -> clear(w[i].zombie)
			:: else
			fi
#endif
#endif
		:: else
		fi;
		i = 0;
		d_step { bury() }
	}
	od
}

#ifdef TRIM
/* The trimming that workers do, at any time and as eagerly as the rules allow.
   A store deletes nothing else. */
proctype Trimmer() {
	do
	:: atomic {
		find_head();
		j = h;
#if !defined(BREAK_TRIM_HEAD) && !defined(BREAK_TRIM_OWN_AGE)
		do
		:: j > 0 && !justifies(j) -> j--
		:: else -> break
		od;
#ifdef BATCHES
		do
		:: j > 0 -> j--	/* one that ends anywhere */
		:: break
		od;
#endif
#endif
		k = 1;
		do
		:: k <= KEYS && trims(k, j) ->
			n = k + 1;
			may_go = 0;
			do
			:: n <= h && !may_go -> may_go = justifies(n); n++
			:: else -> break
			od;
			assert(may_go || !checks(STAYS));
			printf("T=%d: key %d is trimmed\n", T, k);
			forget_record(k);
			reached("trimmed");
			k++
		:: k <= KEYS && !trims(k, j) -> k++
		:: else -> break
		od
	}
	od
}
#endif

#ifdef ROGUE
/* Something that is no worker appends one record that can't be obeyed. With VALID, it
   may be one that is valid alone, and contradicts the record below it: a grant, or a reset,
   as of a restored backup. */
proctype Rogue() {
	if
	:: atomic {
		find_head();
		if
		:: h < KEYS ->
			if
			:: led[h + 1].kind = POISON;
			   printf("T=%d: poison lands at key %d\n", T, h + 1);
			   reached("poison")
#ifdef VALID
			:: h > 0 && T < led[h].end ->
			   led[h + 1].kind = FOREIGN;
			   led[h + 1].start = T;
			   led[h + 1].end = T + 1;
			   led[h + 1].token = led[h].token + 1;
			   printf("T=%d: a valid record that no worker has written lands at key %d\n", T, h + 1);
			   reached("foreign record")
			:: h > 0 && T < led[h].end ->
			   led[h + 1].kind = REPLAY;
			   led[h + 1].start = T;
			   led[h + 1].end = T;
			   led[h + 1].token = led[h].token + 1;
			   printf("T=%d: a reset that no worker has written lands at key %d\n", T, h + 1);
			   reached("foreign reset")
#endif
			fi
		:: else
		fi
	}
	fi
}
#endif

#ifdef JUMP
/* The store's clock jumps, once. */
proctype Jump() {
	if
	:: d_step { by = JUMP; jumped_at = T }
	:: d_step { by = -JUMP; jumped_at = T }
	fi
}
#endif

/* Workers are alike, so they may as well be distinguished by their clocks. */
#if defined(MIXED) || defined(GROUP)
#define may_be_off(e)	true
#else
#define may_be_off(e)	(k == 0 || off[k - 1] <= (e))
#endif

init {
	atomic {
#ifdef AHEAD
		/* A term of before, with a token ahead of its time. */
		led[1].kind = GRANT;
		led[1].start = T - 1;
		led[1].end = T;
		led[1].token = T + AHEAD;
		last_token = T + AHEAD;
#endif
		k = 0;
		do
		:: k < N ->
			if
			:: may_be_off(-E) -> off[k] = -E
#ifndef EXTREMES
			:: E > 0 && may_be_off(0) -> off[k] = 0
#endif
			:: E > 0 -> off[k] = E
			fi;
			k++
		:: else -> break
		od;
		k = 0;
		do
		:: k < N -> run Worker(k); k++
		:: else -> break
		od;
		run Clock();
		run Network();
#ifdef TRIM
		run Trimmer();
#endif
#ifdef ROGUE
		run Rogue();
#endif
#ifdef JUMP
		run Jump();
#endif
	}
}
