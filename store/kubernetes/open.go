package kubernetes

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"strings"

	"github.com/benbjohnson/clock"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/transport"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/storekit"
)

func init() {
	store.Register("k8s", store.Driver{
		Open: func(ctx context.Context, uri string, o store.OpenOptions) (store.Ledger, error) {
			l, err := open(ctx, Options{URI: uri, Clock: o.Clock}, cmp.Or(o.AppName, "slotlease"))
			if err != nil {
				return nil, err
			}
			return l, nil
		},
		Redact: Redact,
		Form:   "k8s:NAMESPACE?context=NAME",
		Checks: []store.Check{
			{Name: CheckOrder, Asks: "are lists in the order of names?"},
			{Name: CheckQuota, Asks: "does a quota of the namespace keep records out?"},
		},
	})
}

// Open checks the options, reads the kubeconfig or the pod's service account, and makes a ledger. It waits for no
// connection: a cluster that can't be reached shows in the operations, and they work once it can.
func Open(ctx context.Context, o Options) (*Ledger, error) { return open(ctx, o, "slotlease") }

func open(_ context.Context, o Options, app string) (*Ledger, error) {
	c := &cluster{clock: o.Clock}
	c.life, c.end = context.WithCancel(context.Background())
	if c.clock == nil {
		c.clock = clock.New()
	}
	a, errs := parseURI(o.URI)
	bad := func(err error) { errs = append(errs, err) }
	skew, err := storekit.ServerSkew(o.ServerSkew, a.skew, DefaultServerSkew)
	if one := o.OneServer || a.oneServer; !one {
		c.skew = skew
	} else if err == nil && (o.ServerSkew != 0 || a.skew != 0) {
		err = errors.New("options: one server has one clock: give either OneServer or ServerSkew")
	}
	bad(err)
	if o.Config != nil && (a.kubeconfig != "" || a.context != "") {
		bad(errors.New("options: Config in Options, and kubeconfig or context in the URI: give one"))
	}
	if o.Config != nil && o.Config.Transport != nil {
		bad(errors.New("options: the Transport of Config can't be used, whose connections the ledger couldn't end: set WrapTransport, Dial, Proxy or TLSClientConfig"))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("kubernetes: open: %w", err)
	}
	config, namespace, err := a.config(o.Config)
	if err == nil {
		c.namespace = namespace
		err = c.connect(rest.CopyConfig(config), app)
	}
	if err != nil {
		return nil, fmt.Errorf("kubernetes: open: %s", storekit.OneLine(c.secrets.Scrub(err.Error())))
	}
	fitness := storekit.NewFitness(c.clock, c.check)
	c.runner = storekit.NewRunner(storekit.RunnerOptions{Store: "kubernetes", Secrets: c.secrets, Meaning: meaning, Fitness: fitness})
	return &Ledger{
		storekit.OnObjects(storekit.ObjectsOptions{Objects: c, Runner: c.runner, Create: c.createNamespace, Fitness: fitness}),
		c, &storekit.Checks{Rows: c.rows(), Runner: c.runner, Clock: c.clock},
	}, nil
}

// config finds out how to reach the cluster, and the namespace.
func (a address) config(given *rest.Config) (config *rest.Config, namespace string, err error) {
	if given != nil {
		if a.namespace == "" {
			return nil, "", errors.New("uri: with Config it must name a namespace")
		}
		return given, a.namespace, nil
	}
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = a.kubeconfig
	loaded := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: a.context})
	if config, err = loaded.ClientConfig(); err != nil {
		return nil, "", err
	}
	if namespace = a.namespace; namespace == "" {
		namespace, _, err = loaded.Namespace()
	}
	return config, namespace, err
}

// connect makes the HTTP client of a configuration: with its credentials and TLS, and with connections of its own, which
// notice within seconds that a server is gone.
func (c *cluster) connect(config *rest.Config, app string) error {
	c.secrets.Hide(config.BearerToken)
	c.secrets.Hide(config.Password)
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return err
	}
	c.base, c.host = strings.TrimSuffix(base.String(), "/"), base.Host
	c.secrets.Publish(base.Host, c.namespace)
	config.UserAgent = cmp.Or(config.UserAgent, app)
	settings, err := config.TransportConfig()
	if err != nil {
		return err
	}
	// Only files are read again: another context of the kubeconfig would be another cluster.
	given := rest.CopyConfig(config)
	files, err := storekit.NewRenewed(func() (*tls.Config, error) { return secure(rest.CopyConfig(given)) }, config.CAFile, config.CertFile, config.KeyFile)
	if err != nil {
		return err
	}
	c.verified = !files.Now().InsecureSkipVerify
	c.own = storekit.NewTransport(nil)
	storekit.RenewTLS(c.own, files, c.clock)
	if config.Proxy != nil {
		c.own.Proxy = config.Proxy
	}
	if config.Dial != nil {
		c.own.DialContext = config.Dial
	}
	c.own.DialContext = storekit.DialUntil(c.life, c.own.DialContext)
	through, err := transport.HTTPWrappersForConfig(settings, c.own)
	if err != nil {
		return err
	}
	c.web = storekit.Direct(through)
	return nil
}

// secure reads the files that a configuration names for the encryption of connections.
func secure(config *rest.Config) (*tls.Config, error) {
	if len(config.CAData) == 0 {
		if err := storekit.CheckAuthorities(config.CAFile); err != nil {
			return nil, fmt.Errorf("certificate-authority: %w", err)
		}
	}
	settings, err := config.TransportConfig()
	if err != nil {
		return nil, err
	}
	read, err := transport.TLSConfigFor(settings)
	switch {
	case err != nil:
		return nil, err
	case read == nil:
		return &tls.Config{MinVersion: tls.VersionTLS12}, nil
	case settings.TLS.ReloadTLSFiles: // Else they would be read in the middle of a handshake, which fails if they aren't whole.
		pair, err := read.GetClientCertificate(nil)
		if err != nil {
			return nil, err
		}
		read.Certificates, read.GetClientCertificate = []tls.Certificate{*pair}, nil
	}
	return read, nil
}
