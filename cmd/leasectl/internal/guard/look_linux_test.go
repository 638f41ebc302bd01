package guard

import (
	"slices"
	"syscall"
	"testing"
	"time"
)

func TestASearchIsOverOnlyWithProofOrKnownSurvivors(t *testing.T) {
	const noon = 12 * time.Hour
	for name, test := range map[string]struct {
		look look
		over bool // in the end
		want survivors
	}{
		"nothing is found":                    {look{}, true, survivors{}},
		"one is killed, and not yet gone":     {look{found: 1, alive: 1}, false, survivors{}},
		"one is dead, and not reaped":         {look{found: 1}, false, survivors{}},
		"one can't be killed, another goes":   {look{found: 2, alive: 2, refused: []int{7}}, false, survivors{}},
		"none that is left can be killed":     {look{found: 3, alive: 2, refused: []int{9, 7}}, true, survivors{PIDs: []int{7, 9}}},
		"one was refused twice":               {look{found: 2, alive: 2, refused: []int{7, 7}}, true, survivors{PIDs: []int{7}}},
		"something isn't seen":                {look{unseen: true}, true, survivors{Unseen: true}},
		"something isn't seen, one goes":      {look{unseen: true, found: 1, alive: 1}, false, survivors{}},
		"something isn't seen, one stays":     {look{unseen: true, found: 1, alive: 1, refused: []int{7}}, true, survivors{PIDs: []int{7}, Unseen: true}},
		"something isn't seen, one is a dead": {look{unseen: true, found: 1}, true, survivors{Unseen: true}},
	} {
		t.Run(name, func(t *testing.T) {
			var s search
			got, over := s.over(test.look, noon)
			if proof := test.look.found == 0 && !test.look.unseen; over != proof {
				t.Errorf("over(%+v) = %v at once, want %v", test.look, over, proof)
			}
			if got, _ := s.over(test.look, noon+refusedFor); got.error() != nil {
				t.Errorf("over(%+v) = %+v after %v, want no survivors yet", test.look, got, refusedFor)
			}
			if got, over = s.over(test.look, noon+refusedFor+1); over != test.over || !slices.Equal(got.PIDs, test.want.PIDs) || got.Unseen != test.want.Unseen {
				t.Errorf("over(%+v) = %+v, %v in the end, want %+v, %v", test.look, got, over, test.want, test.over)
			}
			// One that goes after all starts the time anew.
			s.over(look{found: 1, alive: 1}, noon+refusedFor+2)
			if got, over := s.over(test.look, noon+refusedFor+3); over && got.error() != nil {
				t.Errorf("over(%+v) = %+v at once after something was alive, want that it goes on", test.look, got)
			}
		})
	}
}

// What can't be killed may start what can be killed again and again.
func TestASearchIsBounded(t *testing.T) {
	const begin, often = 12 * time.Hour, 5 * time.Millisecond
	supervised := func(n int) look { // with a child now and then
		if n%60 == 0 {
			return look{found: 2, alive: 2, refused: []int{7}}
		}
		return look{found: 1, alive: 1, refused: []int{7}}
	}
	for name, test := range map[string]struct {
		look func(n int) look
		want time.Duration // when it is over; 0: never
	}{
		"a supervisor restarts its child": {supervised, refusedFor},
		"a supervisor that goes at last": {func(n int) look {
			if n == 200 {
				return look{}
			}
			return supervised(n)
		}, time.Second},
		"the supervisor's number changes": {func(n int) look {
			l := supervised(n)
			l.refused[0] += n / 60
			return l
		}, lookFor},
		"the supervisor isn't always found": {func(n int) look {
			if n%60 == 0 {
				return look{found: 1, alive: 1}
			}
			return supervised(n)
		}, lookFor},
		"the child is always there": {func(int) look { return look{found: 2, alive: 2, refused: []int{7}} }, lookFor},
		"the supervisor isn't seen": {func(n int) look {
			l := supervised(n)
			l.unseen, l.refused = true, nil
			l.alive--
			return l
		}, lookFor},
		"a supervisor goes, and one that is killed stays": {func(n int) look {
			if n < 60 {
				return supervised(n)
			}
			return look{found: 1, alive: 1}
		}, 0},
		"another comes long after that": {func(n int) look {
			if n < 60 || n > 4000 {
				return supervised(n)
			}
			return look{found: 1, alive: 1}
		}, 4000*often + refusedFor},
		"a dead one stays":           {func(int) look { return look{found: 1, dead: []int{7}} }, deadFor},
		"dead ones come and go":      {func(n int) look { return look{found: 1, dead: []int{n / 60}} }, 0},
		"another child dies later":   {func(n int) look { return look{found: 1 + min(n/60, 1), dead: []int{7, 8}[:1+min(n/60, 1)]} }, 60*often + deadFor},
		"a dead one and one alive":   {func(int) look { return look{found: 2, alive: 1, dead: []int{7}} }, 0},
		"a dead one and one unseen":  {func(int) look { return look{found: 1, dead: []int{7}, unseen: true} }, refusedFor},
		"a dead one and one refused": {func(int) look { return look{found: 2, alive: 1, dead: []int{7}, refused: []int{8}} }, refusedFor},
	} {
		t.Run(name, func(t *testing.T) {
			var s search
			for n := range 8000 {
				at := time.Duration(n) * often
				left, over := s.over(test.look(n), begin+at)
				if !over {
					continue
				}
				if test.want == 0 || at < test.want || at > test.want+100*often {
					t.Errorf("over after %v, want after %v", at, test.want)
				}
				last := test.look(n)
				if survives := last.unseen || len(last.refused) > 0; (left.error() != nil) != survives {
					t.Errorf("over(%+v) = %+v, want survivors: %v", last, left, survives)
				}
				return
			}
			if test.want != 0 {
				t.Errorf("not over after %v, want after %v", 8000*often, test.want)
			}
		})
	}
}

