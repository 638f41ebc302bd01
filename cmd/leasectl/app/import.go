package app

import (
	"github.com/spf13/cobra"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/convert"
)

func (a *app) importCommand() *cobra.Command {
	return a.group("import", "Write jobs.yaml from what other schedulers read",
		a.importing("crontab", "Write jobs.yaml from crontabs", convert.Crontabs),
		a.importing("cronjob", "Write jobs.yaml from CronJobs of Kubernetes", convert.CronJobs),
		a.importing("systemd-timer", "Write jobs.yaml from timers of systemd", convert.Timers),
	)
}

// importing is the command that converts one kind of file.
func (a *app) importing(name, short string, converted func(files ...string) ([]byte, error)) *cobra.Command {
	return &cobra.Command{
		Use:   name + " FILE…",
		Short: short,
		Args:  cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, files []string) error {
			if len(files) == 0 {
				a.bad("no file: name those to read")
				return a.usage(c)
			}
			text, err := converted(files...)
			if all, ok := err.(interface{ Unwrap() []error }); ok {
				a.problems = all.Unwrap()
			} else if err != nil {
				a.bad("%w", err)
			}
			a.printf("%s", text)
			return a.usage(c)
		},
		ValidArgsFunction: completeFiles,
	}
}
