package roles

import (
	"context"
	"fmt"
	"strings"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/server/common/api"
	"go.temporal.io/server/common/authorization"
)

// authorizer judges callers by their Granted.
type authorizer struct{ other authorization.Authorizer }

// New returns an authorizer that allows what other allows, such as Temporal's default one, and what a caller's Granted allows besides.
// A Granted never takes away what other allows: who is to have a role here alone gets none of the default roles but read.
func New(other authorization.Authorizer) authorization.Authorizer { return authorizer{other} }

// Authorize implements authorization.Authorizer.
func (a authorizer) Authorize(ctx context.Context, claims *authorization.Claims, target *authorization.CallTarget) (authorization.Result, error) {
	result, err := a.other.Authorize(ctx, claims, target)
	if err != nil || result.Decision == authorization.DecisionAllow || claims == nil {
		return result, err
	}
	granted, ok := claims.Extensions.(Granted)
	if !ok {
		return result, nil
	}
	if err := judge(granted, target); err != nil {
		return authorization.Result{Decision: authorization.DecisionDeny, Reason: err.Error()}, nil
	}
	allowed := authorization.Result{Decision: authorization.DecisionAllow}
	if claims.Subject != "" {
		allowed.Principal = &commonpb.Principal{Type: claims.AuthType, Name: claims.Subject}
	}
	return allowed, nil
}

// judge returns why a call is refused.
func judge(granted Granted, target *authorization.CallTarget) error {
	method, isWorkflowService := strings.CutPrefix(target.APIName, api.WorkflowServicePrefix)
	who := granted.in(target.Namespace)
	if isWorkflowService && clusterWide[method] {
		who = granted.anywhere()
	}
	if who == 0 {
		return fmt.Errorf("the caller has no role in namespace %.100q", target.Namespace)
	}
	metadata := api.GetMethodMetadata(target.APIName)
	if metadata.Access == api.AccessReadOnly && (metadata.Scope == api.ScopeNamespace || clusterWide[method]) {
		return nil
	}
	rule := apis[method]
	if !isWorkflowService || rule == nil {
		return fmt.Errorf("no role may call %.200s", target.APIName)
	}
	return rule(who, target.Request)
}
