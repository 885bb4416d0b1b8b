package setup

import (
	"context"
	"fmt"

	"drydock.dev/drydock/config/namespace"
	"drydock.dev/drydock/rules/setup"
)

// fix makes what a report says can be made, and prints each step.
func (s *site) fix(ctx context.Context, before setup.Report, say func(format string, args ...any)) setup.Report {
	failed := map[setup.Fix]string{}
	for _, fix := range before.Fixes() {
		names := before.Names(fix)
		err := s.do(ctx, fix, names)
		outcome := "done"
		if err != nil {
			failed[fix] = reason(err)
			outcome = failed[fix]
		}
		s.refused = s.refused || namespace.Refused(err)
		say("%s: %s\n", fix.Does(names), outcome)
		if fix == setup.CreateNamespace && err != nil {
			break // the rest is made in it
		}
	}
	return setup.After(before, setup.Decide(s.wanted, s.look(ctx)), failed)
}

func (s *site) do(ctx context.Context, fix setup.Fix, names []string) error {
	switch fix {
	case setup.CreateNamespace:
		return s.create(ctx)
	case setup.RaiseRetention:
		return s.retain(ctx)
	case setup.AddAttribute:
		return s.register(ctx, names)
	case setup.ApplyPermissions:
		return s.kubernetes.apply(ctx, s.manifests, s.wanted.Parts, names)
	}
	return fmt.Errorf("%s: not known how", fix)
}
