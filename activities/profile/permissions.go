package profile

import (
	"context"
	"slices"
	"sync"
	"time"

	"go.temporal.io/sdk/activity"

	asking "drydock.dev/drydock/activities/preflight"
	"drydock.dev/drydock/rules/bounds"
	"drydock.dev/drydock/rules/preflight"
	rules "drydock.dev/drydock/rules/profile"
)

const (
	// AskAgain is the pause between two questions for permissions of which some are missing, or not known.
	AskAgain = time.Minute
	// askWithin bounds a question: no node is evaluated before it is over.
	askWithin = 3 * time.Second
)

// asked holds the API server's answers about the permissions that a file needs. They are checked once for each file, and repeatedly
// while some are missing: where one is revoked later, the request that needs it fails.
type asked struct {
	mu     sync.Mutex
	about  *rules.Config
	at     time.Time
	denied []preflight.Ungranted
	// unanswered: the latest question was.
	unanswered bool
}

// denied are the permissions that the profiles need and that are missing. Where that cannot be found out, they are as the workflow knows them.
func (e *evaluator) denied(ctx context.Context, config *rules.Config) []preflight.Ungranted {
	a := &e.asked
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.about != config || (a.unanswered || len(a.denied) > 0) && time.Since(a.at) >= AskAgain {
		denied, err := e.ask(ctx, config)
		if ctx.Err() != nil {
			return e.in.Denied // nobody waits for an answer: that says nothing of the API server
		}
		switch {
		case err != nil:
			activity.GetLogger(ctx).Warn("not known whether profiles can do all that their file asks for", "error", err)
		case len(denied) > 0 && !slices.Equal(denied, a.denied):
			for _, u := range denied {
				activity.GetLogger(ctx).Warn("profiles need permissions that are missing", "missing", u.Permissions, "grantedBy", u.By)
			}
		}
		a.about, a.at, a.denied, a.unanswered = config, time.Now(), denied, err != nil
	}
	if a.unanswered {
		return e.in.Denied
	}
	return a.denied
}

// ask asks the API server which permissions are missing.
func (e *evaluator) ask(ctx context.Context, config *rules.Config) ([]preflight.Ungranted, error) {
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	lacks, err := asking.Lacks(ctx, e.Nodes.Client(), config.Permissions(e.Defaults))
	if err != nil {
		return nil, err
	}
	denied := preflight.ByGrant(lacks)
	return denied[:min(len(denied), bounds.List)], nil
}
