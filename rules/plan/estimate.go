package plan

import (
	"slices"
	"time"
)

// Estimate is about how long a plan takes whose waves are these and whose nodes take so long each: one wave after the
// other, the pauses between them, and the soak of the canary. Time for approval and for closed windows is not in it.
func Estimate(s Strategy, waves [][]string, each time.Duration) time.Duration {
	if len(waves) == 0 {
		return 0
	}
	total := time.Duration(len(waves))*each + time.Duration(len(waves)-1)*s.PauseBetween.Std()
	if s.Canary != nil && nodesIn(waves) > s.Canary.Nodes {
		total += s.Canary.Soak.Std()
	}
	return total
}

func nodesIn(waves [][]string) int {
	n := 0
	for _, wave := range waves {
		n += len(wave)
	}
	return n
}

// Median is the middle of some durations, 0 where there are none.
func Median(all []time.Duration) time.Duration {
	if len(all) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(all))
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return sorted[middle-1] + (sorted[middle]-sorted[middle-1])/2
}
