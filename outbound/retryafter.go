package outbound

import (
	"net/http"
	"strconv"
	"time"
)

// maxRetryAfter bounds what the other side can ask for.
const maxRetryAfter = 24 * time.Hour

// parseRetryAfter reads the header's two forms, seconds and a date; 0 is what it cannot read.
func parseRetryAfter(header string, now time.Time) time.Duration {
	var wait time.Duration
	if seconds, err := strconv.Atoi(header); err == nil {
		wait = time.Duration(min(max(seconds, 0), int(maxRetryAfter/time.Second))) * time.Second
	} else if date, err := http.ParseTime(header); err == nil {
		wait = date.Sub(now)
	}
	return min(max(wait, 0), maxRetryAfter)
}
