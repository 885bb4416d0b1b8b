package setup

import (
	"context"
	"fmt"
	"io"

	"drydock.dev/drydock/config/namespace"
	"drydock.dev/drydock/rules/setup"
)

// servers are Temporal and Kubernetes: what is there, and what a fix makes there.
type servers interface {
	look(ctx context.Context) setup.Found
	do(ctx context.Context, fix setup.Fix, names []string) error
}

// fix makes what a report says can be made, and prints each step. The report that it returns is of what is there then.
func fix(ctx context.Context, on servers, wanted setup.Wanted, before setup.Report, out io.Writer) setup.Report {
	failed := map[setup.Fix]string{}
	without := false // a namespace, in which what is Temporal's is made
	for _, fix := range before.Fixes() {
		if without && fix.InNamespace() {
			continue
		}
		names := before.Names(fix)
		err := on.do(ctx, fix, names)
		if ctx.Err() != nil {
			return before // whoever has interrupted it sees no report
		}
		outcome := "done"
		if err != nil {
			failed[fix] = reason(err)
			outcome = failed[fix]
		}
		without = without || fix == setup.CreateNamespace && err != nil
		fmt.Fprintf(out, "%s: %s\n", fix.Does(names), outcome)
	}
	return setup.After(before, setup.Decide(wanted, on.look(ctx)), failed)
}

func (s *site) do(ctx context.Context, fix setup.Fix, names []string) error {
	err := s.make(ctx, fix, names)
	s.refused = s.refused || namespace.Refused(err)
	return err
}

func (s *site) make(ctx context.Context, fix setup.Fix, names []string) error {
	switch fix {
	case setup.CreateNamespace:
		return s.create(ctx)
	case setup.RaiseRetention:
		return s.retain(ctx)
	case setup.AddAttribute:
		return s.register(ctx, names)
	case setup.CreateEndpoint:
		return s.endpoint(ctx)
	case setup.ApplyPermissions:
		return s.kubernetes.apply(ctx, s.manifests, s.wanted.Parts, names)
	}
	return fmt.Errorf("%s: not known how", fix)
}
