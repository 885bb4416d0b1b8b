package health

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"go.temporal.io/sdk/activity"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"drydock.dev/drydock/activities/failure"
	"drydock.dev/drydock/k8s"
	"drydock.dev/drydock/k8s/objects"
	"drydock.dev/drydock/rules/bounds"
	rules "drydock.dev/drydock/rules/health"
)

const (
	// RemediationHeartbeatTimeout is how long a WatchRemediation may go without a heartbeat: it is billed, and nothing is lost but
	// a minute where a worker is.
	RemediationHeartbeatTimeout = time.Minute
	// renewEvery is how often the lease is checked.
	renewEvery = 20 * time.Second
	// objectEvery is the pause after which an object is read anew where its watch is refused or ended.
	objectEvery = 2 * time.Second
	// graceOfDelete is how long a removal waits for finalizers before it says that they are there.
	graceOfDelete = 3 * time.Second
)

// kindOf resolves the kind of an object; gone is true if the API server does not serve it any more, and its
// objects with it.
func (a *Activities) kindOf(ctx context.Context, r rules.Resource) (kind objects.Kind, gone bool, err error) {
	kind, err = a.Objects.Resolve(ctx, r.APIVersion, r.Kind)
	if isNoKind(err) {
		return kind, true, nil
	}
	return kind, false, err
}

// read reads a remediation object; nil is that it is gone, or another one of its name.
func (a *Activities) read(ctx context.Context, r rules.Resource) (*unstructured.Unstructured, objects.Kind, error) {
	kind, gone, err := a.kindOf(ctx, r)
	if gone || err != nil {
		return nil, kind, err
	}
	o, err := a.Objects.Get(ctx, kind, r.Namespace, r.Name)
	switch {
	case apierrors.IsNotFound(err):
		return nil, kind, nil
	case err != nil:
		return nil, kind, fmt.Errorf("reading %s %s: %w", r.Kind, r.Name, err)
	case r.UID != "" && string(o.GetUID()) != r.UID:
		return nil, kind, nil
	}
	return o, kind, nil
}

// readOwn returns the object of a check, and nil for an object of anybody else: the reference to it was wrong, or
// forged.
func (a *Activities) readOwn(ctx context.Context, check string, r rules.Resource) (*unstructured.Unstructured, objects.Kind, error) {
	o, kind, err := a.read(ctx, r)
	if o != nil && !(ObjectInput{Check: check}).owns(o) {
		o = nil
	}
	return o, kind, err
}

// findOwn finds the objects that a check has made for a node from a template, which may be gone itself.
func (a *Activities) findOwn(ctx context.Context, check, node string, from rules.TemplateRef) ([]rules.Resource, error) {
	all, makes, err := a.listOwn(ctx, check, node, from)
	var own []rules.Resource
	for _, o := range all {
		own = append(own, *resourceOf(makes, &o))
	}
	return own, err
}

// listOwn lists the metadata of these objects; makes says of which kind they are.
func (a *Activities) listOwn(ctx context.Context, check, node string, from rules.TemplateRef) (own []unstructured.Unstructured, makes template, err error) {
	makes.namespace = from.Namespace
	name, cut := strings.CutSuffix(from.Kind, templateSuffix)
	if !cut {
		return nil, makes, nil // nothing is made from it
	}
	kind, gone, err := a.kindOf(ctx, rules.Resource{APIVersion: from.APIVersion, Kind: name})
	if gone || err != nil {
		return nil, makes, err
	}
	makes.makes = kind
	all, err := a.Objects.ListMetadata(ctx, kind, from.Namespace, checkLabel+"="+check)
	if err != nil {
		return nil, makes, fmt.Errorf("listing %s: %w", kind.Resource, err)
	}
	in := ObjectInput{Check: check, Node: node, Template: from}
	return slices.DeleteFunc(all, func(o unstructured.Unstructured) bool { return !in.isFor(&o) }), makes, nil
}

// seenAs is how an object stands.
func seenAs(index int, o *unstructured.Unstructured) ObjectSeen {
	if o == nil {
		return ObjectSeen{Index: index, Gone: true}
	}
	succeeded := conditionOf(o.Object, "Succeeded")
	_, timedOut := o.GetAnnotations()[timedOutAnnotation]
	return ObjectSeen{
		Index: index, Deleting: o.GetDeletionTimestamp() != nil, TimedOut: timedOut,
		Succeeded: truth(succeeded.status), Message: bounds.Cut(succeeded.message, bounds.Text),
		PermanentNodeDeletionExpected: truth(conditionOf(o.Object, "PermanentNodeDeletionExpected").status),
	}
}

// truth is nil if a condition is neither True nor False.
func truth(status string) *bool {
	switch corev1.ConditionStatus(status) {
	case corev1.ConditionTrue:
		return new(true)
	case corev1.ConditionFalse:
		return new(false)
	}
	return nil
}

// objectChange is how an object is now.
type objectChange struct {
	at   int
	seen ObjectSeen
}

