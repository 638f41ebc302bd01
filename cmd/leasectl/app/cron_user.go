package app

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/user"
	"slices"
	"strconv"
	"strings"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/guard"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/jobfile"
)

// account is by whom a command runs.
type account struct {
	name string // empty: by the user of this process
	home string
	user *guard.User // nil: the rights of this process are left as they are
}

// accountOf finds a user by name, or the one of this process for none. To run anything by another user takes root, if it is
// to run.
func accountOf(name string, toRun bool) (account, error) {
	if name == "" {
		return account{home: ownHome()}, nil
	}
	u, err := user.Lookup(name)
	if _, unknown := errors.AsType[user.UnknownUserError](err); unknown {
		return account{}, fmt.Errorf("user %q: this machine has none of that name", name)
	} else if err != nil {
		return account{}, fmt.Errorf("user %q: %w", name, err)
	}
	of := account{name: u.Username, home: u.HomeDir}
	switch own := os.Geteuid(); {
	case own == 0:
		of.user, err = rights(u)
	case toRun && u.Uid != strconv.Itoa(own):
		err = fmt.Errorf("user %q: only root may run a command by another user: start leasectl as root, or leave the user out", name)
	}
	return of, err
}

// ownHome is the home of the user of this process, empty if it has none. A service of systemd has no HOME.
func ownHome() string {
	if home, err := os.UserHomeDir(); err == nil {
		return home
	}
	if u, err := user.Current(); err == nil {
		return u.HomeDir
	}
	return ""
}

// homeless is what to say of a job that begins in a home that isn't there; then it begins in /. Many users of services have such
// a home, and jobs in cron.d, which cron runs all the same.
func (of account) homeless(j jobfile.Job) (note string, is bool) {
	if j.Dir != jobfile.Home {
		return "", false
	}
	if _, err := os.Stat(of.home); !errors.Is(err, fs.ErrNotExist) {
		return "", false
	}
	return fmt.Sprintf("%s begins in /: there is no home %q", j.Name, of.home), true
}

// rights are those of a user, by numbers.
func rights(u *user.User) (*guard.User, error) {
	ids, err := u.GroupIds()
	if err != nil {
		return nil, fmt.Errorf("user %q: groups: %w", u.Username, err)
	}
	var numbers []uint32
	for _, id := range append([]string{u.Uid, u.Gid}, ids...) {
		n, err := strconv.ParseUint(id, 10, 32)
		if err != nil {
			return nil, fmt.Errorf("user %q: %q is no number of a user or a group", u.Username, id)
		}
		numbers = append(numbers, uint32(n))
	}
	return &guard.User{UID: numbers[0], GID: numbers[1], Groups: numbers[2:]}, nil
}

// dir is where the command of a job begins.
func (of account) dir(j jobfile.Job) string {
	switch _, is := of.homeless(j); {
	case is:
		return "/"
	case j.Dir == jobfile.Home:
		return of.home
	}
	return j.Dir
}

// environ is the environment of a job: what its file says over that of this process or, for a job with a user, over what
// cron gives. The environment of this process may have secrets that are none of that user's business.
func (of account) environ(own []string, j jobfile.Job) []string {
	if of.name != "" {
		own = []string{"HOME=" + of.home, "LOGNAME=" + of.name, "PATH=/usr/bin:/bin", "SHELL=/bin/sh", "USER=" + of.name}
	}
	values := map[string]string{}
	if of.home != "" {
		values["HOME"] = of.home
	}
	for _, pair := range slices.Concat(own, j.Env) {
		name, value, _ := strings.Cut(pair, "=")
		values[name] = value
	}
	var env []string
	for _, name := range slices.Sorted(maps.Keys(values)) {
		env = append(env, name+"="+values[name])
	}
	return env
}
