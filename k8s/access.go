package k8s

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"golang.org/x/sync/errgroup"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/k8s/kube"
)

// askedAtOnce bounds the questions about permissions that are under way.
const askedAtOnce = 8

// MayDo reports, for each of several requests, whether the client's account may make it. The API server stores nothing for that.
func MayDo(ctx context.Context, client kube.Interface, requests []authorizationv1.ResourceAttributes) ([]bool, error) {
	allowed := make([]bool, len(requests))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(askedAtOnce)
	for i, request := range requests {
		group.Go(func() error {
			review := &authorizationv1.SelfSubjectAccessReview{
				Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &request},
			}
			answer, err := client.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
			if err != nil {
				return fmt.Errorf("asking for permission to %s %s: %w", request.Verb, request.Resource, err)
			}
			allowed[i] = answer.Status.Allowed
			return nil
		})
	}
	return allowed, group.Wait()
}

// ErrDenied says that the account lacks a permission, as the API server has confirmed.
var ErrDenied = errors.New("the account may not do this")

// authorizerSays is how the API server words that its authorizer refused a request.
var authorizerSays = regexp.MustCompile(` cannot ([a-z]+) resource "([^"]+)" in API group "([^"]*)"(?: in the namespace "([^"]*)")?`)

// RefusedRequest is the request that the API server's authorizer refused. Webhooks, policies and quotas answer Forbidden too, but may allow
// the same request later.
func RefusedRequest(err error) (request authorizationv1.ResourceAttributes, ok bool) {
	if !apierrors.IsForbidden(err) {
		return request, false
	}
	words := authorizerSays.FindStringSubmatch(err.Error())
	if words == nil || fromWebhook(err) {
		return request, false
	}
	request.Verb, request.Group, request.Namespace = words[1], words[3], words[4]
	request.Resource, request.Subresource, _ = strings.Cut(words[2], "/")
	var status apierrors.APIStatus
	if errors.As(err, &status) && status.Status().Details != nil {
		request.Name = status.Status().Details.Name
	}
	return request, true
}

// Denied reports whether an error means that the account lacks a permission, which no retry heals. It asks the API server to confirm that:
// a server that is starting refuses requests that it allows later, and refuses the question as well.
func Denied(ctx context.Context, client kube.Interface, err error) bool {
	if errors.Is(err, ErrDenied) {
		return true
	}
	request, ok := RefusedRequest(err)
	if !ok || client == nil {
		return false
	}
	allowed, asking := MayDo(ctx, client, []authorizationv1.ResourceAttributes{request})
	return asking == nil && !allowed[0]
}
