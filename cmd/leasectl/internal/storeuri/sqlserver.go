//go:build sqlserver

package storeuri

import _ "github.com/slotlease/slotlease/store/sqlserver" // the scheme
