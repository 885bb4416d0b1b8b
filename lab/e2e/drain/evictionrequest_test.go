package drain

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.temporal.io/sdk/temporal"
	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/gentype"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/util/retry"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/k8s"
	"drydock.dev/drydock/lab/e2e/site"
)

const (
	viaRequest = `"drain":{"via":"evictionRequest"}`
	responder  = "e2e.example/responder"
)

func TestSlowEvictionRequest(t *testing.T) {
	s := site.New(t, "")
	installLifecycle(s)

	s.Sub("is answered by the responder, and nobody else evicts", func(s *site.Site) {
		ns := s.Namespace()
		c := answerRequests(s, ns, func(c *controller, e *lifecyclev1alpha1.Eviction) { c.evict(e) })
		s.Deployment(ns, "web", 2, site.On("worker-01"))
		before := s.PodsOn(ns, "worker-01")
		run := s.BeginWith("worker-01", viaRequest)
		status := s.Until(run, api.Ready)
		for _, pod := range before {
			s.UntilGone(pod)
			r := c.first(pod.UID)
			if r == nil || r.Spec.Requester != k8s.Requester || r.Spec.Target.Pod.Name != pod.Name || !strings.Contains(fmt.Sprint(r.Labels), "worker-01") {
				t.Errorf("for pod %s was filed %+v", pod.Name, r)
			}
		}
		if tried := s.Evictions(ns); len(tried) > 0 {
			t.Errorf("Drydock evicted: %+v", tried)
		}
		if d := status.Drain; d == nil || d.Evicted != 2 || d.Direct != 0 {
			t.Errorf("drained %+v", d)
		}
		noRequests(s, ns)
		s.Done(run)
	})

	s.Sub("is waited for while the responder says what it does", func(s *site.Site) {
		ns := s.Namespace()
		goOn := make(chan struct{})
		answerRequests(s, ns, func(c *controller, e *lifecyclev1alpha1.Eviction) {
			c.report(e, "copying the data, 1 of 3")
			select {
			case <-goOn:
				c.evict(e)
			case <-c.Context().Done():
			}
		})
		s.Deployment(ns, "web", 1, site.On("worker-02"))
		pod := s.One(ns, "web")
		run := s.BeginWith("worker-02", viaRequest)
		status := s.UntilStatus(run, "blocked", func(status api.Status) bool {
			return status.Drain != nil && len(status.Drain.Blockers) == 1
		})
		b := status.Drain.Blockers[0]
		if b.Reason != string(k8s.Requested) || b.Pod != ns+"/"+pod.Name {
			t.Errorf("blocker %+v", b)
		}
		for _, part := range []string{responder + " acts on it since 20", "last heard of at 20", "expects to end at 20", "copying the data, 1 of 3"} {
			if !strings.Contains(b.Message, part) {
				t.Errorf("the blocker's message %q lacks %q", b.Message, part)
			}
		}
		s.MustStay(pod)
		close(goOn)
		s.Until(run, api.Ready)
		s.UntilGone(pod)
		if tried := s.Evictions(ns); len(tried) > 0 {
			t.Errorf("Drydock evicted: %+v", tried)
		}
		s.Done(run)
	})

	s.Sub("that fails is withdrawn, and the pod evicted directly", func(s *site.Site) {
		ns := s.Namespace()
		c := answerRequests(s, ns, func(c *controller, e *lifecyclev1alpha1.Eviction) { c.fail(e, "the disk is full") })
		s.Deployment(ns, "web", 1, site.On("worker-03"))
		pod := s.One(ns, "web")
		run := s.BeginWith("worker-03", viaRequest)
		status := s.Until(run, api.Ready)
		s.UntilGone(pod)
		if accepted := s.Accepted(ns); accepted[pod.Name] != 1 {
			t.Errorf("evicted: %v", accepted)
		}
		if d := status.Drain; d.Direct != 1 || !strings.Contains(d.DirectWhy, "NoFurtherResponder: the disk is full") {
			t.Errorf("drained %+v", d)
		}
		if !c.sawWithdrawn(pod.UID) {
			t.Error("the request was not withdrawn")
		}
		noRequests(s, ns)
		s.Done(run)
	})

	s.Sub("that nobody answers is given up after 30 s", func(s *site.Site) {
		ns := s.Namespace()
		s.Deployment(ns, "web", 1, site.On("worker-04"))
		pod := s.One(ns, "web")
		run := s.BeginWith("worker-04", viaRequest)
		status := s.UntilStatus(run, "blocked", func(status api.Status) bool {
			return status.Drain != nil && len(status.Drain.Blockers) == 1
		})
		if b := status.Drain.Blockers[0]; b.Reason != string(k8s.Requested) || !strings.Contains(b.Message, "no controller has answered yet") {
			t.Errorf("blocker %+v", b)
		}
		status = s.Until(run, api.Ready)
		s.UntilGone(pod)
		tried := s.Evictions(ns)
		filed := s.Requests(`"resource":"evictionrequests"`, func(r site.Request) bool { return r.Verb == "create" && r.Object.Namespace == ns })
		if len(filed) != 1 || len(tried) != 1 || tried[0].Received.Sub(filed[0].Received) < 30*time.Second {
			t.Errorf("filed %+v, evictions %+v", filed, tried)
		}
		if d := status.Drain; d.Direct != 1 || !strings.Contains(d.DirectWhy, "no controller answered") {
			t.Errorf("drained %+v", d)
		}
		noRequests(s, ns)
		s.Done(run)
	})

	waits := func(c *controller, e *lifecyclev1alpha1.Eviction) { c.report(e, "one moment") }
	s.Sub("is withdrawn when the maintenance is cancelled", func(s *site.Site) {
		before := s.Imprint("worker-05")
		ns := s.Namespace()
		c := answerRequests(s, ns, waits)
		s.Deployment(ns, "web", 1, site.On("worker-05"))
		pod := s.One(ns, "web")
		run := s.BeginWith("worker-05", viaRequest)
		s.Eventually("the responder acts", func() error { return c.acts(pod.UID) })
		s.Signal(run, api.MsgCancel, nil)
		s.Undone(run, "worker-05", before)
		noRequests(s, ns)
		s.Eventually("the controller has seen that it is withdrawn", func() error {
			if !c.sawWithdrawn(pod.UID) {
				return errors.New("no")
			}
			return nil
		})
		s.Always("the pod stays and no request comes back", 3*time.Second, func() error {
			s.MustStay(pod)
			noRequests(s, ns)
			return nil
		})
		if tried := s.Evictions(ns); len(tried) > 0 {
			t.Errorf("Drydock evicted: %+v", tried)
		}
	})

	s.Sub("is withdrawn after the worker that filed it died", func(s *site.Site) {
		before := s.Imprint("worker-06")
		ns := s.Namespace()
		c := answerRequests(s, ns, waits)
		s.Deployment(ns, "web", 1, site.On("worker-06"))
		pod := s.One(ns, "web")
		run := s.BeginWith("worker-06", viaRequest)
		s.Eventually("the responder acts", func() error { return c.acts(pod.UID) })
		s.Worker.Kill()
		s.Signal(run, api.MsgCancel, nil)
		s.StartWorker()
		s.Undone(run, "worker-06", before)
		noRequests(s, ns)
		s.MustStay(pod)
	})

	s.Sub("that may not be filed fails at once", func(s *site.Site) {
		s.Worker.Kill()
		plain := s.Options.Kubeconfig
		defer func() { s.Worker.Kill(); s.Options.Kubeconfig = plain }()
		s.Options.Kubeconfig = s.Account(
			site.Rule("", "nodes", "get", "list", "watch", "patch"), site.Rule("", "pods", "get", "list", "watch"), site.Rule("", "pods/eviction", "create"),
			site.Rule("", "events", "create"), site.Rule("apps", "daemonsets", "get"), site.Rule("policy", "poddisruptionbudgets", "get", "list", "watch"),
			site.Rule("lifecycle.k8s.io", "evictions", "list", "watch"), site.Rule("lifecycle.k8s.io", "evictionrequests", "list", "watch", "create", "delete"),
		)
		s.StartWorker()
		before := s.Imprint("worker-07")
		ns := s.Namespace()
		s.Deployment(ns, "web", 1, site.On("worker-07"))
		run := s.BeginWith("worker-07", viaRequest)
		s.UntilStatus(run, "over", func(status api.Status) bool { return status.Phase.Ended() })
		_, err := s.End(run)
		var failed *temporal.ApplicationError
		if !errors.As(err, &failed) || failed.Type() != api.ErrorMissingPermission || !strings.Contains(failed.Message(), "cannot patch") ||
			!strings.Contains(failed.Message(), "evictionrequests") {
			t.Errorf("it ended with %v", err)
		}
		s.Back("worker-07", before)
		noRequests(s, ns)
	})
}

