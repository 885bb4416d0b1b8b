package profile

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"go.temporal.io/sdk/activity"

	"drydock/activities/preflight"
	"drydock/rules/bounds"
	rules "drydock/rules/profile"
)

const (
	// AskAgain is the pause between two questions for permissions of which some are missing, or not known.
	AskAgain = time.Minute
	// askWithin bounds a question: no node is evaluated before it is over.
	askWithin = 3 * time.Second
)

// asked is what the API server has said of the permissions that a file needs. It is asked once for each file, and again and again where
// some are missing: one that is taken away later tells whoever needs it.
type asked struct {
	mu     sync.Mutex
	about  *rules.Config
	at     time.Time
	denied string
	// unanswered: the latest question was.
	unanswered bool
}

// denied says which permissions that the profiles need are missing, with what grants them; empty is none. Where that cannot be found out, it
// is as the workflow knows it.
func (e *evaluator) denied(ctx context.Context, config *rules.Config) string {
	a := &e.asked
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.about != config || (a.unanswered || a.denied != "") && time.Since(a.at) >= AskAgain {
		denied, err := e.ask(ctx, config)
		if ctx.Err() != nil {
			return e.in.Denied // nobody waits for an answer: that says nothing of the API server
		}
		switch {
		case err != nil:
			activity.GetLogger(ctx).Warn("not known whether profiles can do all that their file asks for", "error", err)
		case denied != "" && denied != a.denied:
			activity.GetLogger(ctx).Warn("profiles cannot do all that their file asks for", "missing", denied)
		}
		a.about, a.at, a.denied, a.unanswered = config, time.Now(), denied, err != nil
	}
	if a.unanswered {
		return e.in.Denied
	}
	return a.denied
}

// ask asks the API server which permissions are missing.
func (e *evaluator) ask(ctx context.Context, config *rules.Config) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	report, err := preflight.Lacks(ctx, e.Nodes.Client(), config.Permissions(e.Defaults))
	if err == nil && report.Unchecked != "" {
		err = errors.New(report.Unchecked)
	}
	if err != nil {
		return "", err
	}
	var lines []string
	for _, f := range report.Missing {
		lines = append(lines, f.Message)
	}
	return bounds.Cut(strings.Join(lines, "; "), bounds.Text), nil
}
