package setup

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.temporal.io/api/nexus/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	temporalclient "go.temporal.io/sdk/client"
	"k8s.io/apimachinery/pkg/util/wait"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/client"
	"drydock.dev/drydock/config/namespace"
	"drydock.dev/drydock/config/temporalenv"
	manifests "drydock.dev/drydock/deploy/kubernetes"
	"drydock.dev/drydock/rules/number"
	"drydock.dev/drydock/rules/period"
	"drydock.dev/drydock/rules/setup"
	"drydock.dev/drydock/starter/exit"
	"drydock.dev/drydock/starter/invocation"
	"drydock.dev/drydock/starter/terminal"
)

// site is a Temporal namespace, and the cluster whose workers are to use it.
type site struct {
	app                         *invocation.App
	address, namespace, cluster string
	wanted                      setup.Wanted
	manifests                   []manifests.Part

	connection *invocation.Connection
	// refused: the server has refused to make something.
	refused bool
	// kubernetes is nil if no cluster was named.
	kubernetes *cluster
}

func (s *site) close() {
	if s.connection != nil {
		s.connection.Close()
	}
}

func (s *site) look(ctx context.Context) setup.Found {
	found := setup.Found{Temporal: s.lookAtTemporal(ctx)}
	if s.kubernetes != nil {
		at := s.kubernetes.look(ctx, s.wanted.Parts)
		found.Cluster = &at
	}
	return found
}

func (s *site) lookAtTemporal(ctx context.Context) setup.Service {
	t := setup.Service{Address: s.address, Namespace: s.namespace, Cloud: setup.IsCloud(s.address, s.namespace, s.refused)}
	if s.connection == nil {
		connection, err := s.app.Connect(ctx)
		if err != nil {
			t.Unreachable, t.Advice = reason(err), temporalenv.Advice(err)
			return t
		}
		s.connection = connection
	}
	if err := s.within(ctx, func(ctx context.Context, temporal temporalclient.Client) error {
		info, err := temporal.WorkflowService().GetSystemInfo(ctx, &workflowservice.GetSystemInfoRequest{})
		t.Version, t.Open = info.GetServerVersion(), err == nil && !s.connection.ShowsCredentials
		return err
	}); err != nil {
		t.Unreachable = reason(s.connection.Explain(&client.CallError{Doing: "asking for the server's version", Err: err}))
		t.Advice = temporalenv.Advice(err)
		return t
	}
	err := s.within(ctx, func(ctx context.Context, temporal temporalclient.Client) error {
		described, err := namespace.Describe(ctx, temporal, s.namespace)
		t.Exists, t.Retention = err == nil, described.Retention
		return err
	})
	if namespace.Absent(err) {
		return t
	}
	if err != nil {
		t.Undescribed, t.Advice = reason(err), temporalenv.Advice(err)
	}
	t.Unlisted = reason(s.within(ctx, func(ctx context.Context, temporal temporalclient.Client) (err error) {
		t.Attributes, err = namespace.Attributes(ctx, temporal, s.namespace, s.wanted.Attributes)
		return err
	}))
	t.Uncounted = reason(s.within(ctx, func(ctx context.Context, temporal temporalclient.Client) (err error) {
		t.Running, err = s.running(ctx, temporal)
		return err
	}))
	t.Unscheduled = reason(s.within(ctx, func(ctx context.Context, temporal temporalclient.Client) (err error) {
		t.Recurring, err = s.recurring(ctx, temporal)
		return err
	}))
	if s.wanted.Endpoint != "" {
		t.Unlooked = reason(s.within(ctx, func(ctx context.Context, temporal temporalclient.Client) (err error) {
			t.Target, err = s.target(ctx, temporal)
			return err
		}))
	}
	return t
}

// target is where the wanted Nexus endpoint leads, nil if there is none of its name.
func (s *site) target(ctx context.Context, temporal temporalclient.Client) (*setup.Target, error) {
	listed, err := temporal.OperatorService().ListNexusEndpoints(ctx, &operatorservice.ListNexusEndpointsRequest{Name: s.wanted.Endpoint})
	if err != nil || len(listed.GetEndpoints()) == 0 {
		return nil, err
	}
	target := listed.GetEndpoints()[0].GetSpec().GetTarget()
	if target.GetWorker() == nil {
		return &setup.Target{Other: target.GetExternal().GetUrl()}, nil
	}
	return &setup.Target{Namespace: target.GetWorker().GetNamespace(), Queue: target.GetWorker().GetTaskQueue()}, nil
}

func (s *site) endpoint(ctx context.Context) error {
	return s.within(ctx, func(ctx context.Context, temporal temporalclient.Client) error {
		_, err := temporal.OperatorService().CreateNexusEndpoint(ctx, &operatorservice.CreateNexusEndpointRequest{Spec: &nexus.EndpointSpec{
			Name: s.wanted.Endpoint,
			Target: &nexus.EndpointTarget{Variant: &nexus.EndpointTarget_Worker_{
				Worker: &nexus.EndpointTarget_Worker{Namespace: s.namespace, TaskQueue: s.wanted.Queue},
			}},
		}})
		return err
	})
}

