package drain

import (
	"testing"
	"time"
)

func TestBackoffDoublesUpToItsBound(t *testing.T) {
	var got []time.Duration
	for refusals := range 9 {
		got = append(got, backoff(refusals)/time.Second)
	}
	want := []time.Duration{1, 1, 2, 4, 8, 16, 30, 30, 30}
	for i := range want {
		if got[i] != want[i] {
			t.Fatalf("backoff %v seconds, want %v", got, want)
		}
	}
	if backoff(1000000) != lastRetry {
		t.Errorf("backoff(1000000) = %s", backoff(1000000))
	}
}
