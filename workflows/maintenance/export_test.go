package maintenance

// TimedOut is timedOut, for tests.
var TimedOut = timedOut
