package scheduler

// Packed is how many requests are handed on, by a name that tests may say.
type Packed = packedRequests
