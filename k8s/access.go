package k8s

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// askedAtOnce bounds the questions about permissions that are under way.
const askedAtOnce = 8

// MayDo tells for each of several requests whether the client's account is allowed to make it. The API server answers
// without storing anything.
func MayDo(ctx context.Context, client kubernetes.Interface, requests []authorizationv1.ResourceAttributes) ([]bool, error) {
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
