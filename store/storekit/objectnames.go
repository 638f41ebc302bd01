package storekit

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/slotlease/slotlease/store"
)

// Folders of a ledger of objects, below its own.
const (
	recordFolder   = "ledger/"
	presenceFolder = "roster/"
	presencePrefix = "id-"
)

// seqDigits are the digits of a Seq in a name, and top is what a Seq is subtracted from there.
const (
	seqDigits = 16
	top       = store.MaxSeq + 1
)

// RecordName is the name of a record's object, below the ledger's folder: ledger/WORKERTYPE/N, where N is 2^53-1 less
// the Seq, in 16 digits, so that a list in the order of names begins with the newest record. For a Seq that isn't in
// 1 … store.MaxSeq it is a name that no record has.
func RecordName(workerType string, seq int64) string {
	if seq < 1 || seq > store.MaxSeq {
		return fmt.Sprintf("%s%s/0x%d", recordFolder, workerType, seq)
	}
	return fmt.Sprintf("%s%s/%0*d", recordFolder, workerType, seqDigits, top-seq)
}

// PresenceName is the name of a presence's object, below the ledger's folder: roster/WORKERTYPE/id-ID. An ID may be a
// dot or two, which services that keep files, or clean the paths of URLs, take for a folder.
func PresenceName(workerType, id string) string {
	return presenceFolder + workerType + "/" + presencePrefix + id
}

// seqOf is the Seq in the last part of a record's name, or false if there is none.
func seqOf(last string) (int64, bool) {
	if len(last) != seqDigits || strings.Trim(last, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.ParseInt(last, 10, 64)
	if err != nil || n < 1 || n >= top {
		return 0, false
	}
	return top - n, true
}