// followObject reports an object as it is, and each change, for as long as ctx lives.
func (a *Activities) followObject(ctx context.Context, at int, w WatchedObject, news chan<- objectChange) {
	report := func(o *unstructured.Unstructured) {
		select {
		case news <- objectChange{at, seenAs(w.Index, o)}:
		case <-ctx.Done():
		}
	}
	for ctx.Err() == nil {
		o, kind, err := a.read(ctx, w.Resource)
		if err == nil {
			report(o)
		}
		if err == nil && o != nil {
			err = a.Objects.Follow(ctx, kind, w.Resource.Namespace, w.Resource.Name, o.GetResourceVersion(), func(c objects.Changed) {
				if c.Object != nil && w.Resource.UID != "" && string(c.Object.GetUID()) != w.Resource.UID {
					c.Object = nil
				}
				report(c.Object)
			})
		}
		if err != nil && ctx.Err() == nil {
			activity.GetLogger(ctx).Warn("a remediation object is not followed for a moment", "object", w.Resource.Name, "error", err)
		}
		select {
		case <-time.After(objectEvery):
		case <-ctx.Done():
		}
	}
}

// beatEvery is how often an activity shows that it lives: as rarely as its workflow allows.
func beatEvery(ctx context.Context) time.Duration {
	timeout := activity.GetInfo(ctx).HeartbeatTimeout
	if timeout <= 0 {
		timeout = RemediationHeartbeatTimeout
	}
	return timeout * 4 / 5
}

// WatchRemediation keeps the node's lease and returns when the objects, the lease or the node are not as they are known to be, at
// once where nothing is known. A lease that was lost is not taken anew. It is called with RemediationHeartbeatTimeout.
func (a *Activities) WatchRemediation(ctx context.Context, in RemediationWatch) (RemediationSeen, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	changes := func(node *corev1.Node, _ bool) bool { return node.Name == in.Node }
	view, err := a.Nodes.Follow(ctx, changes)
	if err == nil {
		err = view.Synced(ctx)
	}
	if err != nil {
		return RemediationSeen{}, failure.Translate(ctx, a.Nodes.Client(), err)
	}
	f := &following{Activities: a, in: in, view: view, now: RemediationSeen{Objects: make([]ObjectSeen, len(in.Objects))}}
	news := make(chan objectChange)
	for i, o := range in.Objects {
		go a.followObject(ctx, i, o, news)
	}
	f.keepLease(ctx)
	beat, renew := time.NewTicker(beatEvery(ctx)), time.NewTicker(renewEvery)
	defer beat.Stop()
	defer renew.Stop()
	read := map[int]bool{} // an object that says nothing yet looks like one that was not read
	for {
		if err := view.Err(); err != nil {
			return RemediationSeen{}, failure.Translate(ctx, a.Nodes.Client(), err)
		}
		f.lookAtNode(ctx)
		if len(read) == len(in.Objects) && (in.Known == nil || !reflect.DeepEqual(*in.Known, f.now)) {
			return f.now, nil
		}
		select {
		case one := <-news:
			read[one.at], f.now.Objects[one.at] = true, one.seen
		case <-view.Changed:
		case <-renew.C:
			f.keepLease(ctx)
		case <-beat.C:
			activity.RecordHeartbeat(ctx)
		case <-activity.GetWorkerStopChannel(ctx):
			return RemediationSeen{}, failure.WorkerStopping()
		case <-ctx.Done():
			return RemediationSeen{}, context.Cause(ctx)
		}
	}
}

// following is one WatchRemediation under way.
type following struct {
	*Activities
	in   RemediationWatch
	view *k8s.View
	now  RemediationSeen
}

// keepLease renews the lease. An API server that does not answer is asked again.
func (f *following) keepLease(ctx context.Context) {
	if f.in.Lease == nil || f.now.Lease.Overdue {
		return
	}
	want := LeaseInput{Check: f.in.Check, Node: f.in.Node, UID: f.in.UID, LeaseWant: *f.in.Lease}.want()
	state, err := f.leases().Renew(ctx, want)
	if err != nil {
		activity.GetLogger(ctx).Warn("the lease of a node was not renewed", "node", f.in.Node, "error", err)
		if f.now.Lease = (LeaseState{Held: true}); f.in.Known != nil { // the last known holder still holds it
			f.now.Lease = f.in.Known.Lease
		}
		return
	}
	f.now.Lease = LeaseState{Held: state.Held, HeldBy: state.HeldBy, Overdue: state.Overdue}
}

// lookAtNode takes in how the node is now. A node that the watch does not show is read from the API server: the watch
// may lag.
func (f *following) lookAtNode(ctx context.Context) {
	node, ok := f.view.Get(f.in.Node)
	if !ok {
		there, err := f.Activities.Nodes.Exists(ctx, f.in.Node)
		f.now.NodeGone = err == nil && !there
		f.now.NodeReplaced, f.now.NodeUID, f.now.Ill = false, "", false
		return
	}
	f.now.NodeGone = false
	f.now.NodeReplaced = f.in.UID != "" && string(node.UID) != f.in.UID
	f.now.NodeUID = ""
	if f.now.NodeReplaced {
		f.now.NodeUID = string(node.UID)
	}
	f.now.Ill = len(criteria{conditions: f.in.Conditions}.matches(node, false)) > 0
}
