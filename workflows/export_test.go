package workflows

// TimedOut is timedOut, for tests.
var TimedOut = timedOut