func TestEvictionRequestWhereTheAPIIsNotServed(t *testing.T) {
	s := site.New(t, "")
	ns := s.Namespace()
	s.Guarded(ns, "web", "worker-01")
	pod := s.One(ns, "web")
	run := s.BeginWith("worker-01", viaRequest)
	status := s.UntilStatus(run, "blocked", func(status api.Status) bool {
		return status.Drain != nil && len(status.Drain.Blockers) == 1
	})
	if b := status.Drain.Blockers[0]; b.Reason != string(k8s.BudgetRefused) ||
		!strings.Contains(b.Message, "evicted directly: the API server does not serve lifecycle.k8s.io/v1alpha1") {
		t.Errorf("blocker %+v", b)
	}
	s.Allow(ns, "web")
	status = s.Until(run, api.Ready)
	s.UntilGone(pod)
	if d := status.Drain; d.Direct != 1 || !strings.Contains(d.DirectWhy, "does not serve") {
		t.Errorf("drained %+v", d)
	}
}

const crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

// installLifecycle serves lifecycle.k8s.io/v1alpha1 until the test ends. Any object passes: what the API server of
// Kubernetes 1.37 would refuse is not tested here.
func installLifecycle(s *site.Site) {
	s.Helper()
	client := s.Kube.Discovery().RESTClient()
	names := map[string]string{"Eviction": "evictions", "EvictionRequest": "evictionrequests"}
	for kind, plural := range names {
		crd := fmt.Sprintf(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition",
			"metadata":{"name":"%[2]s.lifecycle.k8s.io","annotations":{"api-approved.kubernetes.io":"unapproved, for a test"}},
			"spec":{"group":"lifecycle.k8s.io","scope":"Namespaced","names":{"kind":%[1]q,"listKind":"%[1]sList","plural":%[2]q,"singular":%[3]q},
			"versions":[{"name":"v1alpha1","served":true,"storage":true,"subresources":{"status":{}},
				"schema":{"openAPIV3Schema":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}]}}`,
			kind, plural, strings.ToLower(kind))
		s.Cleanup(func() {
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			path := crds + "/" + plural + ".lifecycle.k8s.io"
			if err := client.Delete().AbsPath(path).Do(ctx).Error(); err != nil {
				s.Error(err)
			}
			for !apierrors.IsNotFound(client.Get().AbsPath(path).Do(ctx).Error()) && ctx.Err() == nil {
				time.Sleep(50 * time.Millisecond)
			}
		})
		err := client.Post().AbsPath(crds).SetHeader("Content-Type", "application/json").Body([]byte(crd)).Do(s.Ctx).Error()
		if err != nil {
			s.Fatal(err)
		}
	}
	s.Eventually("the API is served", func() error {
		return k8s.EvictionRequests{Client: s.Lane.Cluster.Narrow}.Served(s.Ctx)
	})
}

// lifecycleClient is the typed client without its preference for protobuf.
func lifecycleClient[T interface {
	*lifecyclev1alpha1.Eviction | *lifecyclev1alpha1.EvictionRequest
	metav1.Object
	runtime.Object
}, L runtime.Object](s *site.Site, resource, ns string, object func() T, list func() L) *gentype.ClientWithList[T, L] {
	return gentype.NewClientWithList(resource, s.Kube.LifecycleV1alpha1().RESTClient(), scheme.ParameterCodec, ns, object, list)
}

func evictionRequests(s *site.Site, ns string) *gentype.ClientWithList[*lifecyclev1alpha1.EvictionRequest, *lifecyclev1alpha1.EvictionRequestList] {
	return lifecycleClient(s, "evictionrequests", ns,
		func() *lifecyclev1alpha1.EvictionRequest { return &lifecyclev1alpha1.EvictionRequest{} },
		func() *lifecyclev1alpha1.EvictionRequestList { return &lifecyclev1alpha1.EvictionRequestList{} })
}

// noRequests checks that no EvictionRequest is left in a namespace.
func noRequests(s *site.Site, ns string) {
	s.Helper()
	list, err := evictionRequests(s, ns).List(s.Ctx, metav1.ListOptions{})
	if err != nil || len(list.Items) > 0 {
		s.Fatalf("EvictionRequests %+v, %v", list.Items, err)
	}
}

// controller stands for the evictionrequest-controller of a cluster, with one responder to each Eviction.
type controller struct {
	*site.Site
	ns        string
	evictions *gentype.ClientWithList[*lifecyclev1alpha1.Eviction, *lifecyclev1alpha1.EvictionList]
	respond   func(*controller, *lifecyclev1alpha1.Eviction)

	mu   sync.Mutex
	seen map[types.UID][]*lifecyclev1alpha1.EvictionRequest
}

// answerRequests runs a controller for a namespace until the test ends.
func answerRequests(s *site.Site, ns string, respond func(*controller, *lifecyclev1alpha1.Eviction)) *controller {
	s.Helper()
	c := &controller{
		Site: s, ns: ns, respond: respond, seen: map[types.UID][]*lifecyclev1alpha1.EvictionRequest{},
		evictions: lifecycleClient(s, "evictions", ns,
			func() *lifecyclev1alpha1.Eviction { return &lifecyclev1alpha1.Eviction{} },
			func() *lifecyclev1alpha1.EvictionList { return &lifecyclev1alpha1.EvictionList{} }),
	}
	stream, err := evictionRequests(s, ns).Watch(s.Ctx, metav1.ListOptions{})
	if err != nil {
		s.Fatal(err)
	}
	var running sync.WaitGroup
	s.Cleanup(func() { stream.Stop(); running.Wait() })
	running.Go(func() {
		for event := range stream.ResultChan() {
			if request, ok := event.Object.(*lifecyclev1alpha1.EvictionRequest); ok {
				if err := c.reconcile(event.Type, request, &running); err != nil && s.Context().Err() == nil {
					s.Errorf("controller: %v", err)
				}
			}
		}
	})
	return c
}

func (c *controller) reconcile(kind watch.EventType, request *lifecyclev1alpha1.EvictionRequest, running *sync.WaitGroup) error {
	pod := *request.Spec.Target.Pod
	c.mu.Lock()
	c.seen[pod.UID] = append(c.seen[pod.UID], request)
	c.mu.Unlock()
	wanted := kind != watch.Deleted && request.Spec.Intent == lifecyclev1alpha1.EvictionRequestIntentEviction
	if !wanted {
		err := c.change(string(pod.UID), func(e *lifecyclev1alpha1.Eviction) {
			e.Status.Requesters[0].Intent = lifecyclev1alpha1.RequesterIntentWithdrawn
			e.Status.TargetResponders[0].State = lifecyclev1alpha1.ResponderStateCanceled
			condition(e, lifecyclev1alpha1.EvictionConditionFailed, metav1.ConditionTrue, lifecyclev1alpha1.EvictionConditionReasonCanceledDueToNoRequesters, "")
		})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return err
	}
	_, err := c.evictions.Create(c.Context(), &lifecyclev1alpha1.Eviction{
		ObjectMeta: metav1.ObjectMeta{Name: string(pod.UID), Labels: map[string]string{request.Spec.Requester: "requester", responder: "responder"}},
		Spec:       lifecyclev1alpha1.EvictionSpec{Target: lifecyclev1alpha1.EvictionTarget{Pod: &lifecyclev1alpha1.EvictionPodReference{Name: pod.Name, UID: pod.UID}}},
	}, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	if err == nil {
		err = c.change(string(pod.UID), func(e *lifecyclev1alpha1.Eviction) {
			e.Status.Requesters = []lifecyclev1alpha1.Requester{{Name: request.Spec.Requester, Intent: lifecyclev1alpha1.RequesterIntentEviction}}
			e.Status.TargetResponders = []lifecyclev1alpha1.TargetResponder{{Name: responder, Priority: new(int32(10000)), State: lifecyclev1alpha1.ResponderStateActive}}
			e.Status.Responders = []lifecyclev1alpha1.ResponderStatus{{Name: responder, StartTime: new(metav1.Now())}}
			condition(e, lifecyclev1alpha1.EvictionConditionFailed, metav1.ConditionFalse, lifecyclev1alpha1.EvictionConditionReasonAwaitingEviction, "")
			condition(e, lifecyclev1alpha1.EvictionConditionTargetEvicted, metav1.ConditionFalse, lifecyclev1alpha1.EvictionConditionReasonAwaitingEviction, "")
		})
	}
	if err != nil {
		return err
	}
	eviction, err := c.evictions.Get(c.Context(), string(pod.UID), metav1.GetOptions{})
	if err == nil {
		running.Go(func() { c.respond(c, eviction) })
	}
	return err
}

// change writes an Eviction's status.
func (c *controller) change(name string, change func(*lifecyclev1alpha1.Eviction)) error {
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		e, err := c.evictions.Get(c.Context(), name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		change(e)
		_, err = c.evictions.UpdateStatus(c.Context(), e, metav1.UpdateOptions{})
		return err
	})
}

func condition(e *lifecyclev1alpha1.Eviction, kind lifecyclev1alpha1.EvictionConditionType, is metav1.ConditionStatus,
	why lifecyclev1alpha1.EvictionConditionReason, message string,
) {
	meta.SetStatusCondition(&e.Status.Conditions, metav1.Condition{Type: string(kind), Status: is, Reason: string(why), Message: message})
}

// evict is a responder's way to end a pod.
func (c *controller) evict(e *lifecyclev1alpha1.Eviction) {
	err := c.Kube.CoreV1().Pods(c.ns).EvictV1(c.Context(), &policyv1.Eviction{
		ObjectMeta:    metav1.ObjectMeta{Name: e.Spec.Target.Pod.Name, Namespace: c.ns},
		DeleteOptions: &metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(e.Spec.Target.Pod.UID))},
	})
	c.check(errors.Join(err, c.change(e.Name, func(e *lifecyclev1alpha1.Eviction) {
		e.Status.Responders[0].CompletionTime = new(metav1.Now())
		condition(e, lifecyclev1alpha1.EvictionConditionTargetEvicted, metav1.ConditionTrue, lifecyclev1alpha1.EvictionConditionReasonPodDeleted, "")
	})))
}

// report is a responder's heartbeat.
func (c *controller) report(e *lifecyclev1alpha1.Eviction, message string) {
	c.check(c.change(e.Name, func(e *lifecyclev1alpha1.Eviction) {
		r := &e.Status.Responders[0]
		r.HeartbeatTime, r.Message = new(metav1.Now()), &message
		r.ExpectedCompletionTime = new(metav1.NewTime(time.Now().Add(time.Minute)))
	}))
}

func (c *controller) fail(e *lifecyclev1alpha1.Eviction, message string) {
	c.check(c.change(e.Name, func(e *lifecyclev1alpha1.Eviction) {
		e.Status.TargetResponders[0].State = lifecyclev1alpha1.ResponderStateInterrupted
		condition(e, lifecyclev1alpha1.EvictionConditionTargetEvicted, metav1.ConditionFalse, lifecyclev1alpha1.EvictionConditionReasonEvictionFailed, "")
		condition(e, lifecyclev1alpha1.EvictionConditionFailed, metav1.ConditionTrue, lifecyclev1alpha1.EvictionConditionReasonNoFurtherResponder, message)
	}))
}

func (c *controller) check(err error) {
	if err != nil && c.Context().Err() == nil {
		c.Errorf("responder: %v", err)
	}
}

// first is the request for a pod as it was filed.
func (c *controller) first(pod types.UID) *lifecyclev1alpha1.EvictionRequest {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.seen[pod]) == 0 {
		return nil
	}
	return c.seen[pod][0]
}

// acts reports whether the responder has a pod's Eviction and has reported.
func (c *controller) acts(pod types.UID) error {
	e, err := c.evictions.Get(c.Ctx, string(pod), metav1.GetOptions{})
	if err == nil && (len(e.Status.Responders) == 0 || e.Status.Responders[0].Message == nil) {
		err = errors.New("it has not reported")
	}
	return err
}

// sawWithdrawn reports whether the intent was withdrawn before the request was removed.
func (c *controller) sawWithdrawn(pod types.UID) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.ContainsFunc(c.seen[pod], func(r *lifecyclev1alpha1.EvictionRequest) bool {
		return r.Spec.Intent == lifecyclev1alpha1.EvictionRequestIntentWithdrawn
	})
}
