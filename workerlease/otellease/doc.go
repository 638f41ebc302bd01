// Package otellease exposes what happens to workers as OpenTelemetry metrics and spans.
//
//	t, err := otellease.New(otellease.Options{})
//	…
//	client := workerlease.NewClient(ledger, workerlease.ClientOptions{Observer: t})
//
// It uses OpenTelemetry's API only: without an SDK that the program sets up, nothing is measured or traced.
//
// # Metrics
//
// The metrics are those of promlease, by OpenTelemetry's names: slotlease.slots.won for
// slotlease_slots_won_total. What exports them to Prometheus makes the same names and labels of them, so the same dashboards and
// alerts fit. The attributes are worker_type and, where one fits, reason or operation. The first
// [Options.WorkerTypes] worker types have series of their own; all others are counted together as _other.
//
// # Spans
//
// A lease is a span, from its allocation to its end, and links to that of the worker's lease before.
// Its status is an error if the code failed, panicked or overran, or if the lease ended before its time
// because it was lost: the store's clock jumped, its record vanished, or its code stalled. [Telemetry.Context] makes it the
// parent of the spans of one's own code. A span is handed over when all code under the lease has returned, or
// has overrun.
//
// The attributes of a span are slotlease.worker_type, slotlease.instance_id, slotlease.group,
// slotlease.token, slotlease.slot.start, slotlease.slot.end, slotlease.attempt, slotlease.delay in seconds
// after the start of the slot, slotlease.extensions and, in the end, slotlease.reason. No attribute is longer than
// 256 bytes.
package otellease
