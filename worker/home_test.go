package worker

import (
	"context"
	"errors"
	"strings"
	"testing"

	namespacepb "go.temporal.io/api/namespace/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/mocks"
	"google.golang.org/grpc"
)

// registry answers for namespaces: with an ID, or that there is none, or with an error.
type registry struct {
	workflowservice.WorkflowServiceClient
	id  string
	err error
}

func (r *registry) DescribeNamespace(
	context.Context, *workflowservice.DescribeNamespaceRequest, ...grpc.CallOption,
) (*workflowservice.DescribeNamespaceResponse, error) {
	return &workflowservice.DescribeNamespaceResponse{NamespaceInfo: &namespacepb.NamespaceInfo{Id: r.id}}, r.err
}

func TestAWorkerEndsWhereItsNamespaceIsLost(t *testing.T) {
	const mine, other = "mine", "another"
	absent := serviceerror.NewNamespaceNotFound("default")
	away := serviceerror.NewUnavailable("restarting")
	for name, c := range map[string]struct {
		answers []registry
		says    string
	}{
		"it is the same":                         {[]registry{{id: mine}, {id: mine}}, ""},
		"it is another one":                      {[]registry{{id: mine}, {id: other}}, "another one by now (ID another, and it was mine)"},
		"it is another one after an outage":      {[]registry{{err: away}, {err: away}, {err: away}, {id: other}}, "another one by now"},
		"Temporal is away":                       {[]registry{{err: away}, {err: away}, {err: away}, {id: mine}}, ""},
		"there is none":                          {[]registry{{id: mine}, {err: absent}, {err: absent}}, "not there any more"},
		"one part of a server knows of it later": {[]registry{{err: absent}, {id: mine}, {err: absent}, {id: mine}}, ""},
	} {
		var asked registry
		temporal := &mocks.Client{}
		temporal.On("WorkflowService").Return(&asked)
		guard := homeGuard{temporal: temporal, name: "default", id: mine}
		for i, answer := range c.answers {
			asked = answer
			err := guard.look(t.Context())
			last := i == len(c.answers)-1
			switch {
			case last && c.says != "":
				if !errors.Is(err, errHomeLost) || !strings.Contains(err.Error(), c.says) {
					t.Errorf("%s: %v", name, err)
				}
			case errors.Is(err, errHomeLost) || answer.err == nil && err != nil:
				t.Errorf("%s: answer %d: %v", name, i, err)
			}
		}
	}
}

func TestAWorkerEndsThatGetsNoWork(t *testing.T) {
	refused := make(chan error, 1)
	workerOptions(Options{}, nil, func(err error) { refused <- err }).OnFatalError(errors.New("the client is too old"))
	if err := untilRefused(t.Context(), refused); err == nil || !strings.Contains(err.Error(), "the client is too old") {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := untilRefused(ctx, refused); err != nil {
		t.Error(err)
	}
}
