package s3

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/aws/smithy-go"

	"github.com/slotlease/slotlease/store/internal/documenttest"
)

func TestTheAuthoritiesOfTheBundleAreRenewedOnDisk(t *testing.T) {
	s := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(s.Close)
	documenttest.AuthorityIsRenewed(t, s.Listener.Addr().String(), func(addr, ca string) func() error {
		t.Setenv("AWS_CA_BUNDLE", ca)
		l := opened(t, Options{URI: uriOf("https://"+addr, "bucket/jobs")})
		return func() error {
			l.idle() // It may not have noticed that its connection was ended.
			req, err := http.NewRequestWithContext(within(t, patience), http.MethodPut, "https://"+addr+"/", http.NoBody)
			must(t, "NewRequest()", err)
			reply, err := l.transport.Do(req)
			if err == nil {
				err = reply.Body.Close()
			}
			return err
		}
	})
}

func TestKeysAreRenewedInTheSharedFile(t *testing.T) {
	at := filepath.Join(t.TempDir(), "credentials")
	for _, name := range []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE", "AWS_WEB_IDENTITY_TOKEN_FILE"} {
		t.Setenv(name, "")
	}
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", at)
	t.Setenv("AWS_CONFIG_FILE", at+".none")
	write := func(id string) {
		must(t, "WriteFile()", os.WriteFile(at, []byte("[default]\naws_access_key_id="+id+"\naws_secret_access_key=s3cret"+id+"\n"), 0o600))
	}
	write("first")
	l := opened(t, Options{URI: "s3://bucket/jobs?region=eu-central-1", Getenv: func(string) string { return "" }})
	given := func() string {
		keys, err := l.api.Options().Credentials.Retrieve(within(t, patience))
		must(t, "Retrieve()", err)
		return keys.AccessKeyID + " " + keys.SecretAccessKey
	}
	documenttest.Equal(t, "keys", given(), "first s3cretfirst")
	write("second")
	documenttest.Equal(t, "keys while they are accepted", given(), "first s3cretfirst")
	l.renew(&smithy.GenericAPIError{Code: "InvalidAccessKeyId"})
	documenttest.Equal(t, "keys when they aren't any more", given(), "second s3cretsecond")
	must(t, "Remove()", os.Remove(at))
	l.renew(&smithy.GenericAPIError{Code: "InvalidAccessKeyId"})
	if got := given(); got == "" {
		t.Error("there are no keys without the file, want those of before")
	}
}
