package scheduler

// Packed is how many requests are handed on.
type Packed = packedRequests
