package guard

// monotonic is CLOCK_MONOTONIC, which golang.org/x/sys/unix leaves out here.
const monotonic = 3
