package e2e

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
)

const (
	viaRequest = `"drain":{"via":"evictionRequest"}`
	responder  = "e2e.example/responder"
)

func TestEvictionRequest(t *testing.T) {
	slow(t)
	s := newSite(t, "")
	s.installLifecycle()

	s.sub("is answered by the responder, and nobody else evicts", func(s *site) {
		ns := s.namespace()
		c := s.answerRequests(ns, func(c *controller, e *lifecyclev1alpha1.Eviction) { c.evict(e) })
		s.deployment(ns, "web", 2, on("worker-01"))
		before := s.podsOn(ns, "worker-01")
		run := s.beginWith("worker-01", viaRequest)
		status := s.until(run, api.Ready)
		for _, pod := range before {
			s.untilGone(pod)
			r := c.first(pod.UID)
			if r == nil || r.Spec.Requester != k8s.Requester || r.Spec.Target.Pod.Name != pod.Name || !strings.Contains(fmt.Sprint(r.Labels), "worker-01") {
				t.Errorf("for pod %s was filed %+v", pod.Name, r)
			}
		}
		if tried := s.evictions(ns); len(tried) > 0 {
			t.Errorf("Drydock evicted: %+v", tried)
		}
		if d := status.Drain; d == nil || d.Evicted != 2 || d.Direct != 0 {
			t.Errorf("drained %+v", d)
		}
		s.noRequests(ns)
		s.done(run)
	})

	s.sub("is waited for while the responder says what it does", func(s *site) {
		ns := s.namespace()
		goOn := make(chan struct{})
		s.answerRequests(ns, func(c *controller, e *lifecyclev1alpha1.Eviction) {
			c.report(e, "copying the data, 1 of 3")
			select {
			case <-goOn:
				c.evict(e)
			case <-c.Context().Done():
			}
		})
		s.deployment(ns, "web", 1, on("worker-02"))
		pod := s.one(ns, "web")
		run := s.beginWith("worker-02", viaRequest)
		status := s.untilStatus(run, "blocked", func(status api.Status) bool {
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
		s.mustStay(pod)
		close(goOn)
		s.until(run, api.Ready)
		s.untilGone(pod)
		if tried := s.evictions(ns); len(tried) > 0 {
			t.Errorf("Drydock evicted: %+v", tried)
		}
		s.done(run)
	})

	s.sub("that fails is withdrawn, and the pod evicted directly", func(s *site) {
		ns := s.namespace()
		c := s.answerRequests(ns, func(c *controller, e *lifecyclev1alpha1.Eviction) { c.fail(e, "the disk is full") })
		s.deployment(ns, "web", 1, on("worker-03"))
		pod := s.one(ns, "web")
		run := s.beginWith("worker-03", viaRequest)
		status := s.until(run, api.Ready)
		s.untilGone(pod)
		if accepted := s.accepted(ns); accepted[pod.Name] != 1 {
			t.Errorf("evicted: %v", accepted)
		}
		if d := status.Drain; d.Direct != 1 || !strings.Contains(d.DirectWhy, "NoFurtherResponder: the disk is full") {
			t.Errorf("drained %+v", d)
		}
		if !c.sawWithdrawn(pod.UID) {
			t.Error("the request was not withdrawn")
		}
		s.noRequests(ns)
		s.done(run)
	})

	s.sub("that nobody answers is given up after 30 s", func(s *site) {
		ns := s.namespace()
		s.deployment(ns, "web", 1, on("worker-04"))
		pod := s.one(ns, "web")
		run := s.beginWith("worker-04", viaRequest)
		status := s.untilStatus(run, "blocked", func(status api.Status) bool {
			return status.Drain != nil && len(status.Drain.Blockers) == 1
		})
		if b := status.Drain.Blockers[0]; b.Reason != string(k8s.Requested) || !strings.Contains(b.Message, "no controller has answered yet") {
			t.Errorf("blocker %+v", b)
		}
		status = s.until(run, api.Ready)
		s.untilGone(pod)
		tried := s.evictions(ns)
		filed := s.requests(`"resource":"evictionrequests"`, func(r request) bool { return r.Verb == "create" && r.Object.Namespace == ns })
		if len(filed) != 1 || len(tried) != 1 || tried[0].Received.Sub(filed[0].Received) < 30*time.Second {
			t.Errorf("filed %+v, evictions %+v", filed, tried)
		}
		if d := status.Drain; d.Direct != 1 || !strings.Contains(d.DirectWhy, "no controller answered") {
			t.Errorf("drained %+v", d)
		}
		s.noRequests(ns)
		s.done(run)
	})

	waits := func(c *controller, e *lifecyclev1alpha1.Eviction) { c.report(e, "one moment") }
	s.sub("is withdrawn when the maintenance is cancelled", func(s *site) {
		before := s.imprint("worker-05")
		ns := s.namespace()
		c := s.answerRequests(ns, waits)
		s.deployment(ns, "web", 1, on("worker-05"))
		pod := s.one(ns, "web")
		run := s.beginWith("worker-05", viaRequest)
		s.eventually("the responder acts", func() error { return c.acts(pod.UID) })
		s.signal(run, api.MsgCancel, nil)
		s.undone(run, "worker-05", before)
		s.noRequests(ns)
		s.eventually("the controller has seen that it is withdrawn", func() error {
			if !c.sawWithdrawn(pod.UID) {
				return errors.New("no")
			}
			return nil
		})
		s.always("the pod stays and no request comes back", 3*time.Second, func() error {
			s.mustStay(pod)
			s.noRequests(ns)
			return nil
		})
		if tried := s.evictions(ns); len(tried) > 0 {
			t.Errorf("Drydock evicted: %+v", tried)
		}
	})

	s.sub("is withdrawn after the worker that filed it died", func(s *site) {
		before := s.imprint("worker-06")
		ns := s.namespace()
		c := s.answerRequests(ns, waits)
		s.deployment(ns, "web", 1, on("worker-06"))
		pod := s.one(ns, "web")
		run := s.beginWith("worker-06", viaRequest)
		s.eventually("the responder acts", func() error { return c.acts(pod.UID) })
		s.worker.Kill()
		s.signal(run, api.MsgCancel, nil)
		s.startWorker()
		s.undone(run, "worker-06", before)
		s.noRequests(ns)
		s.mustStay(pod)
	})

	s.sub("that may not be filed fails at once", func(s *site) {
		s.worker.Kill()
		plain := s.options.Kubeconfig
		defer func() { s.worker.Kill(); s.options.Kubeconfig = plain }()
		s.options.Kubeconfig = s.account(
			rule("", "nodes", "get", "list", "watch", "patch"), rule("", "pods", "get", "list", "watch"), rule("", "pods/eviction", "create"),
			rule("", "events", "create"), rule("apps", "daemonsets", "get"), rule("policy", "poddisruptionbudgets", "get", "list", "watch"),
			rule("lifecycle.k8s.io", "evictions", "list", "watch"), rule("lifecycle.k8s.io", "evictionrequests", "list", "watch", "create", "delete"),
		)
		s.startWorker()
		before := s.imprint("worker-07")
		ns := s.namespace()
		s.deployment(ns, "web", 1, on("worker-07"))
		run := s.beginWith("worker-07", viaRequest)
		s.untilStatus(run, "over", func(status api.Status) bool { return status.Phase.Ended() })
		_, err := s.end(run)
		var failed *temporal.ApplicationError
		if !errors.As(err, &failed) || failed.Type() != api.ErrorMissingPermission || !strings.Contains(failed.Message(), "cannot patch") ||
			!strings.Contains(failed.Message(), "evictionrequests") {
			t.Errorf("it ended with %v", err)
		}
		s.back("worker-07", before)
		s.noRequests(ns)
	})
}

func TestEvictionRequestWhereTheAPIIsNotServed(t *testing.T) {
	s := newSite(t, "")
	ns := s.namespace()
	s.guarded(ns, "web", "worker-01")
	pod := s.one(ns, "web")
	run := s.beginWith("worker-01", viaRequest)
	status := s.untilStatus(run, "blocked", func(status api.Status) bool {
		return status.Drain != nil && len(status.Drain.Blockers) == 1
	})
	if b := status.Drain.Blockers[0]; b.Reason != string(k8s.BudgetRefused) ||
		!strings.Contains(b.Message, "evicted directly: the API server does not serve lifecycle.k8s.io/v1alpha1") {
		t.Errorf("blocker %+v", b)
	}
	s.allow(ns, "web")
	status = s.until(run, api.Ready)
	s.untilGone(pod)
	if d := status.Drain; d.Direct != 1 || !strings.Contains(d.DirectWhy, "does not serve") {
		t.Errorf("drained %+v", d)
	}
}

const crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

// installLifecycle serves lifecycle.k8s.io/v1alpha1 until the test ends. Any object passes: what the API server of
// Kubernetes 1.37 would refuse is not tested here.
func (s *site) installLifecycle() {
	s.Helper()
	client := s.kube.Discovery().RESTClient()
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
		err := client.Post().AbsPath(crds).SetHeader("Content-Type", "application/json").Body([]byte(crd)).Do(s.ctx).Error()
		if err != nil {
			s.Fatal(err)
		}
	}
	s.eventually("the API is served", func() error {
		return k8s.EvictionRequests{Client: s.lane.cluster.Narrow}.Served(s.ctx)
	})
}

// lifecycleClient is the typed client without its preference for protobuf.
func lifecycleClient[T interface {
	*lifecyclev1alpha1.Eviction | *lifecyclev1alpha1.EvictionRequest
	metav1.Object
	runtime.Object
}, L runtime.Object](s *site, resource, ns string, object func() T, list func() L) *gentype.ClientWithList[T, L] {
	return gentype.NewClientWithList(resource, s.kube.LifecycleV1alpha1().RESTClient(), scheme.ParameterCodec, ns, object, list)
}

func (s *site) evictionRequests(ns string) *gentype.ClientWithList[*lifecyclev1alpha1.EvictionRequest, *lifecyclev1alpha1.EvictionRequestList] {
	return lifecycleClient(s, "evictionrequests", ns,
		func() *lifecyclev1alpha1.EvictionRequest { return &lifecyclev1alpha1.EvictionRequest{} },
		func() *lifecyclev1alpha1.EvictionRequestList { return &lifecyclev1alpha1.EvictionRequestList{} })
}

// noRequests checks that no EvictionRequest is left in a namespace.
func (s *site) noRequests(ns string) {
	s.Helper()
	list, err := s.evictionRequests(ns).List(s.ctx, metav1.ListOptions{})
	if err != nil || len(list.Items) > 0 {
		s.Fatalf("EvictionRequests %+v, %v", list.Items, err)
	}
}

// controller stands for the evictionrequest-controller of a cluster, with one responder to each Eviction.
type controller struct {
	*site
	ns        string
	evictions *gentype.ClientWithList[*lifecyclev1alpha1.Eviction, *lifecyclev1alpha1.EvictionList]
	respond   func(*controller, *lifecyclev1alpha1.Eviction)

	mu   sync.Mutex
	seen map[types.UID][]*lifecyclev1alpha1.EvictionRequest
}

// answerRequests runs a controller for a namespace until the test ends.
func (s *site) answerRequests(ns string, respond func(*controller, *lifecyclev1alpha1.Eviction)) *controller {
	s.Helper()
	c := &controller{
		site: s, ns: ns, respond: respond, seen: map[types.UID][]*lifecyclev1alpha1.EvictionRequest{},
		evictions: lifecycleClient(s, "evictions", ns,
			func() *lifecyclev1alpha1.Eviction { return &lifecyclev1alpha1.Eviction{} },
			func() *lifecyclev1alpha1.EvictionList { return &lifecyclev1alpha1.EvictionList{} }),
	}
	stream, err := s.evictionRequests(ns).Watch(s.ctx, metav1.ListOptions{})
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
	err := c.kube.CoreV1().Pods(c.ns).EvictV1(c.Context(), &policyv1.Eviction{
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

// acts tells whether the responder has a pod's Eviction and has reported.
func (c *controller) acts(pod types.UID) error {
	e, err := c.evictions.Get(c.ctx, string(pod), metav1.GetOptions{})
	if err == nil && (len(e.Status.Responders) == 0 || e.Status.Responders[0].Message == nil) {
		err = errors.New("it has not reported")
	}
	return err
}

// sawWithdrawn tells whether the intent was withdrawn before the request was removed.
func (c *controller) sawWithdrawn(pod types.UID) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.ContainsFunc(c.seen[pod], func(r *lifecyclev1alpha1.EvictionRequest) bool {
		return r.Spec.Intent == lifecyclev1alpha1.EvictionRequestIntentWithdrawn
	})
}
