package otellease

// Trails is how many workers a telemetry keeps something of.
func Trails(t *Telemetry) int {
	t.spans.mu.Lock()
	defer t.spans.mu.Unlock()
	return len(t.spans.trails)
}
