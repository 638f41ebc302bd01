package azblob

import (
	"bytes"
	"context"
	"crypto/md5" //nolint:gosec // The service compares it; it protects from no attacker.
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/benbjohnson/clock"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/storekit"
)

// listPage is how many names one list has at most.
const listPage = 5000

// Ledger keeps ledgers in a container. It is safe for concurrent use.
type Ledger struct {
	*storekit.ObjectLedger

	address   address
	skew      time.Duration
	readOnly  bool
	clock     clock.Clock
	secrets   storekit.Secrets
	transport Transport
	idle      func() // Closes connections; nil if they are the caller's.

	dating  *storekit.Dating
	api     *container.Client
	runner  *storekit.Runner
	fitness *storekit.Fitness
	// proved says that the service keeps two blobs from having one name.
	proved atomic.Bool
	// warning is what the newest check found that somebody should see to.
	warning atomic.Pointer[string]
}

var (
	_ store.Ledger = (*Ledger)(nil)
	_ store.Pager  = (*Ledger)(nil)
	_ store.Roster = (*Ledger)(nil)
)

// String names the account, the container and the folder.
func (l *Ledger) String() string {
	return scheme + l.address.account + "/" + l.address.container + "/" + l.address.folder
}

// connect makes the client, and the ledger over it.
func (l *Ledger) connect(o login, app string) (err error) {
	l.dating = storekit.NewDating(l.clock)
	l.api, err = o.client(l, &container.ClientOptions{ClientOptions: policy.ClientOptions{
		Transport: wire{l, o.sas},
		// The engine knows the deadline, and decides whether to try again.
		Retry:           policy.RetryOptions{MaxRetries: -1},
		Telemetry:       policy.TelemetryOptions{ApplicationID: app[:min(len(app), 24)]},
		PerCallPolicies: []policy.Policy{dated{l}},
	}})
	if err != nil {
		return err
	}
	l.fitness = storekit.NewFitness(l.clock, l.check)
	l.runner = storekit.NewRunner(storekit.RunnerOptions{Store: "azblob", Secrets: l.secrets, Meaning: l.meaning, Fitness: l.fitness})
	l.ObjectLedger = storekit.OnObjects(storekit.ObjectsOptions{
		Objects: objects{l}, Runner: l.runner, Folder: l.address.folder, Create: l.create, Fitness: l.fitness,
	})
	return nil
}

// create creates the container unless it exists.
func (l *Ledger) create(ctx context.Context) error {
	if l.readOnly {
		return nil
	}
	err := l.look(ctx)
	if err == nil || !errors.Is(l.meaning(err).Is, store.ErrMissing) {
		return err
	}
	_, err = ask(l, func() (container.CreateResponse, error) { return l.api.Create(ctx, nil) })
	if codeOf(err) == "ContainerAlreadyExists" {
		err = nil // Another worker was first.
	}
	return err
}

// look asks for the properties of a blob that is no record, which needs no more than the right to read. It is no error
// if there is none: then there is a container.
func (l *Ledger) look(ctx context.Context) error {
	_, err := ask(l, func() (blob.GetPropertiesResponse, error) {
		return l.api.NewBlobClient(l.address.folder+probeName).GetProperties(ctx, nil)
	})
	if codeOf(err) == "BlobNotFound" {
		return nil
	}
	return err
}

// objects are the blobs of the container.
type objects struct{ *Ledger }

var (
	_ storekit.Objects = objects{}
	_ storekit.Folders = objects{}
)

// put stores a block blob by one request.
func (o objects) put(ctx context.Context, name string, body []byte, condition *azcore.ETag) error {
	sum := md5.Sum(body) //nolint:gosec // see above
	_, err := ask(o.Ledger, func() (blockblob.UploadResponse, error) {
		return o.api.NewBlockBlobClient(name).Upload(ctx, streaming.NopCloser(bytes.NewReader(body)), &blockblob.UploadOptions{
			AccessConditions:        &blob.AccessConditions{ModifiedAccessConditions: &blob.ModifiedAccessConditions{IfNoneMatch: condition}},
			HTTPHeaders:             &blob.HTTPHeaders{BlobContentType: to.Ptr("application/json")},
			TransactionalValidation: blob.TransferValidationTypeMD5(sum[:]),
		})
	})
	return err
}

