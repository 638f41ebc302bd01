package storekit

import (
	"context"

	"github.com/slotlease/slotlease/store"
)

// Objects is a store of named objects: a bucket, a key-value store. Names have slashes and are listed in byte order.
// Reads and lists are strongly consistent: they see every Create and Replace that was acknowledged before. The methods
// are safe for concurrent use, and call [Note] with the time of replies.
type Objects interface {
	// Create stores an object unless there is one of that name. Then it returns an error that matches
	// store.ErrConflict. It is durable when it returns nil.
	Create(ctx context.Context, name string, body []byte) error
	// Replace stores an object in place of one of that name, if there is one.
	Replace(ctx context.Context, name string, body []byte) error
	// Read returns the content of an object, or an error that matches store.ErrNotFound. It needs not return more
	// than MaxDocument+1 bytes.
	Read(ctx context.Context, name string) ([]byte, error)
	// List visits the objects whose names begin with prefix and come after a name, which may be empty, in byte order,
	// until visit returns false. hint is how many are wanted probably, or 0 for all. A list need be no snapshot: what is
	// created or deleted meanwhile may be in it or not, each for itself.
	List(ctx context.Context, prefix, after string, hint int, visit func(o Object) bool) error
	// Delete removes an object, and reports whether it was there, as far as that can be told: true otherwise.
	Delete(ctx context.Context, name string) (bool, error)
	// Now reads the service's clock, by a request that costs little.
	Now(ctx context.Context) (store.Stamp, error)
	// Close frees what the service's client holds.
	Close() error
}

// Object is what a list shows of an object.
type Object struct {
	Name string
	// Body is its content, or nil if a list doesn't show that: then it is read.
	Body []byte
	// Size is that of its content in bytes, or 0 if a list doesn't show that, either.
	Size int64
}

// Folders is an Objects that can list the folders directly below a prefix, without the slash at their end. Others
// are asked for one object of each folder.
type Folders interface {
	Folders(ctx context.Context, prefix string) ([]string, error)
}

const (
	// firstPiece is how many contents a list asks for at first, and pieceBytes how many bytes of them it may get at a time, about.
	firstPiece = 16
	pieceBytes = 16 << 20
)

// Piece is how many contents a list should ask for next, after a reply had some objects with so many bytes: a few at first, when
// it had none, and then more, as long as they are small. Other programs may store anything.
func Piece(objects, bytes, most int) int {
	if objects == 0 {
		return min(firstPiece, most)
	}
	return max(1, min(4*objects, pieceBytes/max(1, bytes/objects), most))
}
