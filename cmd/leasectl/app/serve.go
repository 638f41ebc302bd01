package app

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/listen"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/page"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/secret"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/storeuri"
	"github.com/slotlease/slotlease/workerlease"
)

func (a *app) serveCommand() *cobra.Command {
	address, tokenFile, timeout, access := "127.0.0.1:8086", "", defaultTimeout, page.Access{}
	c := a.onStore("serve [--listen ADDRESS] [--allow-actions]", "Serve a page that shows all worker types, and why", func(c *cobra.Command, t storeuri.Target) error {
		p := page.New(page.Options{
			Target: t, Timeout: timeout, Access: access, Operator: operator(), Version: workerlease.Version(), Scrub: a.scrub,
		})
		defer p.Close()
		if _, err := p.Open(c.Context(), ""); err != nil {
			return err
		}
		return p.Serve(c.Context(), address, func(at net.Addr) {
			a.printf("serving http://%s/, until Ctrl-C\n", at)
		})
	})
	flags := c.Flags()
	option(a, flags, &address, "listen", "ADDRESS", "where: HOST:PORT; a PORT alone is one of 127.0.0.1 (default 127.0.0.1:8086)", listen.Address)
	flags.BoolVar(&access.Actions, "allow-actions", false, "let the page pause, resume, prefer, release, drain and trigger")
	option(a, flags, &tokenFile, "token-file", "FILE", "the file of the token that the page asks for, of 16 characters or more", nonEmpty)
	option(a, flags, &access.UserHeader, "trust-header", "NAME", "the header in which a proxy names the user, who stands as the author of orders", headerName)
	option(a, flags, &access.Hosts, "host", "NAME", "a name under which browsers reach the page, such as a proxy's; it may be given more than once", func(text string) ([]string, error) {
		name, err := hostName(text)
		return append(access.Hosts, name), err
	})
	a.timeoutFlag(flags, &timeout, "how long each look waits for the store", time.Hour)
	c.PreRun = func(c *cobra.Command, _ []string) {
		a.checkAccess(c, address, "token-file", tokenFile, &access, ", or --trust-header behind a proxy")
	}
	return c
}

// checkPage does so for the page beside workers.
func (a *app) checkPage(c *cobra.Command, f *runFlags) {
	switch {
	case !f.page:
		a.goesOnlyWith(c.Flags(), "page", "page-token-file")
	case f.listen == "":
		a.bad("--page: goes with --listen only, where it is served")
	default:
		a.checkAccess(c, f.listen, "page-token-file", f.pageToken, &f.pageAccess, ", too")
	}
}

// leastToken is how many characters a token has at least.
const leastToken = 16

// checkAccess reads the token of a page, if an option names its file, and makes the host of its address one of its names. An
// address that others reach needs a token: the error names the option, and the alternative to it.
func (a *app) checkAccess(c *cobra.Command, address, option, file string, access *page.Access, alternative string) {
	if file != "" {
		token, err := secret.ReadFile(c.Context(), file, "the token")
		if err == nil && len(token) < leastToken {
			err = fmt.Errorf("must have %d characters or more", leastToken)
		}
		if err != nil {
			a.bad("--%s %q: %w", option, file, err)
			return
		}
		a.secrets.Hide(token)
		access.Token = token
	}
	host, _, _ := net.SplitHostPort(address)
	ip := net.ParseIP(host)
	if ip == nil || !ip.IsUnspecified() {
		access.Hosts = append(access.Hosts, host)
	}
	if loopback := host == "localhost" || ip != nil && ip.IsLoopback(); !loopback && file == "" && access.UserHeader == "" {
		a.bad("--listen %q: others reach it, so give --%s%s", address, option, alternative)
	}
}

// headerName reads the name of a header.
func headerName(s string) (string, error) {
	if s == "" || strings.Trim(strings.ToLower(s), "abcdefghijklmnopqrstuvwxyz0123456789-") != "" {
		return "", errors.New("must be the name of a header, such as X-Forwarded-User")
	}
	return s, nil
}

// hostName reads the name of a host, without a port.
func hostName(s string) (string, error) {
	if s == "" || strings.ContainsAny(s, "/ ,") || strings.Contains(s, ":") && net.ParseIP(s) == nil {
		return "", errors.New("must be a name or an address without a port, such as jobs.example.com")
	}
	return s, nil
}
