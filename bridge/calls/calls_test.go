package calls

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"drydock.dev/drydock/rules/spec"
)

const resource = "nodemaintenances.drydock.dev"

var object = spec.Object{Resource: resource, Name: "kernel", UID: "1"}

// serve reconciles what is called for, each time with the next error.
func serve(ctx context.Context, q *Queue, answers ...error) {
	r := q.Answering(reconcile.Func(func(context.Context, reconcile.Request) (reconcile.Result, error) {
		err := answers[0]
		answers = answers[1:]
		return reconcile.Result{}, err
	}))
	for range len(answers) {
		select {
		case e := <-q.events:
			_, _ = r.Reconcile(ctx, reconcile.Request{NamespacedName: types.NamespacedName{Name: e.Object.GetName()}})
		case <-ctx.Done():
			return
		}
	}
}

func TestACallIsAnsweredByTheNextReconciliation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New()
		q := c.Of(resource)
		broken := errors.New("the API server is away")
		go serve(t.Context(), q, broken, nil)
		if err := c.ReconcileObject(t.Context(), object); !errors.Is(err, broken) {
			t.Errorf("the first call: %v, want %v", err, broken)
		}
		began := time.Now()
		if err := c.ReconcileObject(t.Context(), object); err != nil {
			t.Errorf("the second call: %v", err)
		}
		if took := time.Since(began); took != Least {
			t.Errorf("a call took %s, want %s", took, Least)
		}
	})
}

func TestACallThatNobodyAnswersEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New()
		c.Of(resource)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		if err := c.ReconcileObject(ctx, object); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v, want the deadline", err)
		}
	})
}

func TestACallForWhatNoControllerHasIsRefused(t *testing.T) {
	err := New().ReconcileObject(t.Context(), object)
	if err == nil || !strings.Contains(err.Error(), resource) {
		t.Errorf("%v, want a refusal that names %s", err, resource)
	}
}
