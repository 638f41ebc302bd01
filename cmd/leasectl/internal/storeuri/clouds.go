//go:build !lite

// The SDKs of the clouds are a third of the packages of the program.

package storeuri

import (
	_ "github.com/slotlease/slotlease/store/azblob" // the schemes
	_ "github.com/slotlease/slotlease/store/cosmos"
	_ "github.com/slotlease/slotlease/store/s3"
)
