package profile

import (
	"context"
	"strings"
	"sync"
	"time"

	"go.temporal.io/sdk/activity"

	"drydock/activities/preflight"
	"drydock/rules/bounds"
	rules "drydock/rules/profile"
)

// AskAgain is the pause between two questions for permissions of which some are missing.
const AskAgain = time.Minute

// asked is what the API server has said of the permissions that a file needs. It is asked once for each file, and again and again where
// some are missing: one that is taken away later tells whoever needs it.
type asked struct {
	mu     sync.Mutex
	about  *rules.Config
	at     time.Time
	denied string
}

// denied says which permissions that the profiles need are missing, with what grants them; empty is none. Where that cannot be found out, it
// is as the workflow knows it.
func (e *evaluator) denied(ctx context.Context, config *rules.Config) string {
	a := &e.asked
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.about == config && (a.denied == "" || time.Since(a.at) < AskAgain) {
		return a.denied
	}
	report, err := preflight.Lacks(ctx, e.Nodes.Client(), config.Permissions(e.Defaults))
	if err != nil || report.Unchecked != "" {
		return e.in.Denied
	}
	var lines []string
	for _, f := range report.Missing {
		lines = append(lines, f.Message)
	}
	denied := bounds.Cut(strings.Join(lines, "; "), bounds.Text)
	if denied != "" && denied != a.denied {
		activity.GetLogger(ctx).Warn("profiles cannot do all that their file asks for", "missing", denied)
	}
	a.about, a.at, a.denied = config, time.Now(), denied
	return denied
}
