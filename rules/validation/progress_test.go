package validation_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"drydock.dev/drydock/rules/period"
	"drydock.dev/drydock/rules/validation"
)

func begin(soak, deadline time.Duration) validation.Progress {
	return validation.Begin(validation.Validation{Soak: period.Duration(soak), Deadline: period.Duration(deadline)}, noon)
}

func TestProgress(t *testing.T) {
	good, bad := validation.Report{AllGood: true}, validation.Report{}
	refused := validation.Report{Refused: "declared failed"}
	type look struct {
		at     time.Duration
		report validation.Report
		want   validation.State
	}
	for name, c := range map[string]struct {
		soak  time.Duration
		looks []look
	}{
		"good at once":                       {0, []look{{0, good, validation.Passed}}},
		"good later":                         {0, []look{{0, bad, validation.Waiting}, {time.Minute, good, validation.Passed}}},
		"refused":                            {0, []look{{0, refused, validation.Failed}}},
		"refused while soaking":              {time.Minute, []look{{0, good, validation.Soaking}, {1, refused, validation.Failed}}},
		"soaks":                              {time.Minute, []look{{0, good, validation.Soaking}, {59 * time.Second, good, validation.Soaking}, {time.Minute, good, validation.Passed}}},
		"a failure restarts the soak":        {time.Minute, []look{{0, good, validation.Soaking}, {30 * time.Second, bad, validation.Waiting}, {time.Minute, good, validation.Soaking}, {2 * time.Minute, good, validation.Passed}}},
		"bad until the deadline":             {0, []look{{0, bad, validation.Waiting}, {10 * time.Minute, bad, validation.Failed}}},
		"good only at the deadline":          {0, []look{{10 * time.Minute, good, validation.Failed}}},
		"soak does not end in time":          {time.Minute, []look{{9*time.Minute + 30*time.Second, good, validation.Soaking}, {10 * time.Minute, good, validation.Failed}}},
		"soak ended in time, look came late": {time.Minute, []look{{5 * time.Minute, good, validation.Soaking}, {time.Hour, good, validation.Passed}}},
	} {
		t.Run(name, func(t *testing.T) {
			p := begin(c.soak, 10*time.Minute)
			for i, l := range c.looks {
				var got validation.State
				if p, got = p.Observe(l.report, noon.Add(l.at)); got != l.want {
					t.Fatalf("look %d: got %s, want %s", i, got, l.want)
				}
			}
		})
	}
}

// The model knows all looks: it has no state to carry, and so none to carry wrongly.
func TestProgressAgreesWithAllLooks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		soak := time.Duration(rapid.IntRange(0, 20).Draw(t, "soak"))
		deadline := time.Duration(rapid.IntRange(1, 60).Draw(t, "deadline"))
		p := begin(soak, deadline)
		now, goodSince, runs := noon, time.Time{}, 0
		for range 60 {
			now = now.Add(time.Duration(rapid.IntRange(0, 9).Draw(t, "pause")))
			good := rapid.Bool().Draw(t, "good")
			if !good {
				goodSince = time.Time{}
			} else if goodSince.IsZero() {
				goodSince = now
				runs++
			}
			end := noon.Add(deadline)
			want := validation.Waiting
			switch {
			case good && !now.Before(goodSince.Add(soak)) && goodSince.Add(soak).Before(end):
				want = validation.Passed
			case !now.Before(end):
				want = validation.Failed
			case good:
				want = validation.Soaking
			}
			var got validation.State
			if p, got = p.Observe(validation.Report{AllGood: good}, now); got != want {
				t.Fatalf("at %s: got %s, want %s (good since %s)", now, got, want, goodSince)
			}
			if next := p.Next(10, now); !next.After(now) || next.After(now.Add(10)) {
				t.Fatalf("next look at %s, now %s", next, now)
			}
			if p.Restarts > runs {
				t.Fatalf("%d restarts of %d soaks", p.Restarts, runs)
			}
			if got == validation.Passed || got == validation.Failed {
				return
			}
		}
	})
}