// within asks a server that may not answer: a call that is not the client's own has no deadline otherwise.
func (s *site) within(ctx context.Context, ask func(ctx context.Context, temporal temporalclient.Client) error) error {
	ctx, cancel := context.WithTimeout(ctx, client.CallTimeout)
	defer cancel()
	return ask(ctx, s.connection.Temporal)
}

// reason is an error as one line, without what it says to do next; empty for none.
func reason(err error) string {
	if err == nil {
		return ""
	}
	first, _, _ := strings.Cut(err.Error(), "\n")
	return terminal.OneLine(first)
}

// needing are the workflows that need a part of the permissions while they run.
var needing = []struct{ part, workflow, what string }{
	{"health", api.HealthCheckType, "health check"},
	{"profiles", api.ProfilesType, "evaluation of profiles"},
}

// running says what runs on the cluster's workers that needs a part of the permissions.
func (s *site) running(ctx context.Context, temporal temporalclient.Client) (map[string]string, error) {
	found := map[string]string{}
	for _, one := range needing {
		counted, err := temporal.CountWorkflow(ctx, &workflowservice.CountWorkflowExecutionsRequest{
			Namespace: s.namespace,
			Query:     fmt.Sprintf("WorkflowType = '%s' AND TaskQueue = '%s' AND ExecutionStatus = 'Running'", one.workflow, s.wanted.Queue),
		})
		if err != nil {
			return nil, err
		}
		if n := counted.GetCount(); n > 0 {
			found[one.part] = number.Of(int(n), one.what)
		}
	}
	return found, nil
}

const maxRecurring = 200

func (s *site) recurring(ctx context.Context, temporal temporalclient.Client) ([]setup.Schedule, error) {
	listed, err := temporal.ScheduleClient().List(ctx, temporalclient.ScheduleListOptions{PageSize: maxRecurring})
	if err != nil {
		return nil, err
	}
	var found []setup.Schedule
	for listed.HasNext() && len(found) < maxRecurring {
		entry, err := listed.Next()
		if err != nil {
			return nil, err
		}
		of, plan, err := api.ParsePlanID(entry.ID)
		if err != nil || of != s.cluster {
			continue // somebody else's
		}
		described, err := temporal.ScheduleClient().GetHandle(ctx, entry.ID).Describe(ctx)
		if exit.Has[*serviceerror.NotFound](err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		schedule := setup.Schedule{Plan: plan, Paused: entry.Paused}
		if action, ok := described.Schedule.Action.(*temporalclient.ScheduleWorkflowAction); ok {
			schedule.Queue = action.TaskQueue
		}
		found = append(found, schedule)
	}
	slices.SortFunc(found, func(a, b setup.Schedule) int { return strings.Compare(a.Plan, b.Plan) })
	return found, nil
}

const (
	// takesEffect is how long a server may take to let all its parts know of a namespace or a search attribute.
	takesEffect = 90 * time.Second
	lookAgain   = 500 * time.Millisecond
)

// await asks until the answer is yes, or an error that is not worth another try. otherwise says what is the matter where that takes longer
// than the limit.
func await(ctx context.Context, limit time.Duration, otherwise string, ask func(ctx context.Context) (bool, error)) error {
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err := wait.PollUntilContextCancel(limited, lookAgain, true, ask)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case limited.Err() != nil:
		// An error is the deadline's: the question was under way.
		return fmt.Errorf("%s after %s: run it again in a few minutes", otherwise, period.Text(limit))
	}
	return err
}

// create makes the namespace, and waits until the server answers for it.
func (s *site) create(ctx context.Context) error {
	err := s.within(ctx, func(ctx context.Context, temporal temporalclient.Client) error {
		return namespace.Create(ctx, temporal, s.namespace, s.wanted.Retention)
	})
	if err != nil {
		return err
	}
	return await(ctx, takesEffect, "the namespace was created, and the server does not answer for it", func(ctx context.Context) (bool, error) {
		_, err := s.recurring(ctx, s.connection.Temporal)
		if namespace.Absent(err) {
			return false, nil
		}
		return true, err
	})
}

func (s *site) retain(ctx context.Context) error {
	return s.within(ctx, func(ctx context.Context, temporal temporalclient.Client) error {
		return namespace.Retain(ctx, temporal, s.namespace, s.wanted.Retention)
	})
}

// register adds search attributes, and waits until the server knows them.
func (s *site) register(ctx context.Context, names []string) error {
	err := await(ctx, takesEffect, "the server does not know the namespace", func(ctx context.Context) (bool, error) {
		err := namespace.AddAttributes(ctx, s.connection.Temporal, s.namespace, names)
		if namespace.Absent(err) {
			return false, nil
		}
		return true, err
	})
	if err != nil {
		return err
	}
	return await(ctx, takesEffect, "they were registered, and the server does not know them", func(ctx context.Context) (bool, error) {
		has, err := namespace.Attributes(ctx, s.connection.Temporal, s.namespace, names)
		return len(namespace.Missing(has, names)) == 0, err
	})
}