// Create puts a blob with If-None-Match.
func (o objects) Create(ctx context.Context, name string, body []byte) error {
	return o.put(ctx, name, body, to.Ptr(azcore.ETagAny))
}

func (o objects) Replace(ctx context.Context, name string, body []byte) error {
	return o.put(ctx, name, body, nil)
}

func (o objects) Read(ctx context.Context, name string) ([]byte, error) {
	out, err := ask(o.Ledger, func() (blob.DownloadStreamResponse, error) {
		return o.api.NewBlobClient(name).DownloadStream(ctx, nil)
	})
	if codeOf(err) == "BlobNotFound" {
		return nil, absent{err}
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = out.Body.Close() }()
	return io.ReadAll(io.LimitReader(out.Body, storekit.MaxDocument+1))
}

// errForeign is the error of a list that doesn't name its container: perhaps a portal or a proxy has answered in the
// service's place. Nothing is known by it.
var errForeign = errors.New("the reply is none of the service: is that its endpoint, and no proxy before it?")

// List lists from the first name with the prefix, and passes over those that don't come after one: the service can't
// begin a list at a name.
func (o objects) List(ctx context.Context, prefix, after string, hint int, visit func(storekit.Object) bool) error {
	in := &container.ListBlobsFlatOptions{Prefix: &prefix}
	if hint > 0 && hint < listPage && after == "" {
		in.MaxResults = to.Ptr(int32(hint))
	}
	last := ""
	for pager := o.api.NewListBlobsFlatPager(in); pager.More(); {
		page, err := ask(o.Ledger, func() (container.ListBlobsFlatResponse, error) { return pager.NextPage(ctx) })
		if err != nil {
			return err
		}
		if page.ContainerName == nil || *page.ContainerName == "" {
			return errForeign
		}
		if page.Segment == nil {
			continue
		}
		for _, item := range page.Segment.BlobItems {
			if item == nil || item.Name == nil || item.Properties != nil && item.Properties.ResourceType != nil && *item.Properties.ResourceType == "directory" {
				continue
			}
			name := *item.Name
			rest, ok := strings.CutPrefix(name, prefix)
			// With a hierarchical namespace, names are in order within a folder only.
			if !ok || !strings.Contains(rest, "/") && !strings.Contains(strings.TrimPrefix(last, prefix), "/") && name <= last {
				return fmt.Errorf("the service lists %.120q after %.120q: not in the order of names, or not what was asked for", name, last)
			}
			if last = name; name > after && !visit(storekit.Object{Name: name}) {
				return nil
			}
		}
	}
	return nil
}

// Folders lists what a delimiter makes of names.
func (o objects) Folders(ctx context.Context, prefix string) (names []string, err error) {
	for pager := o.api.NewListBlobsHierarchyPager("/", &container.ListBlobsHierarchyOptions{Prefix: &prefix}); pager.More(); {
		page, err := ask(o.Ledger, func() (container.ListBlobsHierarchyResponse, error) { return pager.NextPage(ctx) })
		if err != nil {
			return nil, err
		}
		if page.ContainerName == nil || *page.ContainerName == "" {
			return nil, errForeign
		}
		if page.Segment == nil {
			continue
		}
		for _, p := range page.Segment.BlobPrefixes {
			if p != nil && p.Name != nil {
				names = append(names, strings.TrimSuffix(strings.TrimPrefix(*p.Name, prefix), "/"))
			}
		}
	}
	return names, nil
}

func (o objects) Delete(ctx context.Context, name string) (bool, error) {
	_, err := ask(o.Ledger, func() (blob.DeleteResponse, error) { return o.api.NewBlobClient(name).Delete(ctx, nil) })
	if codeOf(err) == "BlobNotFound" {
		return false, nil
	}
	return err == nil, err
}

// Now looks for a blob, whether it is there or not.
func (o objects) Now(ctx context.Context) (store.Stamp, error) {
	ctx, stamp := storekit.Noting(ctx)
	err := o.look(ctx)
	return stamp(), err
}

func (o objects) Close() error {
	if o.idle != nil {
		o.idle()
	}
	return nil
}
