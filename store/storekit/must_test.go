package storekit

import "github.com/slotlease/slotlease/store/internal/documenttest"

var must = documenttest.Must
