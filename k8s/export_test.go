package k8s

import (
	"net/http"
	"time"
)

// EditDistance is editDistance, for tests.
var EditDistance = editDistance

// Bounded is the transport of NewClient, for tests.
func Bounded(next http.RoundTripper, within time.Duration) http.RoundTripper {
	return bounded{next: next, within: within}
}

// Weigh is weigh, for tests.
func (w *Watch[T]) Weigh(err error) { w.weigh(err) }