func TestALookCountsWhatRuns(t *testing.T) {
	var l look
	l.add(process{pid: 1, state: 'Z', threads: 1}, nil)
	l.add(process{pid: 2, state: 'Z', threads: 1}, syscall.EPERM)
	l.add(process{pid: 3, state: 'Z', threads: 2}, syscall.EPERM)
	l.add(process{pid: 4, state: 'D', threads: 1}, nil)
	l.add(process{pid: 5, state: '?', hidden: true}, syscall.EPERM)
	if want := []int{1, 2}; !slices.Equal(l.dead, want) {
		t.Errorf("dead = %v, want %v", l.dead, want)
	}
	if want := []int{3, 5}; l.found != 5 || l.alive != 3 || !slices.Equal(l.refused, want) || l.unseen {
		t.Errorf("look = %+v, want 5 found, 3 alive, %v refused", l, want)
	}
}

func TestTheDirectoryOfACgroupIsWhereAMountShowsIt(t *testing.T) {
	const hybrid = "30 27 0:26 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
	const part = "31 27 0:26 /docker/x /sys/fs/cgroup rw - cgroup2 cgroup rw\n"
	for _, c := range []struct{ of, mounts, want string }{
		{"1:cpu:/x\n0::/\n", hybrid, "/sys/fs/cgroup/unified"},
		{"0::/system.slice/a.service\n", "29 1 0:2 / / rw - ext4 /dev/a rw\n" + hybrid, "/sys/fs/cgroup/unified/system.slice/a.service"},
		{"0::/docker/x/y\n", part, "/sys/fs/cgroup/y"},
		{"0::/docker/x\n", part, "/sys/fs/cgroup"},
		{"0::/docker/xy\n", part, ""},
		{"0::/other\n", part + hybrid, "/sys/fs/cgroup/unified/other"},
		{"0::/a\n", `30 27 0:26 / /my\040groups rw - cgroup2 cgroup2 rw`, "/my groups/a"},
		{"0::/../a\n", hybrid, ""},
		{"0::/a (deleted)\n", hybrid, ""},
		{"1:cpu:/x\n", hybrid, ""},
		{"0::/a\n", "30 27 0:26 / /sys/fs/cgroup rw - cgroup cgroup rw\n", ""},
		{"", "", ""},
	} {
		if got, ok := cgroupDir(c.of, c.mounts); got != c.want || ok != (c.want != "") {
			t.Errorf("cgroupDir(%q, %q) = %q, %v, want %q", c.of, c.mounts, got, ok, c.want)
		}
	}
}

func TestMountsShowWhetherProcHidesProcesses(t *testing.T) {
	for mounts, want := range map[string]bool{
		"proc /proc proc rw,relatime 0 0\n":                                                          false,
		"proc /proc proc rw,hidepid=invisible 0 0\n":                                                 true,
		"proc /proc proc rw,gid=5,hidepid=2 0 0\n":                                                   true,
		"proc /proc proc rw,hidepid=off 0 0\n":                                                       false,
		"proc /other proc rw,hidepid=2 0 0\n":                                                        false,
		"proc /proc proc rw,hidepid=2 0 0\nproc /proc proc rw 0 0\n":                                 false,
		"proc /proc proc rw 0 0\nsysfs /sys sysfs rw 0 0\nproc /proc proc rw,hidepid=ptraceable 0 0": true,
	} {
		if got := hidesProcesses(mounts); got != want {
			t.Errorf("hidesProcesses(%q) = %v, want %v", mounts, got, want)
		}
	}
}
