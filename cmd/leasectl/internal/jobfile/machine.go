package jobfile

import (
	"errors"
	"io/fs"
	"os"
	"os/user"
	"strings"
	"time"
)

// machine is what a crontab leaves to the machine.
type machine struct {
	isUser func(name string) bool
	zone   func() (string, error) // the name of the time zone
}

var here = machine{
	isUser: func(name string) bool {
		_, err := user.Lookup(name)
		return err == nil
	},
	zone: Zone,
}

// Zone is the name of the time zone of this machine, by which cron goes.
func Zone() (string, error) { return zoneBy(os.Getenv("TZ"), "/etc/localtime", "/etc/timezone") }

// zoneBy is the name of the time zone by the environment, or by one of two files: a link into the tz database, and a name.
func zoneBy(tz, link, named string) (string, error) {
	name := strings.TrimPrefix(tz, ":")
	if name == "" {
		target, err := os.Readlink(link)
		if errors.Is(err, fs.ErrNotExist) {
			return "UTC", nil
		}
		_, name, _ = strings.Cut(target, "zoneinfo/")
	}
	if name == "" {
		text, _ := os.ReadFile(named) // Without it there is no name.
		name = strings.TrimSpace(string(text))
	}
	if _, err := time.LoadLocation(name); name == "" || err != nil {
		return "", errors.New("the time zone of this machine has no name that others know")
	}
	if name == "Etc/UTC" {
		name = "UTC"
	}
	return name, nil
}
