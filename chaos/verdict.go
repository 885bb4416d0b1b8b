package main

import (
	"context"
	"errors"
	"fmt"
)

// verdict is what the nodes, the audit log and the proxies tell of the run.
func (a *attempt) verdict(ctx context.Context) error {
	var problems []error
	for _, node := range a.nodes {
		problems = append(problems, eventually(ctx, patience, "node "+node+" is as it was", func() error {
			after, err := a.imprint(ctx, node)
			if err == nil && after != a.undamaged[node] {
				err = fmt.Errorf("before %s, after %s", a.undamaged[node], after)
			}
			return err
		}))
	}
	most, err := a.witness.mostHeld(a.name)
	if err == nil && most != 1 {
		err = fmt.Errorf("%d nodes were held at one instant, want 1", most)
	}
	problems = append(problems, err)
	ended, err := a.ended(a.from, a.name)
	problems = append(problems, err)
	if err == nil && len(ended) < 6 {
		problems = append(problems, fmt.Errorf("only %d pods were evicted or deleted", len(ended)))
	}
	accepted := map[string]int{}
	for _, e := range ended {
		uid, known := a.api.uidOf(e.AuditID)
		if !known {
			problems = append(problems, fmt.Errorf("the end of pod %s was not asked for through the proxy with its UID", e.Object.Name))
			continue
		}
		if accepted[uid]++; accepted[uid] > 1 && !a.witness.wasLeaving(uid, e.Received) {
			problems = append(problems, fmt.Errorf("the end of pod %s was accepted a second time while it was not terminating", e.Object.Name))
		}
	}
	return errors.Join(problems...)
}
