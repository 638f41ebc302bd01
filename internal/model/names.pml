/* The claims that a worker remembers and forgets. */

/* Two claims never have the same id. A worker remembers at most five of its claims,
   so between steps their ids identify them, and those of all others are 0. */
#define IDS	6
#define id(which)	(i * IDS + (which))
#define NEW	1
#define CLAIM	2
#define NEXT	3
#define HELD	4
#define GIVEN_UP 5
#define LEFT	6	/* the term that the append is to extend, but which was left since */

/* A window that was won may be released although its work is done. */
#if defined(ONCE) && defined(RELEASES)
#define frees_finished(i)	(!over_in(i, 1, me.held.end))
#else
#define frees_finished(i)	false
#endif

/* Dead data is zero, so that equal states look the same. */
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
	:: !me.works && !keeps_left(i) && !frees_finished(i) ->
		me.held.end = 0;
		me.held.claim = 0;
#ifdef EXTENDS
		me.held.token = 0;
		me.held.key = 0;
#ifdef AGE
		me.held.known = 0;
#endif
#endif
#ifdef ONCE
		me.held.slot = 0;
#endif
	:: else
	fi;
#ifdef EXTENDS
	if
	:: me.next.end == 0 ->
		me.next.key = 0;
#ifdef AGE
		me.next.known = 0
#endif
	:: else
	fi;
#ifdef AGE
	/* It is all the same by how much that is too long ago. */
	if
	:: me.held.known > 0 && T > me.held.known + AGE -> me.held.known = 0
	:: else
	fi;
	if
	:: me.next.known > 0 && T > me.next.known + AGE -> me.next.known = 0
	:: else
	fi;
#endif
#endif
#ifdef ONCE
	if
	:: me.next.end == 0 -> me.next.slot = 0
	:: else
	fi;
#endif
#ifndef RELEASES
	/* Its owner is never compared. */
	me.given_up = 0;
#ifndef EXTENDS
	me.next.claim = 0;
	me.held.claim = 0;
#endif
#endif
	x = 1;
	do
	:: x <= KEYS -> rename(led[x]); x++
	:: else -> break
	od;
#ifdef ONCE
	/* A done record has the head's claim. */
	y = 0;
	do
	:: y < N ->
		if :: y != i -> rename(w[y].sent) :: else fi;
#ifdef ZOMBIE
		if :: y != i -> rename(w[y].zombie) :: else fi;
#endif
		y++
	:: else -> break
	od;
#endif
#ifdef ZOMBIE
	rename(me.zombie);
	if
	:: !me.zombie.out -> clear(me.zombie)
	:: else
	fi;
#endif
	rename(me.sent);
	if
	:: !me.sent.out && me.stage != SENT -> clear(me.sent)
	:: else
	fi;
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
		:: else ->
			if
			:: m.claim == me.next.claim -> m.claim = id(NEXT)
			:: else ->
				if
				:: m.claim == me.held.claim -> m.claim = id(HELD)
				:: else ->
					if
					:: m.claim == me.given_up -> m.claim = id(GIVEN_UP)
					:: m.claim != me.given_up && m.claim == me.sent.claim && me.stage == SENT -> m.claim = id(LEFT)
					:: else -> m.claim = 0
					fi
				fi
			fi
		fi
	:: else
	fi
}
