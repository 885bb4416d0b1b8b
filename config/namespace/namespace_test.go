package namespace_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/mock"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/mocks"
	"google.golang.org/grpc"

	"drydock.dev/drydock/config/namespace"
)

// operator answers for the operators' API.
type operator struct {
	operatorservice.OperatorServiceClient
	has  map[string]enums.IndexedValueType
	list error
	add  error
}

func (o operator) ListSearchAttributes(context.Context, *operatorservice.ListSearchAttributesRequest, ...grpc.CallOption) (*operatorservice.ListSearchAttributesResponse, error) {
	return &operatorservice.ListSearchAttributesResponse{CustomAttributes: o.has}, o.list
}

func (o operator) AddSearchAttributes(context.Context, *operatorservice.AddSearchAttributesRequest, ...grpc.CallOption) (*operatorservice.AddSearchAttributesResponse, error) {
	return &operatorservice.AddSearchAttributesResponse{}, o.add
}

var names = []string{"DrydockNode", "DrydockKind"}

func TestAttributesAreListed(t *testing.T) {
	temporal := &mocks.Client{}
	temporal.On("OperatorService").Return(operator{has: map[string]enums.IndexedValueType{
		"DrydockNode": enums.INDEXED_VALUE_TYPE_KEYWORD, "DrydockKind": enums.INDEXED_VALUE_TYPE_TEXT, "Other": enums.INDEXED_VALUE_TYPE_INT,
	}})
	has, err := namespace.Attributes(t.Context(), temporal, "ops", names)
	if err != nil || len(has) != 2 || has["DrydockKind"] != "Text" {
		t.Fatalf("%v, %v", has, err)
	}
	if missing := namespace.Missing(has, names); !slices.Equal(missing, []string{"DrydockKind"}) {
		t.Errorf("missing %v", missing)
	}
}

func TestAttributesAreFoundWhereTheyAreNotListed(t *testing.T) {
	for _, refusal := range []error{serviceerror.NewPermissionDenied("operators only", ""), serviceerror.NewUnimplemented("not here")} {
		temporal := &mocks.Client{}
		temporal.On("OperatorService").Return(operator{list: refusal})
		temporal.On("CountWorkflow", mock.Anything, mock.Anything).Return(
			func(_ context.Context, r *workflowservice.CountWorkflowExecutionsRequest) (*workflowservice.CountWorkflowExecutionsResponse, error) {
				if strings.HasPrefix(r.Query, "DrydockNode ") {
					return &workflowservice.CountWorkflowExecutionsResponse{}, nil
				}
				return nil, serviceerror.NewInvalidArgument("invalid query: DrydockKind is not a valid search attribute")
			})
		has, err := namespace.Attributes(t.Context(), temporal, "ops", names)
		if err != nil || len(has) != 1 || has["DrydockNode"] != namespace.Keyword {
			t.Errorf("%v: %v, %v", refusal, has, err)
		}
	}
	temporal := &mocks.Client{}
	temporal.On("OperatorService").Return(operator{list: serviceerror.NewUnavailable("later")})
	if has, err := namespace.Attributes(t.Context(), temporal, "ops", names); err == nil {
		t.Errorf("a server that does not answer has %v", has)
	}
	temporal = &mocks.Client{}
	temporal.On("OperatorService").Return(operator{list: serviceerror.NewPermissionDenied("operators only", "")})
	temporal.On("CountWorkflow", mock.Anything, mock.Anything).Return(nil, serviceerror.NewPermissionDenied("nor that", ""))
	if has, err := namespace.Attributes(t.Context(), temporal, "ops", names); err == nil {
		t.Errorf("a server that refuses to say has %v", has)
	}
}

func TestWhatIsThereMeanwhileIsNoError(t *testing.T) {
	temporal := &mocks.Client{}
	temporal.On("OperatorService").Return(operator{add: serviceerror.NewAlreadyExist("somebody was faster")})
	if err := namespace.AddAttributes(t.Context(), temporal, "ops", names); err != nil {
		t.Error(err)
	}
	temporal = &mocks.Client{}
	temporal.On("OperatorService").Return(operator{add: serviceerror.NewPermissionDenied("operators only", "")})
	if err := namespace.AddAttributes(t.Context(), temporal, "ops", names); !namespace.Refused(err) {
		t.Errorf("refused: %v", err)
	}
}
