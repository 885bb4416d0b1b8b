// Package namespace reads what a Temporal namespace has, and makes what it lacks of what Drydock needs. Workers do so at
// their start as far as they may; drydock setup says what is missing, and does it on demand.
package namespace

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.temporal.io/api/enums/v1"
	namespacepb "go.temporal.io/api/namespace/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/protobuf/types/known/durationpb"
)

// Keyword is the type of all of Drydock's search attributes, as people write it.
const Keyword = "Keyword"

// Description is what a server says of a namespace.
type Description struct {
	// ID is a UUID: a namespace of the same name on another server has another one.
	ID string
	// Retention is how long what has ended is kept.
	Retention time.Duration

	config *namespacepb.NamespaceConfig
}

// Describe asks for a namespace.
func Describe(ctx context.Context, temporal client.Client, name string) (Description, error) {
	described, err := temporal.WorkflowService().DescribeNamespace(ctx, &workflowservice.DescribeNamespaceRequest{Namespace: name})
	if err != nil {
		return Description{}, fmt.Errorf("describing namespace %s: %w", name, err)
	}
	d := Description{
		ID: described.GetNamespaceInfo().GetId(), Retention: described.GetConfig().GetWorkflowExecutionRetentionTtl().AsDuration(),
		config: described.GetConfig(),
	}
	if d.ID == "" {
		return d, fmt.Errorf("the server does not return the ID of namespace %s, which marks on nodes need", name)
	}
	return d, nil
}

// Absent reports whether an error says that there is no such namespace.
func Absent(err error) bool {
	var absent *serviceerror.NamespaceNotFound
	return errors.As(err, &absent)
}

// Refused reports whether an error says that the server does not do this for whoever asks, and never will: Temporal Cloud makes
// namespaces and search attributes by an API of its own, and an authorizer may keep them to operators.
func Refused(err error) bool {
	var denied *serviceerror.PermissionDenied
	var unimplemented *serviceerror.Unimplemented
	return errors.As(err, &denied) || errors.As(err, &unimplemented)
}

// Create makes a namespace. One that there is meanwhile is no error, and is left as it is.
func Create(ctx context.Context, temporal client.Client, name string, retention time.Duration) error {
	_, err := temporal.WorkflowService().RegisterNamespace(ctx, &workflowservice.RegisterNamespaceRequest{
		Namespace: name, Description: "maintenances of Kubernetes nodes (Drydock)", WorkflowExecutionRetentionPeriod: durationpb.New(retention),
	})
	var exists *serviceerror.NamespaceAlreadyExists
	if err != nil && !errors.As(err, &exists) {
		return fmt.Errorf("creating namespace %s: %w", name, err)
	}
	return nil
}

// Retain has a namespace keep what has ended for so long, and changes nothing else of it.
func Retain(ctx context.Context, temporal client.Client, name string, retention time.Duration) error {
	is, err := Describe(ctx, temporal, name)
	if err != nil {
		return err
	}
	_, err = temporal.WorkflowService().UpdateNamespace(ctx, &workflowservice.UpdateNamespaceRequest{
		Namespace: name, Config: &namespacepb.NamespaceConfig{
			WorkflowExecutionRetentionTtl: durationpb.New(retention),
			// Without a state an archive would be taken for one that is to be turned off.
			HistoryArchivalState: is.config.GetHistoryArchivalState(), HistoryArchivalUri: is.config.GetHistoryArchivalUri(),
			VisibilityArchivalState: is.config.GetVisibilityArchivalState(), VisibilityArchivalUri: is.config.GetVisibilityArchivalUri(),
		},
	})
	if err != nil {
		return fmt.Errorf("changing the retention of namespace %s: %w", name, err)
	}
	return nil
}

// Attributes are the types of those of these search attributes that the namespace has. If the server does not list them
// it is asked whether it knows each: one that it does counts as a Keyword.
func Attributes(ctx context.Context, temporal client.Client, name string, names []string) (map[string]string, error) {
	listed, err := temporal.OperatorService().ListSearchAttributes(ctx, &operatorservice.ListSearchAttributesRequest{Namespace: name})
	if Refused(err) {
		return known(ctx, temporal, name, names)
	}
	if err != nil {
		return nil, fmt.Errorf("listing search attributes of namespace %s: %w", name, err)
	}
	has := map[string]string{}
	for _, attribute := range names {
		if kind, ok := listed.GetCustomAttributes()[attribute]; ok {
			has[attribute] = kind.String()
		}
	}
	return has, nil
}

// known asks for the number of workflows with an attribute, which a server refuses for one that it does not know.
func known(ctx context.Context, temporal client.Client, name string, names []string) (map[string]string, error) {
	has := map[string]string{}
	for _, attribute := range names {
		_, err := temporal.CountWorkflow(ctx, &workflowservice.CountWorkflowExecutionsRequest{
			Namespace: name, Query: attribute + " = 'drydock'",
		})
		var invalid *serviceerror.InvalidArgument
		switch {
		case err == nil:
			has[attribute] = Keyword
		case !errors.As(err, &invalid):
			return nil, fmt.Errorf("asking for search attribute %s of namespace %s: %w", attribute, name, err)
		}
	}
	return has, nil
}

// Missing are those of these search attributes that are not there as Keywords.
func Missing(has map[string]string, names []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return has[name] == Keyword })
}

// AddAttributes registers search attributes as Keywords. Those that there are meanwhile are no error.
func AddAttributes(ctx context.Context, temporal client.Client, name string, names []string) error {
	add := map[string]enums.IndexedValueType{}
	for _, attribute := range names {
		add[attribute] = enums.INDEXED_VALUE_TYPE_KEYWORD
	}
	_, err := temporal.OperatorService().AddSearchAttributes(ctx, &operatorservice.AddSearchAttributesRequest{
		Namespace: name, SearchAttributes: add,
	})
	var exists *serviceerror.AlreadyExists
	if err != nil && !errors.As(err, &exists) {
		return fmt.Errorf("registering search attributes in namespace %s: %w", name, err)
	}
	return nil
}
