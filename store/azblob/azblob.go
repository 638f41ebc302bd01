package azblob

import (
	"bytes"
	"cmp"
	"context"
	"crypto/md5" //nolint:gosec // The service compares it; it protects from no attacker.
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/storekit"
)

// listPage is how many names one list has at most.
const listPage = 5000

// Ledger keeps ledgers in a container. It is safe for concurrent use.
type Ledger struct {
	*storekit.Bucket

	address   address
	secrets   storekit.Secrets
	transport Transport
	idle      func() // Closes connections; nil if they are the caller's.

	api *container.Client
	// lent: the client is the application's.
	lent bool
}

var (
	_ store.Ledger = (*Ledger)(nil)
	_ store.Pager  = (*Ledger)(nil)
	_ store.Roster = (*Ledger)(nil)
)

// connect makes the client, and the ledger over it.
func (l *Ledger) connect(o Options, in login) (err error) {
	if l.api, l.lent = o.Client, o.Client != nil; !l.lent {
		app := cmp.Or(o.AppName, "slotlease")
		l.api, err = in.client(l, container.ClientOptions{ClientOptions: policy.ClientOptions{
			Transport: wire{l, in.sas},
			// The engine knows the deadline, and decides whether to try again.
			Retry:     policy.RetryOptions{MaxRetries: -1},
			Telemetry: policy.TelemetryOptions{ApplicationID: app[:min(len(app), 24)]},
		}})
	}
	if err != nil {
		return err
	}
	a := l.address
	l.Bucket = storekit.OnBucket(storekit.BucketOptions{
		Store: "azblob", URI: scheme + a.account + "/" + a.container + "/" + a.folder, Service: "the account " + a.account, Kind: "container", Name: a.container,
		Folder: a.folder, Endpoint: a.service, Skew: a.skew, ReadOnly: o.ReadOnly, Secrets: l.secrets, Clock: o.Clock,
		Objects: objects{l}, Head: l.look, Make: l.create, Meaning: l.meaning, Reply: replyOf, SentHeader: headerDate, SentForm: http.TimeFormat,
		Rows: l.rows(), Grant: grant, Heeds: "use Azure itself", Durability: durability, Script: l.script(),
	})
	return nil
}

// create creates the container.
func (l *Ledger) create(ctx context.Context) error {
	_, err := ask(ctx, l, func(ctx context.Context) (container.CreateResponse, error) { return l.api.Create(ctx, nil) })
	if codeOf(err) == "ContainerAlreadyExists" {
		err = nil // Another worker was first.
	}
	return err
}

// look asks for the properties of a blob that is no record, which needs no more than the right to read. It is no error
// if there is none: then there is a container.
func (l *Ledger) look(ctx context.Context) error {
	_, err := ask(ctx, l, func(ctx context.Context) (blob.GetPropertiesResponse, error) {
		return l.api.NewBlobClient(l.address.folder+"ledger/-none").GetProperties(ctx, nil)
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
	_, err := ask(ctx, o.Ledger, func(ctx context.Context) (blockblob.UploadResponse, error) {
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
	out, err := ask(ctx, o.Ledger, func(ctx context.Context) (blob.DownloadStreamResponse, error) {
		return o.api.NewBlobClient(name).DownloadStream(ctx, nil)
	})
	if codeOf(err) == "BlobNotFound" {
		return nil, store.ErrNotFound
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = out.Body.Close() }()
	return io.ReadAll(io.LimitReader(out.Body, storekit.MaxDocument+1))
}

// List lists from the first name with the prefix, and passes over those that don't come after one: the service can't
// begin a list at a name.
func (o objects) List(ctx context.Context, prefix, after string, hint int, visit func(storekit.Object) bool) error {
	in := &container.ListBlobsFlatOptions{Prefix: &prefix}
	if hint > 0 && hint < listPage && after == "" {
		in.MaxResults = to.Ptr(int32(hint))
	}
	last := ""
	for pager := o.api.NewListBlobsFlatPager(in); pager.More(); {
		page, err := ask(ctx, o.Ledger, func(ctx context.Context) (container.ListBlobsFlatResponse, error) { return pager.NextPage(ctx) })
		if err != nil {
			return err
		}
		if page.ContainerName == nil || *page.ContainerName == "" {
			return storekit.ErrForeign
		}
		if page.Segment == nil {
			continue
		}
		for _, item := range page.Segment.BlobItems {
			object, isBlob := objectOf(item)
			if !isBlob {
				continue
			}
			name := object.Name
			rest, ok := strings.CutPrefix(name, prefix)
			// With a hierarchical namespace, names are in order within a folder only.
			if !ok || !strings.Contains(rest, "/") && !strings.Contains(strings.TrimPrefix(last, prefix), "/") && name <= last {
				return fmt.Errorf("the service lists %.120q after %.120q: not in the order of names, or not what was asked for", name, last)
			}
			if last = name; name > after && !visit(object) {
				return nil
			}
		}
	}
	return nil
}

// objectOf is an item of a list; false if it is a directory, or has no name.
func objectOf(item *container.BlobItem) (storekit.Object, bool) {
	if item == nil || item.Name == nil {
		return storekit.Object{}, false
	}
	object := storekit.Object{Name: *item.Name}
	if p := item.Properties; p != nil {
		if p.ResourceType != nil && *p.ResourceType == "directory" {
			return storekit.Object{}, false
		}
		if p.ContentLength != nil {
			object.Size = *p.ContentLength
		}
	}
	return object, true
}

// Folders lists what a delimiter makes of names.
func (o objects) Folders(ctx context.Context, prefix string) (names []string, err error) {
	for pager := o.api.NewListBlobsHierarchyPager("/", &container.ListBlobsHierarchyOptions{Prefix: &prefix}); pager.More(); {
		page, err := ask(ctx, o.Ledger, func(ctx context.Context) (container.ListBlobsHierarchyResponse, error) { return pager.NextPage(ctx) })
		if err != nil {
			return nil, err
		}
		if page.ContainerName == nil || *page.ContainerName == "" {
			return nil, storekit.ErrForeign
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
	_, err := ask(ctx, o.Ledger, func(ctx context.Context) (blob.DeleteResponse, error) {
		return o.api.NewBlobClient(name).Delete(ctx, nil)
	})
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
